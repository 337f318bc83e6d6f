"""What a person is shown of a trace beside the text: an evaluator's scores, the labels that it suggests, and the
review.

The review, with gold labels, scores and other people's labels, appears once the annotation is submitted. Scores
appear earlier if the campaign shows them. Such a campaign can also fill in the labels that its evaluator suggests
before a person labels a trace: its labels are not blind anyway. The suggestions are logged as one event of the
kind `SUGGEST` under the name of the person who got the trace, so that the log shows permanently what the evaluator
suggested and what the person changed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from stepsight.core.judgment import Mode
from stepsight.core.scores import Outputs, Thresholds
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import outputs_of_evaluator, thresholds_in_force
from stepsight.storage.judgments.judgments import StoredJudgment, read_judgments, read_many, standing
from stepsight.storage.labelling.annotation import SUGGEST, Annotation, needed_labels, read_events
from stepsight.storage.labelling.plan import AfterSubmission, Shows
from stepsight.storage.labelling.record import LEASED, SUBMITTED, Slot, check_owner, load_slot
from stepsight.storage.labelling.submissions import read_annotations
from stepsight.storage.people.blindness import is_unblinded
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import StoredTrace, get_trace

# An evaluator's verdict on the whole trace is shown if there is one.
_MODES = (Mode.OFFLINE, Mode.ONLINE)


@dataclass(frozen=True)
class ShownScores:
    """An evaluator's scores of the visible steps in one mode. A missing score is None. If the evaluator gives only
    validity, every redundancy is None. If `in_words` is True, the scores stand for a verdict in words."""

    evaluator: str
    mode: Mode
    validity: tuple[float | None, ...]
    redundancy: tuple[float | None, ...]
    in_words: bool = False


@dataclass(frozen=True)
class PeerAnnotation:
    """Another person's submitted annotation, without their name."""

    labels: tuple[str | None, ...]
    errors: tuple[str | None, ...]


@dataclass(frozen=True)
class Review:
    """A trace with its gold labels, evaluators' scores, and the annotations that other people submitted."""

    trace: StoredTrace
    scores: tuple[ShownScores, ...]
    peers: tuple[PeerAnnotation, ...]


def read_review(store: Store, public_id: str, user: User) -> Review | None:
    """Return what a person is shown after submitting an annotation.

    The campaign decides whether the review contains everything or only the gold labels. The result is None before
    submission and if the campaign shows nothing. It is also None while an open blind campaign may still give the
    person the same text, or if an open campaign that contains the text shows nothing after submission.

    Raises `NotFoundError`, `ForbiddenError` and `ConflictError` in the same cases as
    `storage.labelling.queue.open_slot`.
    """
    slot = _load_own_slot(store, public_id, user)
    shown = slot.settings.after_submission
    if (
        slot.row.state != SUBMITTED
        or shown is AfterSubmission.NOTHING
        or not is_unblinded(store, user, slot.trace.id)
    ):
        return None
    trace = get_trace(store, slot.trace.id)
    if shown is AfterSubmission.GOLD:
        return Review(trace, (), ())
    with store.read() as session:
        annotations = read_annotations(session, slot.campaign.id, slot.item.id)
    peers = (
        PeerAnnotation(annotation.labels, annotation.errors)
        for annotation in annotations
        if annotation.user_id != user.id
    )
    return Review(trace, shown_scores(trace, read_judgments(store, trace)), tuple(peers))


def read_scores(store: Store, public_id: str, user: User, annotation: Annotation) -> tuple[ShownScores, ...]:
    """Return the scores of the revealed steps by the campaign's evaluator, or () if the campaign hides scores. In a
    stepwise campaign the scores are online, because offline scores depend on steps that are not yet revealed."""
    slot = _load_own_slot(store, public_id, user)
    if slot.settings.shows is not Shows.SCORES:
        return ()
    if not slot.settings.stepwise:
        return _evaluator_scores(store, slot, _MODES)
    end = annotation.revealed
    return tuple(
        replace(scores, validity=scores.validity[:end], redundancy=scores.redundancy[:end])
        for scores in _evaluator_scores(store, slot, (Mode.ONLINE,))
    )


def _load_own_slot(store: Store, public_id: str, user: User) -> Slot:
    with store.read() as session:
        slot = load_slot(session, public_id)
        check_owner(slot, user)
        return slot


