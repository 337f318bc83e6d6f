"""Disputes of a benchmark's gold labels, which users file, discuss and decide.

Disputes and the entries in which they are discussed are append-only. A dispute is open until an adjudicator accepts
or rejects it or its author withdraws it. A later entry can reverse each of these decisions. Accepted disputes go
into the dataset's label patch. Authors do not accept their own, unless nobody else could.
"""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from sqlalchemy import ColumnElement, and_, func, join, select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.trace import LABEL_NAMES, VALID, Label, gold_of
from stepsight.storage.database.labelling_schema import DisputeEntryRow, DisputeRow
from stepsight.storage.database.people_schema import UserRow
from stepsight.storage.database.schema import DatasetRow, StepRow, TraceRow, in_range
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError, Store
from stepsight.storage.labelling.annotation import check_reason
from stepsight.storage.people.blindness import unblinded
from stepsight.storage.people.users import Role, User
from stepsight.storage.traces.queries import get_trace

GoldValues = tuple[str | None, ...]

RATED: GoldValues = (*LABEL_NAMES, None)
OF_VALIDITY: GoldValues = (Label.NEG.text, VALID, None)


class DisputeState(StrEnum):
    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"


# By state, the states that a dispute's author, and an adjudicator, can set.
_BY_AUTHOR = {DisputeState.OPEN: (DisputeState.WITHDRAWN,), DisputeState.WITHDRAWN: (DisputeState.OPEN,)}
_BY_ADJUDICATOR = {
    DisputeState.OPEN: (DisputeState.ACCEPTED, DisputeState.REJECTED),
    DisputeState.ACCEPTED: (DisputeState.OPEN, DisputeState.REJECTED),
    DisputeState.REJECTED: (DisputeState.OPEN, DisputeState.ACCEPTED),
}


@dataclass(frozen=True)
class DisputeEntry:
    """A remark on a dispute. `state` is the state that the remark put the dispute into, or None if the state did
    not change."""

    user: str
    state: DisputeState | None
    text: str
    moment: datetime


