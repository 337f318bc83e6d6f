"""The page on which a trace is labelled, and the parts of it that its script asks for."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape

from stepsight.app.relabel.campaign_summary import guideline_html, is_told_all
from stepsight.app.web.text import text_html
from stepsight.core.trace import Step
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.annotation import ERROR_KINDS, Annotation
from stepsight.storage.labelling.campaigns import CampaignView, guideline_text
from stepsight.storage.labelling.comparison import ShownScores, read_scores
from stepsight.storage.labelling.progress import campaign_progress
from stepsight.storage.labelling.queue import Assignment
from stepsight.storage.people.users import User


def scores_html(scores: Sequence[ShownScores], number: int) -> str:
    """A line for each evaluator that says something of the step, 0-based; nothing where none does."""
    lines = "".join(_line(said, number) for said in scores if said.validity[number] is not None)
    return f'<div class="scores">{lines}</div>' if lines else ""


def _line(said: ShownScores, number: int) -> str:
    validity, redundancy = said.validity[number] or 0.0, said.redundancy[number]
    label = f"{escape(said.evaluator)}, {said.mode.value}: validity {validity:.2f}"
    widths = {"neg": 1 - validity, "pos": validity}
    if redundancy is not None:
        label += f", redundancy {redundancy:.2f}"
        widths = {"neg": 1 - validity, "neu": min(redundancy, validity), "pos": max(validity - redundancy, 0.0)}
    parts = "".join(f'<i class="{name}" style="width:{100 * width:.1f}%"></i>' for name, width in widths.items())
    return f"""<span class="who">{escape(said.evaluator)}, {said.mode.value}</span>
<div class="bar" role="img" aria-label="{label}" title="{label}">{parts}</div>
<span class="num">{validity:.2f}</span>"""


LABEL_MARKS = {"neg": "✕", "neu": "○", "pos": "✓", "unsure": "?"}
"""What stands beside each label, so that no colour has to be told apart."""

_KEYS = {"neg": "1", "neu": "2", "pos": "3", "unsure": "u"}
_SAYS = {
    "neg": "wrong",
    "neu": "valid but redundant",
    "pos": "correct and useful",
    "unsure": "you cannot tell",
}
_KINDS = {
    "redundency": ("redundant", "says again what is known, or what nothing needs"),
    "circular": ("circular", "rests on what it is to show"),
    "counterfactual": ("counterfactual", "goes against a known fact or rule"),
    "step_contradiction": ("contradicts a step", "goes against another step"),
    "domain_inconsistency": ("wrong domain", "uses a rule where it does not hold"),
    "confidence": ("false certainty", "claims for sure what is not so"),
    "missing_condition": ("missing condition", "leaves out a condition or a case that it needs"),
    "deception": ("misleading detail", "looks right, and a detail of it is off"),
}
_STEPWISE = """Each step appears once the one before it has its label. When a later step changes your mind, change
the earlier label: the first one is kept as well, and the change is what this campaign is for."""


def labelling_html(store: Store, task: Assignment, draft: Annotation, user: User) -> str:
    """The page for a turn that goes on: of the trace only the steps that are revealed."""
    campaign = task.campaign
    stepwise = campaign.view is CampaignView.STEPWISE
    flags = ("data-stepwise " if stepwise else "") + ("data-after-error" if campaign.after_error else "")
    state = escape(json.dumps(_state(draft)))
    guideline = guideline_html(task.guideline, guideline_text(store, campaign.id, task.guideline))
    found = campaign_progress(store, campaign.id, user.id)
    by_all = f" · {found.submitted:,} of {found.slots:,} by all" if is_told_all(user) else ""
    # Nobody has read the guideline who begins.
    first = " open" if not found.mine else ""
    return f"""<section id="labelling" data-slot="{task.slot_id}" data-campaign="{campaign.id}"