def _evaluator_scores(store: Store, slot: Slot, modes: Sequence[Mode]) -> tuple[ShownScores, ...]:
    """Return the scores of the campaign's evaluator."""
    if slot.campaign.evaluator_id is None:
        return ()
    trace = get_trace(store, slot.trace.id)
    return shown_scores(trace, read_many(store, [trace], slot.campaign.evaluator_id)[0], modes)


def shown_scores(
    trace: StoredTrace, judgments: Sequence[StoredJudgment], modes: Sequence[Mode] = _MODES
) -> tuple[ShownScores, ...]:
    """Return each evaluator's scores of steps in the first of these modes in which some stand, sorted by evaluator
    name."""
    by_evaluator: dict[int, list[StoredJudgment]] = {}
    for judgment in judgments:
        if judgment.evaluator.outputs.has_steps:
            by_evaluator.setdefault(judgment.evaluator.id, []).append(judgment)
    shown = []
    for own in by_evaluator.values():
        standing_ones = ((mode, standing(own, mode)) for mode in modes)
        shown += [_scores(trace, judgment, mode) for mode, judgment in standing_ones if judgment is not None][:1]
    return tuple(sorted(shown, key=lambda scores: scores.evaluator))


def _scores(trace: StoredTrace, judgment: StoredJudgment, mode: Mode) -> ShownScores:
    scores = judgment.online if mode is Mode.ONLINE else judgment.offline
    assert scores is not None
    steps, evaluator = scores.by_step(trace.owners), judgment.evaluator
    missing = [not row.any() for row in steps.probs]
    validity, redundancy = (
        tuple(None if none else round(float(value), 4) for none, value in zip(missing, values, strict=True))
        for values in (steps.validity, steps.redundancy)
    )
    if evaluator.outputs == Outputs.VALIDITY:
        redundancy = (None,) * len(validity)
    return ShownScores(evaluator.name, mode, validity, redundancy, evaluator.outputs.in_words)


def add_suggestions(store: Store, public_id: str, user: User) -> None:
    """Start the annotation of a slot's trace with the labels that the campaign's evaluator suggests.

    Nothing is added if the person has already worked on the trace, or if the evaluator has not judged it.
    """
    with store.read() as session:
        slot = load_slot(session, public_id)
        if slot.row.state != LEASED or read_events(session, slot.item.id, user.id):
            return
    labels = _suggest_labels(store, slot)
    if not any(labels):
        return
    with store.write() as session:
        # Two pages of the same person may send this request at the same time.
        slot = load_slot(session, public_id)
        is_held = slot.row.state == LEASED and slot.row.user_id == user.id
        if is_held and not read_events(session, slot.item.id, user.id):
            key = f"{SUGGEST}-{slot.row.id}"
            session.add(EventRow(kind=SUGGEST, new=list(labels), cause="", key=key, **slot.of_event(user)))


def _suggest_labels(store: Store, slot: Slot) -> Sequence[str | None]:
    shown = _evaluator_scores(store, slot, _MODES)
    if slot.campaign.evaluator_id is None or not shown:
        return ()
    with store.read() as session:
        thresholds = thresholds_in_force(session, slot.campaign.evaluator_id)
        outputs = outputs_of_evaluator(session, slot.campaign.evaluator_id)
    labels = labels_of(shown[0], thresholds, after_error=slot.settings.after_error)
    if outputs == Outputs.CHECKS:
        # A step is not right merely because it passes its checks.
        return [label if label == "neg" else None for label in labels]
    return labels


def labels_of(scores: ShownScores, thresholds: Thresholds, *, after_error: bool) -> Sequence[str | None]:
    """Return the suggested label of each step.

    The label is `neg` if the validity is below its threshold, `neu` if the redundancy reaches its threshold, and
    `pos` otherwise. It is None for a step without scores and, unless `after_error` is set, for every step after the
    first `neg`.
    """
    labels: list[str | None] = []
    for validity, redundancy in zip(scores.validity, scores.redundancy, strict=True):
        if validity is None:
            labels.append(None)
        elif validity < thresholds.validity:
            labels.append("neg")
        else:
            labels.append("neu" if redundancy is not None and redundancy >= thresholds.redundancy else "pos")
    return needed_labels(labels, after_error)
