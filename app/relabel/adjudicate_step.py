"""A step on which annotators disagree as HTML: what was said of it, the form that decides it, what was decided."""

from collections.abc import Sequence
from html import escape

from stepsight.app.relabel.label import LABEL_MARKS, error_name, texts_html
from stepsight.app.web.text import text_html
from stepsight.core.trace import Step
from stepsight.storage.labelling.annotation import LONGEST
from stepsight.storage.labelling.results.answers import SubmittedAnnotation
from stepsight.storage.labelling.results.decisions import Decision

INERT = 'method="dialog"'
"""A form outside of a dialog that has this does nothing until the page's script is there."""

# No label is sent as an empty value.
_CHOICES = {"neg": "1", "neu": "2", "pos": "3", "": "0"}
_HEAD = """<thead class="unseen"><tr><th scope="col">Who</th><th scope="col">Label</th>
<th scope="col">Remarks</th></tr></thead>"""
_NO_LABEL = '<span class="g none">no label</span>'


def agreed_html(number: int, step: Step, annotations: Sequence[SubmittedAnnotation]) -> str:
    """A step, 0-based, on which nobody disagrees, with the label that everybody gave who gave one."""
    said = next(
        (annotation.labels[number] for annotation in annotations if annotation.labels[number] is not None), None
    )
    return f"""<li><b>{number + 1}</b><div class="what">{texts_html(number, step)}</div>
<div class="agreed">{label_html(said)}</div></li>"""


def disagreed_html(
    number: int, step: Step, said: Sequence[tuple[str, SubmittedAnnotation]], made: Sequence[Decision]
) -> str:
    """A step, 0-based, with what was said of it, by letters, and the decisions `made`, the oldest first."""
    state = "decided" if made else "open"
    rows = "".join(_answer(letter, annotation, number) for letter, annotation in said)
    return f"""<li class="{state}" id="step-{number + 1}" data-step="{number}" tabindex="-1">
<b>{number + 1}</b><div class="what">{texts_html(number, step)}
<table class="table answers"><caption class="unseen">What was said of step {number + 1}</caption>
{_HEAD}<tbody>{rows}</tbody></table>{_form(number, made[-1] if made else None)}{_decisions(made)}</div></li>"""


def label_html(label: str | None) -> str:
    """A label by a person."""
    return f'<span class="label {label}">{LABEL_MARKS[label]} {label}</span>' if label else _NO_LABEL


def _answer(letter: str, annotation: SubmittedAnnotation, number: int) -> str:
    kind = annotation.errors.get(number)
    texts = (("", annotation.comments.get(number)), ("as it should be: ", annotation.corrections.get(number)))
    told = [f'<p class="said-text">{name}{text_html(text)}</p>' for name, text in texts if text]
    if annotation.exposed:
        told.append(f'<p class="hint">had seen {escape(", ".join(sorted(annotation.exposed)))}</p>')
    shown = f' <span class="kind">{escape(error_name(kind))}</span>' if kind else ""
    return f"""<tr><th scope="row">{letter}</th><td>{label_html(annotation.labels[number])}{shown}</td>
<td>{"".join(told)}</td></tr>"""


def _form(number: int, decision: Decision | None) -> str:
    """What decides a step; `decision` is the one in force."""
    place, word = f"step {number + 1}", "Change" if decision else "Decide"
    known = None if decision is None else decision.label or ""
    after = 0 if decision is None else decision.event_id
    choices = "".join(_choice(value, checked=value == known) for value in _CHOICES)
    return f"""<form class="decision" {INERT}><fieldset><legend class="unseen">Decision on {place}</legend>{choices}
</fieldset><input type="hidden" name="after" value="{after}"><label class="reason">Reason
<input name="reason" required maxlength="{LONGEST}" autocomplete="off"></label>
<button class="button primary" aria-label="{word} {place}">{word}</button><div class="told"></div></form>"""


def _choice(value: str, *, checked: bool) -> str:
    name = f"{LABEL_MARKS[value]} {value}" if value else "unlabelled"
    return f"""<label class="choice {value or "none"}"><input type="radio" name="label" value="{value}" required
{"checked" if checked else ""}> <kbd>{_CHOICES[value]}</kbd> {name}</label>"""


def _decisions(made: Sequence[Decision]) -> str:
    """The one in force, and those before it."""
    if not made:
        return ""
    earlier = "".join(f"<li>{_decision(one)}</li>" for one in reversed(made[:-1]))
    before = f"<details><summary>Decided otherwise before</summary><ul>{earlier}</ul></details>" if earlier else ""
    return f'<div class="past"><p>Decided: {_decision(made[-1])}</p>{before}</div>'


def _decision(one: Decision) -> str:
    own = ", who labelled it too" if one.own else ""
    label = label_html(one.label) if one.label else "unlabelled"
    return f"""<strong>{label}</strong> {text_html(one.reason)}
<span class="hint">{escape(one.user)}{own}, {one.moment:%Y-%m-%d %H:%M}</span>"""
