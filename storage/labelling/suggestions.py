"""Labels suggested by an evaluator, which a campaign can fill in before a person labels a trace.

The suggestions are logged as one event of the kind `SUGGEST` under the name of the person who got the trace. The
log thus shows permanently what the evaluator suggested and what the person changed. Only campaigns that show scores
can suggest labels, because their labels are not blind anyway.
"""

from collections.abc import Sequence

from stepsight.core.scores import Outputs, Thresholds
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import outputs_of_evaluator, thresholds_in_force
from stepsight.storage.labelling.annotation import SUGGEST, needed_steps, read_events
from stepsight.storage.labelling.assignments import LEASED, Slot, load_slot
from stepsight.storage.labelling.review import ShownScores, scores_to_confirm
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import get_trace


def add_suggestions(store: Store, slot_id: int, user: User) -> None:
    """Start the annotation of a slot's trace with the labels that the campaign's evaluator suggests.

    Nothing is added if the person has already worked on the trace, or if the evaluator has not judged it.
    """
    with store.read() as session:
        slot = load_slot(session, slot_id)
        if slot.state != LEASED or read_events(session, slot.item_id, user.id):
            return
    labels = _suggested(store, slot)
    if not any(labels):
        return
    with store.write() as session:
        # Two pages of the same person may ask at once.
        slot = load_slot(session, slot_id, lock=True)
        is_held = slot.state == LEASED and slot.user_id == user.id
        if is_held and not read_events(session, slot.item_id, user.id):
            key = f"{SUGGEST}-{slot.id}"
            session.add(EventRow(kind=SUGGEST, new=list(labels), cause="", key=key, **slot.of_event(user)))


def labels_of(scores: ShownScores, thresholds: Thresholds, *, after_error: bool) -> list[str | None]:
    """Return the suggested label of each step.

    The label is `neg` if the validity is below its threshold, `neu` if the redundancy reaches its threshold, and
    `pos` otherwise. It is None for a step without scores and, unless `after_error` is set, for every step after the
    first `neg`.
    """
    pairs = zip(scores.validity, scores.redundancy, strict=True)
    labels = [_label(validity, redundancy, thresholds) for validity, redundancy in pairs]
    needed = needed_steps(labels, after_error)
    return [label if step < needed else None for step, label in enumerate(labels)]


def _label(validity: float | None, redundancy: float | None, thresholds: Thresholds) -> str | None:
    if validity is None:
        return None
    if validity < thresholds.validity:
        return "neg"
    return "neu" if redundancy is not None and redundancy >= thresholds.redundancy else "pos"


def _suggested(store: Store, slot: Slot) -> Sequence[str | None]:
    if slot.evaluator_id is None:
        return ()
    shown = scores_to_confirm(store, slot, get_trace(store, slot.trace_id))
    if not shown:
        return ()
    with store.read() as session:
        thresholds = thresholds_in_force(session, slot.evaluator_id)
        outputs = outputs_of_evaluator(session, slot.evaluator_id)
    labels = labels_of(shown[0], thresholds, after_error=slot.settings.after_error)
    if outputs == Outputs.CHECKS:
        # A step that passes its checks is not right merely by that.
        labels = [label if label == "neg" else None for label in labels]
    return labels