@dataclass(frozen=True)
class Dispute:
    """A claim that the gold label of a step is wrong.

    `step` is 0-based. `gold` is the disputed label and `proposed` the label it should have; both are among
    `core.files.label_patch.GOLD_VALUES`. `digest` is the digest of the disputed trace, and `changed` is True if the
    trace has a different digest by now. `others_decide` is True if somebody other than the author may accept the
    dispute. The author then may not.
    """

    id: int
    trace_id: int
    trace: str
    dataset: str
    digest: str
    step: int
    gold: str | None
    proposed: str | None
    reason: str
    user_id: int
    user: str
    moment: datetime
    state: DisputeState
    changed: bool
    others_decide: bool
    entries: tuple[DisputeEntry, ...] = ()

    def possible(self, user: User) -> tuple[DisputeState, ...]:
        """Return the states into which a user may put the dispute."""
        states: Sequence[DisputeState] = ()
        if user.role in (Role.ADJUDICATOR, Role.ADMIN):
            states = _BY_ADJUDICATOR.get(self.state, ())
        if user.id == self.user_id:
            if self.others_decide:
                states = [state for state in states if state != DisputeState.ACCEPTED]
            states = (*states, *_BY_AUTHOR.get(self.state, ()))
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
    gold, possible = gold_of(trace.steps[step]), gold_values(store, trace.dataset_id)
    if proposed not in possible:
        offered = ", ".join(value or "null" for value in possible)
        raise UserError(f"The proposal is {proposed!r:.40}, and the gold can say {offered} here.")
    if proposed == gold:
        raise UserError(f"The gold says {gold or 'nothing'} of this step already.", "Propose something else.")
    with store.write() as session:
        # Locked until the transaction ends, so that nobody files the same dispute twice at once.
        session.get_one(TraceRow, trace_id, with_for_update=True)
        _refuse_twice(session, trace_id, step, proposed, user)
        row = DisputeRow(
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
        return _load(session, [row.id])[0]


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
        same_step = _hold(session, dispute_id)
        dispute = _existing(session, dispute_id)
        if state is not None:
            _check_change(dispute, state, user)
            if state == DisputeState.ACCEPTED:
                _check_acceptance(dispute, _load(session, same_step))
        last = dispute.entries[-1] if dispute.entries else None
        if state is None and last is not None and (last.user, last.text) == (user.name, remark):
            return dispute
        session.add(DisputeEntryRow(dispute_id=dispute.id, user_id=user.id, state=state, text=remark))
        session.flush()
        return _load(session, [dispute.id])[0]


def get_dispute(store: Store, dispute_id: int) -> Dispute:
    """Return the dispute with this id. Raises `NotFoundError` if the dispute does not exist."""
    with store.read() as session:
        return _existing(session, dispute_id)


def list_disputes(
    store: Store, which: DisputeFilter = ANY_DISPUTE, start: int = 0, limit: int | None = None
) -> list[Dispute]:
    """List the disputes that match `which`, with their entries, newest first."""
    chosen = select(DisputeRow.id).select_from(_TABLES).where(*_conditions(which))
    ids = chosen.order_by(DisputeRow.id.desc()).offset(start)
    with store.read() as session:
        return _load(session, session.scalars(ids if limit is None else ids.limit(limit)).all())


def count_disputes(store: Store, which: DisputeFilter = ANY_DISPUTE) -> dict[DisputeState, int]:
    """Count the matching disputes in each state. The state in `which` is ignored."""
    of_any = _conditions(replace(which, state=None))
    states = select(_last_state().label("state")).select_from(_TABLES).where(*of_any).subquery()
    grouped = select(states.c.state, func.count().label("number")).group_by(states.c.state)
    with store.read() as session:
        counts = {row.state: row.number for row in session.execute(grouped)}
    return {state: counts.get(state.value, 0) for state in DisputeState}


def disputed_datasets(store: Store, unblinded_for: User | None = None) -> list[str]:
    """Return the names of the datasets that have disputes, sorted. `unblinded_for` restricts them as in
    `DisputeFilter`."""
    conditions = _conditions(DisputeFilter(unblinded_for=unblinded_for))
    names = select(DatasetRow.name).distinct().select_from(_TABLES).where(*conditions)
    with store.read() as session:
        return list(session.scalars(names.order_by(DatasetRow.name)))


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


def _last_state() -> ColumnElement[str]:
    """Return an SQL expression for the current state of the dispute in the outer query."""
    entry = DisputeEntryRow
    states = select(entry.state).where(entry.dispute_id == DisputeRow.id, entry.state.is_not(None))
    return func.coalesce(states.order_by(entry.id.desc()).limit(1).scalar_subquery(), DisputeState.OPEN.value)


_TABLES = join(join(DisputeRow, TraceRow, TraceRow.id == DisputeRow.trace_id), DatasetRow)


def _conditions(which: DisputeFilter) -> list[ColumnElement[bool]]:
    """Convert the filter to SQL conditions on `_TABLES`."""
    conditions: list[ColumnElement[bool]] = []
    if which.dataset:
        conditions.append(DatasetRow.name == which.dataset)
    if which.state is not None:
        conditions.append(_last_state() == which.state.value)
    if which.trace_id is not None:
        conditions.append(DisputeRow.trace_id == in_range(which.trace_id))
    if which.unblinded_for is not None:
        conditions.append(unblinded(DisputeRow.trace_id, which.unblinded_for))
    return conditions


def _existing(session: Session, dispute_id: int) -> Dispute:
    disputes = _load(session, [in_range(dispute_id)])
    if not disputes:
        raise _missing(dispute_id)
    return disputes[0]


def _load(session: Session, ids: Sequence[int]) -> list[Dispute]:
    """Return the disputes with these ids, in the same order."""
    entries = _entries(session, ids)
    # Those who log in and may accept disputes.
    decides = UserRow.role.in_((Role.ADJUDICATOR.value, Role.ADMIN.value))
    logs_in = and_(UserRow.password.is_not(None), UserRow.ended.is_(None))
    able = set(session.scalars(select(UserRow.id).where(decides, logs_in)))
    statement = select(
        *DisputeRow.__table__.columns,
        TraceRow.external_id.label("trace"),
        DatasetRow.name.label("dataset"),
        UserRow.name.label("user"),
        _last_state().label("state"),
        (TraceRow.digest != DisputeRow.digest).label("changed"),
    ).select_from(join(_TABLES, UserRow, UserRow.id == DisputeRow.user_id))
    rows = session.execute(statement.where(DisputeRow.id.in_(ids))).mappings()
    disputes = {
        row["id"]: Dispute(
            **dict(row) | {"state": DisputeState(row["state"])},
            others_decide=bool(able - {row["user_id"]}),
            entries=tuple(entries.get(row["id"], ())),
        )
        for row in rows
    }
    return [disputes[id] for id in ids if id in disputes]


def _entries(session: Session, ids: Sequence[int]) -> Mapping[int, list[DisputeEntry]]:
    row = DisputeEntryRow
    entries: dict[int, list[DisputeEntry]] = {}
    rows = select(row.dispute_id, UserRow.name, row.state, row.text, row.moment)
    rows = rows.join(UserRow, UserRow.id == row.user_id).where(row.dispute_id.in_(ids)).order_by(row.id)
    for dispute_id, user, state, text, moment in session.execute(rows):
        entries.setdefault(dispute_id, []).append(
            DisputeEntry(user, None if state is None else DisputeState(state), text, moment)
        )
    return entries


def _refuse_twice(session: Session, trace_id: int, step: int, proposed: str | None, user: User) -> None:
    row = DisputeRow
    same = row.proposed.is_(None) if proposed is None else row.proposed == proposed
    mine = and_(row.trace_id == trace_id, row.step == step, same, row.user_id == user.id)
    earlier = session.scalar(select(row.id).where(mine, _last_state() == DisputeState.OPEN.value).limit(1))
    if earlier is not None:
        raise ConflictError("You have disputed this label already.", f"It is dispute {earlier}; add to that one.")


def _hold(session: Session, dispute_id: int) -> Sequence[int]:
    """Lock all disputes about the same step until the transaction ends, and return their ids.

    Concurrent changes to these disputes thus happen one after the other. To avoid deadlocks, the disputes are
    always locked in the order of their ids.
    """
    row = session.get(DisputeRow, in_range(dispute_id))
    if row is None:
        raise _missing(dispute_id)
    same = select(DisputeRow.id).where(DisputeRow.trace_id == row.trace_id, DisputeRow.step == row.step)
    return session.scalars(same.order_by(DisputeRow.id).with_for_update()).all()


def _missing(dispute_id: int) -> NotFoundError:
    return NotFoundError(f"There is no dispute {dispute_id}.")


def _check_change(dispute: Dispute, state: DisputeState, user: User) -> None:
    if state in dispute.possible(user):
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
    raise ForbiddenError(f"Only {who} can put dispute {dispute.id} into the state {state}.")


def _check_acceptance(dispute: Dispute, same_step: Sequence[Dispute]) -> None:
    """Raise `ConflictError` if a different label has been accepted for the step, or if the trace has changed."""
    if dispute.changed:
        raise ConflictError(f"The trace of dispute {dispute.id} has changed since.", "Reject it, or file it again.")
    for other in same_step:
        accepted = other.state == DisputeState.ACCEPTED and not other.changed
        if accepted and other.proposed != dispute.proposed:
            raise ConflictError(
                f"Dispute {other.id} of this step is accepted, which says {other.proposed or 'nothing'}.",
                "Reject that one first.",
            )