data-person="{user.id}" data-guideline="{task.guideline}" data-steps="{len(draft.labels)}"
data-draft="{state}" {flags}>
<p class="pager"><a href="/relabel">Campaigns</a><span>{escape(campaign.name)}</span>
<span class="place">{found.mine:,} submitted by you{by_all}</span>
<span class="keys"><kbd>1</kbd> <kbd>2</kbd> <kbd>3</kbd> <kbd>u</kbd> label <kbd>?</kbd> all keys</span></p>
<h1 class="unseen">Label a trace</h1><details class="guideline"{first}>{guideline}</details>
<p class="q">{text_html(task.trace.problem)}</p>{f'<p class="hint">{_STEPWISE}</p>' if stepwise else ""}
<p class="flagged" hidden>Flagged as a bad problem: <span></span></p>
<ol class="steps">{steps_html(store, task, draft, user)}</ol>{_TOOLS}</section>"""


def steps_html(store: Store, task: Assignment, draft: Annotation, user: User, start: int = 0) -> str:
    """The revealed steps from `start` on, 0-based, each an item of the list."""
    shown = range(start, min(draft.revealed, len(task.trace.steps)))
    scores = read_scores(store, task.slot_id, user, draft)
    return "".join(_step(number, task.trace.steps[number], scores) for number in shown)


def texts_html(number: int, step: Step) -> str:
    """A step's sub-steps; several are numbered."""
    if len(step.substeps) == 1:
        return f'<div class="t">{text_html(step.substeps[0])}</div>'
    return "".join(
        f'<div class="t"><span class="sn">{number + 1}.{place}</span>{text_html(text)}</div>'
        for place, text in enumerate(step.substeps, start=1)
    )


def error_name(kind: str) -> str:
    """A kind of error for people."""
    return _KINDS[kind][0] if kind in _KINDS else kind


def _state(draft: Annotation) -> dict[str, object]:
    return {name: value for name, value in asdict(draft).items() if name != "first"}


def _step(number: int, step: Step, scores: Sequence[ShownScores]) -> str:
    labels = "".join(_label(label) for label in LABEL_MARKS)
    return f"""<li data-step="{number}" tabindex="-1"><b>{number + 1}</b>
<div class="what">{texts_html(number, step)}{scores_html(scores, number)}
{_chips(number)}{_texts(number, step)}</div>
<div class="said-of"><div class="labels" role="group" aria-label="Label of step {number + 1}">{labels}</div>
<span class="kept"></span></div></li>"""


def _label(label: str) -> str:
    mark = f'<i aria-hidden="true">{LABEL_MARKS[label]}</i>'
    return f"""<button type="button" class="{label}" data-label="{label}" aria-pressed="false"
aria-keyshortcuts="{_KEYS[label]}" title="{_SAYS[label]} ({_KEYS[label]})">{mark}{label}</button>"""


def _chips(number: int) -> str:
    """The kinds of error to choose from, once a step is neg."""
    chips = "".join(
        f'<button type="button" class="chip" data-error="{kind}" aria-pressed="false" title="{_KINDS[kind][1]}">'
        f"{_KINDS[kind][0]}</button>"
        for kind in ERROR_KINDS
    )
    what = f"Kind of error in step {number + 1}"
    return f'<div class="kinds" role="group" aria-label="{what}" hidden>{chips}</div>'


def _texts(number: int, step: Step) -> str:
    """The comment on a step, and the step as it should be."""
    name = f"step {number + 1}"
    openers = "".join(
        f'<button type="button" class="opener" data-open="{kind}" aria-label="{word} {name}">{short}</button>'
        for kind, word, short in (("comment", "Comment on", "Comment"), ("correction", "Correct", "Correct"))
    )
    return f"""<div class="texts">{openers}</div><label class="field" data-field="comment" hidden>Comment on {name}
<textarea rows="2"></textarea></label><label class="field" data-field="correction" data-source="{escape(step.text)}"
hidden>{name.capitalize()} as it should be<textarea rows="3"></textarea></label>"""


def _panel(name: str, label: str, word: str, more: str = "") -> str:
    return f"""<form data-panel="{name}" hidden><label>{label} <input autocomplete="off" maxlength="4000"></label>
<button class="button primary">{word}</button>{more}
<button type="button" class="button" data-act="close">Close</button></form>"""


_UNFLAG = '<button type="button" class="button" data-act="unflag">Remove the flag</button>'
_TOOLS = f"""<div class="acts"><div class="told"></div>
{_panel("flag", "What is wrong with this problem?", "Flag it", _UNFLAG)}
{_panel("skip", "Why do you skip this trace? Somebody else gets it.", "Skip it")}
<div class="row" role="toolbar" aria-label="This trace">
<button type="button" class="button" data-act="undo" aria-keyshortcuts="z">Undo</button>
<button type="button" class="button" data-act="redo" aria-keyshortcuts="Shift+Z">Redo</button>
<button type="button" class="button" data-act="flag" aria-keyshortcuts="f" aria-pressed="false">Flag</button>
<button type="button" class="button" data-act="skip" aria-keyshortcuts="x">Skip</button>
<span class="status"></span><button type="button" class="button" data-act="submit">Submit</button></div>
<p class="said" role="status"></p></div>"""
