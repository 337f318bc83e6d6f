"""Disputes of a benchmark's gold labels, which users file, discuss and decide.

Disputes and the entries in which they are discussed are append-only. A dispute is open until an adjudicator accepts
or rejects it or its author withdraws it. A later entry can reverse each of these decisions. Accepted disputes go
into the dataset's label patch. Authors do not accept their own, unless nobody else could.

A patch is applied to the gold labels that a measurement uses, in memory, and never changes stored gold labels. A
changed step gets exactly the value in the patch:

- `neg` makes the step wrong. `neu` and `pos` make it valid with that label, `valid` makes it valid
  without a label, and null removes both.
- The first error may change as a result. If a former first error is no longer an error, the steps after
  it keep their gold labels. If the benchmark does not label these steps (MR-MATH-invalid, ProcessBench),
  the steps up to the former error count, but the solution does not, because it is unknown whether it is
  free of errors. It counts once the patch makes every step valid. If the trace itself ends at the former
  error (PRM800K), it counts as a solution without errors.
- If steps are rated (MR-MATH-redundant), a step labelled neu (rating 0) is redundant. A step labelled
  neg is wrong and not redundant.
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.files.label_patch import LabelChange, Patch
from stepsight.core.metrics.table import codes_of_gold, gold_of_codes
from stepsight.core.trace import LABEL_NAMES, VALID, Label
from stepsight.storage.database.labelling_schema import Dispute, DisputeEntry
from stepsight.storage.database.schema import DatasetRow, StepRow, TraceRow, in_range, now
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError, Store
from stepsight.storage.judgments.columns import Gold, read_gold
from stepsight.storage.labelling.annotation import check_reason
from stepsight.storage.people.blindness import unblinded
from stepsight.storage.people.users import Role, User
from stepsight.storage.traces.queries import Dataset, get_trace

GoldValues = tuple[str | None, ...]

RATED: GoldValues = (*LABEL_NAMES, None)
OF_VALIDITY: GoldValues = (Label.NEG.text, VALID, None)


class DisputeState(StrEnum):
    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


# For each state, the states to which a dispute's author and an adjudicator can change it.
_BY_AUTHOR: Mapping[str, Sequence[DisputeState]] = {
    DisputeState.OPEN: (DisputeState.WITHDRAWN,),
    DisputeState.WITHDRAWN: (DisputeState.OPEN,),
}
_BY_ADJUDICATOR: Mapping[str, Sequence[DisputeState]] = {
    DisputeState.OPEN: (DisputeState.ACCEPTED, DisputeState.REJECTED),
    DisputeState.ACCEPTED: (DisputeState.OPEN, DisputeState.REJECTED),
    DisputeState.REJECTED: (DisputeState.OPEN, DisputeState.ACCEPTED),
}


def possible_states(dispute: Dispute, user: User) -> tuple[DisputeState, ...]:
    """Return the states into which a user may put a dispute. The author does not accept it if others may."""
    states: Sequence[DisputeState] = ()
    if user.role in (Role.ADJUDICATOR, Role.ADMIN):
        states = _BY_ADJUDICATOR.get(dispute.state, ())
    if user.id == dispute.user_id:
        if dispute.others_decide:
            states = [state for state in states if state != DisputeState.ACCEPTED]
        states = (*states, *_BY_AUTHOR.get(dispute.state, ()))
    return tuple(state for state in DisputeState if state in states)


@dataclass(frozen=True)
class DisputeFilter:
    """A filter of disputes by dataset, trace and state. None and "" match anything. If `unblinded_for` is a user,
    the filter matches only disputes about traces that this user may see unblinded (see `unblinded`)."""

    dataset: str = ""
    state: DisputeState | None = None
    trace_id: int | None = None
    unblinded_for: User | None = None


ANY_DISPUTE = DisputeFilter()


def open_dispute(
    store: Store, trace_id: int, step: int, proposed: str | None, reason: str, user: User, digest: str | None = None
) -> Dispute:
    """File a dispute. `digest` identifies the version of the trace that the user saw.

    Raises `NotFoundError` if the trace does not exist. Raises `ConflictError` if the trace has changed since the
    user saw it, or if the user already has the same dispute open. Raises `UserError` if the trace has no such step,
    if the proposal is not a possible gold label or equals the current one, or if no reason is given.
    """
    reason = check_reason(reason, "The dispute has no reason.")
    trace = get_trace(store, trace_id)
    if digest is not None and digest != trace.digest:
        raise ConflictError("The trace has changed since the page was loaded.", "Reload it.")
    if not 0 <= step < len(trace.steps):
        raise UserError(f"There is no step {step + 1}: the trace has {len(trace.steps)}.")
    gold, possible = trace.steps[step].gold, gold_values(store, trace.dataset_id)
    if proposed not in possible:
        offered = ", ".join(value or "null" for value in possible)
        raise UserError(f"The proposal is {proposed!r:.40}, expected {offered}.")
    if proposed == gold:
        raise UserError(f"The gold label of this step is already {gold or 'empty'}.", "Propose something else.")
    with store.write() as session:
        own = (Dispute.trace_id == trace_id, Dispute.step == step, Dispute.user_id == user.id)
        same = Dispute.proposed.is_not_distinct_from(proposed)
        earlier = session.scalar(select(Dispute.id).where(*own, same, Dispute.state == DisputeState.OPEN).limit(1))
        if earlier is not None:
            raise ConflictError("You have already disputed this label.", f"Add to dispute {earlier}.")
        row = Dispute(
            trace_id=trace_id,
            digest=trace.digest,
            step=step,
            gold=gold,
            proposed=proposed,
            reason=reason,
            user_id=user.id,
        )
        session.add(row)
        session.flush()
        dispute_id = row.id
    return get_dispute(store, dispute_id)


def add_entry(store: Store, dispute_id: int, user: User, text: str, state: DisputeState | None = None) -> Dispute:
    """Add a remark to a dispute, change its state, or both. If a user repeats their own last remark, nothing is
    added.

    Raises `NotFoundError` if the dispute does not exist, and `ForbiddenError` if the user may not set the state.
    Raises `ConflictError` if the current state does not allow the new one, if the trace has changed, or if a
    different label has been accepted for the step. Raises `UserError` if neither a remark nor a state is given.
    """
    remark = text.strip()
    if state is None or remark:
        remark = check_reason(text, "The entry has no text.", "Write something.")
    with store.write() as session:
        dispute = _require_dispute(session, dispute_id)
        if state is not None:
            _check_change(dispute, state, user)
            if state == DisputeState.ACCEPTED:
                _check_acceptance(session, dispute)
        last = dispute.entries[-1] if dispute.entries else None
        if state is not None or last is None or (last.user, last.text) != (user.name, remark):
            session.add(DisputeEntry(dispute_id=dispute.id, user_id=user.id, state=state, text=remark))
    return get_dispute(store, dispute_id)


def get_dispute(store: Store, dispute_id: int) -> Dispute:
    """Return the dispute with this id. Raises `NotFoundError` if the dispute does not exist."""
    with store.read() as session:
        return _require_dispute(session, dispute_id)


def list_disputes(
    store: Store, which: DisputeFilter = ANY_DISPUTE, start: int = 0, limit: int | None = None
) -> list[Dispute]:
    """List the disputes that match `which`, with their entries, newest first."""
    chosen = select(Dispute).where(*_conditions(which)).order_by(Dispute.id.desc())
    with store.read() as session:
        return list(session.scalars(chosen.offset(start).limit(limit)))


def count_disputes(store: Store, which: DisputeFilter = ANY_DISPUTE) -> dict[DisputeState, int]:
    """Count the matching disputes in each state. The state in `which` is ignored."""
    states = select(Dispute.state).select_from(Dispute).where(*_conditions(replace(which, state=None)))
    with store.read() as session:
        counts = Counter(session.scalars(states))
    return {state: counts[state] for state in DisputeState}


def disputed_datasets(store: Store, unblinded_for: User | None = None) -> list[str]:
    """Return the names of the datasets that have disputes, sorted. `unblinded_for` restricts them as in
    `DisputeFilter`."""
    names = select(Dispute.dataset).select_from(Dispute).distinct()
    with store.read() as session:
        return sorted(session.scalars(names.where(*_conditions(DisputeFilter(unblinded_for=unblinded_for)))))


def gold_values(store: Store, dataset_id: int) -> GoldValues:
    """Return the values that users can propose as the gold label of a step.

    If a benchmark only marks first errors (MR-MATH-invalid, ProcessBench), a step can be proposed as wrong or valid
    but not as neu or pos, because that step would be the only one on which the three classes, or redundancy, are
    measured. All three labels can be proposed if steps are rated (PRM800K, MR-MATH-redundant) or if no step has a
    gold label yet.
    """
    with store.read() as session:
        revision = session.scalar(select(DatasetRow.revision).where(DatasetRow.id == dataset_id))

    def read() -> GoldValues:
        steps = select(StepRow.trace_id).join(TraceRow, TraceRow.id == StepRow.trace_id)
        steps = steps.where(TraceRow.dataset_id == dataset_id).limit(1)
        with store.read() as session:
            rated = session.scalar(steps.where(StepRow.label != Label.NEG.value))
            marked = session.scalar(steps.where(StepRow.valid.is_not(None)))
        return OF_VALIDITY if rated is None and marked is not None else RATED

    return store.cache.get(("gold values", dataset_id), revision, read, sys.getsizeof)


def _conditions(which: DisputeFilter) -> list[ColumnElement[bool]]:
    conditions: list[ColumnElement[bool]] = []
    if which.dataset:
        conditions.append(Dispute.dataset == which.dataset)
    if which.state is not None:
        conditions.append(Dispute.state == which.state)
    if which.trace_id is not None:
        conditions.append(Dispute.trace_id == in_range(which.trace_id))
    if which.unblinded_for is not None:
        conditions.append(unblinded(Dispute.trace_id, which.unblinded_for))
    return conditions


def _require_dispute(session: Session, dispute_id: int) -> Dispute:
    dispute = session.get(Dispute, in_range(dispute_id))
    if dispute is None:
        raise NotFoundError(f"There is no dispute {dispute_id}.")
    return dispute


def _check_change(dispute: Dispute, state: DisputeState, user: User) -> None:
    if state in possible_states(dispute, user):
        return
    if state not in {*_BY_ADJUDICATOR.get(dispute.state, ()), *_BY_AUTHOR.get(dispute.state, ())}:
        raise ConflictError(
            f"Dispute {dispute.id} is {dispute.state}, it cannot become {state}.", "Reload the page."
        )
    if user.id == dispute.user_id and state == DisputeState.ACCEPTED and user.role is not Role.ANNOTATOR:
        raise ForbiddenError(
            f"You filed dispute {dispute.id}, so somebody else decides whether to accept it.",
            "Ask an adjudicator or an admin.",
        )
    who = "its author" if DisputeState.WITHDRAWN in (state, dispute.state) else "an adjudicator"
    raise ForbiddenError(f"Only {who} can mark dispute {dispute.id} as {state}.")


def _check_acceptance(session: Session, dispute: Dispute) -> None:
    """Raise `ConflictError` if a different label has been accepted for the step, or if the trace has changed."""
    if dispute.changed:
        raise ConflictError(f"The trace of dispute {dispute.id} has changed since.", "Reject it, or file it again.")
    same_step = (Dispute.trace_id == dispute.trace_id, Dispute.step == dispute.step, ~Dispute.changed)
    accepted = select(Dispute).where(*same_step, Dispute.state == DisputeState.ACCEPTED).order_by(Dispute.id)
    for other in session.scalars(accepted):
        if other.proposed != dispute.proposed:
            raise ConflictError(
                f"Dispute {other.id} on this step, which proposes {other.proposed or 'no label'}, is accepted.",
                "Reject that one first.",
            )


FILE = "label-patch.json"
"""The name of a patch that is made of accepted disputes, and of its file."""


def make_patch(
    store: Store, dataset: Dataset, state: DisputeState = DisputeState.ACCEPTED, name: str = ""
) -> tuple[Patch, list[Dispute]]:
    """Make a patch from a dataset's disputes in the given state. Return the patch and the disputes that were left
    out.

    Disputes whose trace has changed since are left out. If several disputes propose the same value for a step, only
    the oldest becomes a change. Raises `UserError` if two disputes propose different values for a step, or if there
    are no disputes.
    """
    disputes = list_disputes(store, DisputeFilter(dataset=dataset.name, state=state))
    changed = [dispute for dispute in disputes if dispute.changed]
    chosen: dict[tuple[str, int], Dispute] = {}
    unchanged = [dispute for dispute in disputes if not dispute.changed]
    for dispute in sorted(unchanged, key=lambda dispute: dispute.id):
        first = chosen.setdefault((dispute.trace, dispute.step), dispute)
        if first.proposed != dispute.proposed:
            raise UserError(
                f"Disputes {first.id} and {dispute.id} on the same step are {state}, but propose"
                f" {first.proposed or 'no label'} and {dispute.proposed or 'no label'}.",
                "Reject one of them first.",
            )
    if not chosen:
        others = f", but for {len(changed)} whose traces have changed" if changed else ""
        raise UserError(f"No dispute of {dataset.name} is {state}{others}.", "See the page Disputes.")
    moment = now().isoformat(timespec="seconds")
    changes = tuple(map(_change, chosen.values()))
    return Patch(dataset.name, dataset.sha256, moment, changes, name), changed


def find_accepted(store: Store, dataset: Dataset) -> tuple[Patch, frozenset[int]] | None:
    """Return the patch of a dataset's accepted disputes and the database ids of the traces that it changes, or None
    if no dispute is accepted whose trace is unchanged."""
    disputes = list_disputes(store, DisputeFilter(dataset=dataset.name, state=DisputeState.ACCEPTED))
    trace_ids = frozenset(dispute.trace_id for dispute in disputes if not dispute.changed)
    return (make_patch(store, dataset, name=FILE)[0], trace_ids) if trace_ids else None


def _change(dispute: Dispute) -> LabelChange:
    return LabelChange(
        trace=dispute.trace,
        digest=dispute.digest,
        step=dispute.step,
        old=dispute.gold,
        new=dispute.proposed,
        reason=dispute.reason,
        dispute=dispute.id,
        by=dispute.user,
        moment=dispute.moment.isoformat(timespec="seconds"),
    )


def check_patch(store: Store, dataset: Dataset, patch: Patch) -> None:
    """Raise `UserError` in the same cases as `apply_patch`, that is, if the patch does not fit the dataset."""
    apply_patch(read_gold(store, dataset), patch)


def apply_patch(gold: Gold, patch: Patch) -> Gold:
    """Return a copy of the gold labels with the patch applied.

    Raises `UserError`, with a message that names the change, if its trace is missing or the digest does not match,
    if the trace has no such step, or if the current gold label is not the one that the patch replaces.
    """
    places = {id: place for place, id in enumerate(gold.ids)}
    starts = np.cumsum(gold.counts) - gold.counts
    label, valid = gold.label.copy(), gold.valid.copy()
    for change in patch.changes:
        where = f"{patch.name or 'the patch'}, {change.place}"
        place = places.get(change.trace)
        if place is None:
            raise UserError(
                f"{where}: {gold.dataset.name} has no such trace.", f"It is a patch of {patch.dataset}."
            )
        digest = gold.digests[place]
        if digest != change.digest:
            raise UserError(
                f"{where}: the trace in {gold.dataset.name} differs ({digest:.12}…) from the one"
                f" that the patch was made for ({change.digest:.12}…).",
                "Import the file that the patch was made for, or export the patch again.",
            )
        if change.step >= gold.counts[place]:
            raise UserError(f"{where}: the trace has {gold.counts[place]} steps.", "Export the patch again.")
        row = int(starts[place]) + change.step
        value = gold_of_codes(label[row], valid[row])
        if value != change.old:
            raise UserError(
                f"{where}: the gold label is {value or 'empty'}, but the patch changes {change.old or 'none'}.",
                "Export the patch again.",
            )
        label[row], valid[row] = codes_of_gold(change.new)
    return replace(gold, label=label, valid=valid)
