"""The rows of the page of doubtful labels: each label with its step in context and the evidence against it."""

from collections.abc import Sequence
from itertools import chain
from urllib.parse import urlencode

from markupsafe import Markup

from stepsight.app.browse.hits import excerpt
from stepsight.app.browse.people import PeopleLabels, dispute_link
from stepsight.app.web.step_bars import checked_step, gold_html
from stepsight.storage.database.store import Store
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import StoredTrace, trace_batches
from stepsight.training.evaluate.doubtful import DoubtfulLabel

# Characters of the problem, and of a step beside the doubtful one.
_PROBLEM, _STEP = 240, 160


def label_rows(
    store: Store, labels: Sequence[DoubtfulLabel], user: User | None, *, may_dispute: bool
) -> list[dict[str, object]]:
    """Return the template's variables for labels. Labels of traces that were deleted in the meantime are left out.
    `user` is the viewer, or None if nobody is logged in."""
    ids = list(dict.fromkeys(one.trace_id for one in labels))
    traces = {trace.trace_id: trace for trace in chain.from_iterable(trace_batches(store, ids))}
    there = [(one, traces[one.trace_id]) for one in labels if one.trace_id in traces]
    return [_row(store, one, trace, user, may_dispute) for one, trace in there if one.step <= len(trace.steps)]


def _row(
    store: Store, label: DoubtfulLabel, trace: StoredTrace, user: User | None, may_dispute: bool
) -> dict[str, object]:
    """Return the template's variables for a label: its step between its neighbours, and the evidence against it."""
    shows_people = label.votes is not None and bool(PeopleLabels(store, trace.trace_id, user).labels)
    reason = label.reason(people=shows_people)
    filled = {"proposed": "neg" if label.valid else "valid", "reason": reason} if may_dispute else None
    near = range(max(label.step - 2, 0), min(label.step + 1, len(trace.steps)))
    return {
        "label": label,
        "url": f"/browse?{urlencode({'trace': trace.trace_id})}",
        "gold": gold_html(trace.steps[label.step - 1]),
        "problem": excerpt(trace.problem, _PROBLEM),
        "steps": [(step + 1, _step_html(trace, step, whole=step == label.step - 1)) for step in near],
        "reason": reason,
        "disputes": dispute_link(store, trace.trace_id, label.step, filled),
    }


def _step_html(trace: StoredTrace, step: int, *, whole: bool) -> Sequence[Markup | str]:
    """Return the texts of a step: the `whole` ones as HTML with failing equations marked, or an excerpt."""
    if not whole:
        return [excerpt(" ".join(trace.steps[step].substeps), _STEP)]
    return checked_step(trace, step)
