"""What people said of a trace, beside its gold and its evaluators, for those who may see it."""

from collections.abc import Sequence
from html import escape

from stepsight.app.web.rights import Right, may
from stepsight.app.web.text import text_html
from stepsight.storage.database.store import Store
from stepsight.storage.labelling.results.answers import SubmittedAnnotation
from stepsight.storage.labelling.results.consensus import TraceLabels, read_trace_labels
from stepsight.storage.people.exposures import LABELS, note_exposure
from stepsight.storage.people.users import User

_MARKS = {"neg": "✕", "neu": "○", "pos": "✓", "unsure": "?"}
_HOW = {
    "adjudicated": "decided",
    "majority": "majority",
    "tie": "a tie",
    "unsure": "unsure",
    "none": "nobody",
}


class PeopleSaid:
    """People's labels of a trace as `user` may see them, None: somebody who is not logged in.

    What annotators agree on is for all who see the trace, save for who has begun to label it in a blind campaign;
    while a campaign is open, not for somebody unknown. Each one's labels are shown once the campaign is closed, and
    before that to who runs it. That a person sees labels of an open campaign is noted before they are shown.
    """

    def __init__(self, store: Store, trace_id: int, user: User | None) -> None:
        found = read_trace_labels(store, trace_id, user)
        self.hidden = any(one.ahead for one in found)
        self._shown = [
            one for one in found if not self.hidden and (user is not None or one.campaign.closed is not None)
        ]
        self._manages = user is not None and may(user, Right.MANAGE, store)
        self._known = user is not None
        if user is not None and any(one.campaign.closed is None for one in self._shown):
            note_exposure(store, user.id, [trace_id], LABELS)

    @property
    def labels(self) -> tuple[str | None, ...]:
        """What the annotators of the newest campaign agree on, one per step; () where there is nothing to show."""
        return self._shown[0].consensus.labels if self._shown else ()

    @property
    def words(self) -> str:
        """In a few words, for the line below the trace."""
        if self.hidden:
            return "hidden until you have submitted yours"
        if not self._shown:
            return "none yet"
        return ", ".join(f"{_annotators(one)} in {one.campaign.name}" for one in self._shown)

    def html(self) -> str:
        """A table for each campaign: a row per step, what is agreed on, and what each one said."""
        if not self._shown:
            return ""
        tables = "".join(self._table(one) for one in self._shown)
        return f'<section class="people"><h2>Labels by people</h2>{tables}</section>'

    def _table(self, one: TraceLabels) -> str:
        each = one.annotations if self._known and (self._manages or one.campaign.closed is not None) else ()
        titles = "".join(
            f'<th scope="col">{escape(annotation.user)}{_seen(annotation)}</th>' for annotation in each
        )
        rows = "".join(_row(one, each, step) for step in range(len(one.consensus.labels)))
        state = "open" if one.campaign.closed is None else "closed"
        flags = "".join(f'<p class="hint">{_flag(annotation)}</p>' for annotation in each if annotation.flag)
        return f"""<h3>{escape(one.campaign.name)} <span>{state}, {_annotators(one)}</span></h3>
<div class="scroll" tabindex="0" role="region" aria-label="Labels in {escape(one.campaign.name)}"><table>
<thead><tr><th scope="col">Step</th><th scope="col">Agreed</th>{titles}</tr></thead>
<tbody>{rows}</tbody></table></div>{flags}"""


def agreed_html(labels: Sequence[str | None], number: int) -> str:
    """What people agree on of a step, beside its text; nothing where they do not."""
    label = labels[number] if number < len(labels) else None
    return "" if label is None else f'<em class="people">people: {_MARKS[label]} {label}</em>'


def _annotators(one: TraceLabels) -> str:
    return f"{len(one.annotations)} annotator{'' if len(one.annotations) == 1 else 's'}"


def _row(one: TraceLabels, each: Sequence[SubmittedAnnotation], step: int) -> str:
    how = _HOW[one.consensus.how[step]]
    cells = "".join(f"<td>{_said(annotation, step)}</td>" for annotation in each)
    agreed = f"{_label(one.consensus.labels[step])} <small>{how}</small>"
    return f'<tr><th scope="row">{step + 1}</th><td>{agreed}</td>{cells}</tr>'


def _said(annotation: SubmittedAnnotation, step: int) -> str:
    """One annotator's label, with what else they said of the step."""
    notes = [annotation.errors.get(step, "").replace("_", " ")]
    notes += [annotation.comments.get(step, "")]
    notes += [f"should read: {annotation.corrections[step]}"] if step in annotation.corrections else []
    told = "".join(f"<small>{text_html(note)}</small>" for note in notes if note)
    first = annotation.first[step]
    changed = f"<small>first {first or 'unlabelled'}</small>" if first != annotation.labels[step] else ""
    return _label(annotation.labels[step]) + changed + told


def _label(label: str | None) -> str:
    if label is None:
        return '<span class="l none">unlabelled</span>'
    return f'<span class="l {label}">{_MARKS[label]} {label}</span>'


def _seen(annotation: SubmittedAnnotation) -> str:
    """Whose labels do not count, and why."""
    return f" <small>had seen {escape(', '.join(sorted(annotation.exposed)))}</small>" if annotation.exposed else ""


def _flag(annotation: SubmittedAnnotation) -> str:
    return f"{escape(annotation.user)} on the problem: {text_html(annotation.flag or '')}"
