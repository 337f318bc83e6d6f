"""Disputes of a benchmark's labels: who may do what with them, and that nothing of them goes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Barrier
from typing import Any

import pytest
from sqlalchemy import delete, update
from sqlalchemy.exc import DatabaseError

from stepsight.core.errors import UserError
from stepsight.storage.database.labelling_schema import DisputeEntryRow, DisputeRow
from stepsight.storage.database.people_schema import UserRow
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError
from stepsight.storage.labelling.disputes import (
    DisputeFilter,
    DisputeState,
    add_entry,
    count_disputes,
    disputed_datasets,
    get_dispute,
    list_disputes,
    open_dispute,
)
from stepsight.storage.people.users import Role
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.samples import campaign, label_all, people, person, take
from tests.storage.samples import CLEAN, ERROR, FIRST_ERROR, add


@pytest.fixture
def traces(store):
    """`error` says pos and neg of its two steps, `clean` pos of its one."""
    return add(store, [ERROR, CLEAN])


@pytest.fixture
def anna(store):
    return person(store, "anna")


@pytest.fixture
def judge(store):
    return person(store, "judge", Role.ADJUDICATOR)


def filed(store, traces, user, **changes):
    """That step 2 of `error` is pos."""
    given: dict[str, Any] = {"trace_id": traces[0].trace_id, "step": 1, "proposed": "pos", "reason": "It is right."}
    return open_dispute(store, **(given | {"user": user} | changes))


def test_a_dispute(store, traces, anna):
    made = filed(store, traces, anna, reason=" It is right.\n")
    assert (made.trace, made.dataset, made.step) == ("error", "sums", 1)
    assert (made.gold, made.proposed, made.reason) == ("neg", "pos", "It is right.")
    assert (made.user, made.state, made.changed, made.entries) == ("anna", DisputeState.OPEN, False, ())
    assert made.digest == traces[0].digest
    assert get_dispute(store, made.id) == made


def test_possible_gold_values_of_a_benchmark_with_validity_only(store, anna):
    (trace,) = add(store, [FIRST_ERROR], "first errors")
    said = [
        open_dispute(store, trace.trace_id, step, proposed, "So.", anna).gold
        for step, proposed in ((0, "neg"), (1, "valid"), (2, "valid"))
    ]
    assert said == ["valid", "neg", None]
    with refused():
        open_dispute(store, trace.trace_id, 1, "pos", "So.", anna)


@each(
    "changes, kind",
    [
        ({"trace_id": 99999}, NotFoundError),
        ({"step": 2}, UserError),
        ({"step": -1}, UserError),
        ({"proposed": "neg"}, UserError),
        ({"proposed": "unsure"}, UserError),
        ({"proposed": "valid"}, UserError),
        ({"reason": ""}, UserError),
        ({"digest": "0" * 64}, ConflictError),
    ],
)
def test_impossible_disputes_are_refused(store, traces, anna, changes, kind):
    with refused(kind):
        filed(store, traces, anna, **changes)
    assert list_disputes(store) == []


def test_the_same_is_filed_once_by_one_person(store, traces, anna):
    first = filed(store, traces, anna)
    with refused(ConflictError):
        filed(store, traces, anna)
    filed(store, traces, anna, proposed="neu")
    filed(store, traces, anna, proposed=None)
    with pytest.raises(ConflictError):
        filed(store, traces, anna, proposed=None)
    filed(store, traces, person(store, "ben"))
    # Withdrawn, it may come again.
    add_entry(store, first.id, anna, "", DisputeState.WITHDRAWN)
    filed(store, traces, anna)
    assert len(list_disputes(store)) == 5


def test_a_discussion(store, traces, anna, judge):
    made = filed(store, traces, anna)
    add_entry(store, made.id, judge, "Why?")
    # Pressed twice.
    add_entry(store, made.id, judge, "Why?")
    add_entry(store, made.id, anna, "See step 1.")
    add_entry(store, made.id, judge, "Agreed.", DisputeState.ACCEPTED)
    found = get_dispute(store, made.id)
    assert [(one.user, one.state, one.text) for one in found.entries] == [
        ("judge", None, "Why?"),
        ("anna", None, "See step 1."),
        ("judge", DisputeState.ACCEPTED, "Agreed."),
    ]
    assert found.state == DisputeState.ACCEPTED
    with refused():
        add_entry(store, made.id, anna, " ")
    with pytest.raises(NotFoundError):
        add_entry(store, 99999, anna, "Hm.")


STATES = {
    # From a state, what its author can do, and what an adjudicator.
    DisputeState.OPEN: ({DisputeState.WITHDRAWN}, {DisputeState.ACCEPTED, DisputeState.REJECTED}),
    DisputeState.ACCEPTED: (set(), {DisputeState.OPEN, DisputeState.REJECTED}),
    DisputeState.REJECTED: (set(), {DisputeState.OPEN, DisputeState.ACCEPTED}),
    DisputeState.WITHDRAWN: ({DisputeState.OPEN}, set()),
}


@pytest.mark.parametrize("state", DisputeState)
def test_the_states_that_each_role_may_set(store, traces, anna, judge, state):
    made = filed(store, traces, anna)
    if state != DisputeState.OPEN:
        add_entry(store, made.id, anna if state == DisputeState.WITHDRAWN else judge, "", state)
    made = get_dispute(store, made.id)
    by_author, by_adjudicator = STATES[state]
    assert [set(made.possible(who)) for who in (anna, judge, person(store, "ben"))] == [
        by_author, by_adjudicator, set(),
    ]  # fmt: skip
    for wanted in DisputeState:
        for who, allowed in ((anna, by_author), (judge, by_adjudicator)):
            if wanted in allowed:
                continue
            kind = ForbiddenError if wanted in by_author | by_adjudicator else ConflictError
            with pytest.raises(kind):
                add_entry(store, made.id, who, "So.", wanted)
    assert get_dispute(store, made.id) == made


def test_an_adjudicator_accepts_their_own_dispute_only_if_nobody_else_could(store, traces, judge):
    made = filed(store, traces, judge)
    add_entry(store, made.id, judge, "", DisputeState.ACCEPTED)
    add_entry(store, made.id, judge, "", DisputeState.OPEN)
    boss = person(store, "boss", Role.ADMIN)
    assert DisputeState.ACCEPTED in get_dispute(store, made.id).possible(judge)
    # Somebody without a password cannot log in, and so does not count.
    with store.write() as session:
        session.execute(update(UserRow).where(UserRow.id == boss.id).values(password="hashed"))
    assert DisputeState.ACCEPTED not in get_dispute(store, made.id).possible(judge)
    with refused(ForbiddenError):
        add_entry(store, made.id, judge, "", DisputeState.ACCEPTED)
    assert add_entry(store, made.id, boss, "", DisputeState.ACCEPTED).state == DisputeState.ACCEPTED


def test_two_labels_of_a_step_are_not_accepted(store, traces, anna, judge):
    one, two = filed(store, traces, anna), filed(store, traces, anna, proposed="neu")
    same, other = filed(store, traces, judge), filed(store, traces, anna, step=0, proposed="neu")
    for dispute in (one, same, other):
        add_entry(store, dispute.id, judge, "", DisputeState.ACCEPTED)
    with refused(ConflictError):
        add_entry(store, two.id, judge, "", DisputeState.ACCEPTED)
    for dispute in (one, same):
        add_entry(store, dispute.id, judge, "", DisputeState.REJECTED)
    assert add_entry(store, two.id, judge, "", DisputeState.ACCEPTED).state == DisputeState.ACCEPTED


def at_once(*acts):
    """Do all of them at the same time; gives how each ended, sorted."""

    def ended(act: Callable[[], object]) -> str:
        start.wait()
        try:
            act()
        except ConflictError:
            return "refused"
        return "done"

    start = Barrier(len(acts))
    with ThreadPoolExecutor(len(acts)) as pool:
        return sorted(pool.map(ended, acts))


def test_people_who_act_at_once(store, traces, anna, judge):
    # The same is filed once, and of two labels of a step one is accepted.
    assert at_once(*[partial(filed, store, traces, anna)] * 4) == ["done", "refused", "refused", "refused"]
    filed(store, traces, anna, proposed="neu")
    accepting = [
        partial(add_entry, store, one.id, judge, "", DisputeState.ACCEPTED) for one in list_disputes(store)
    ]
    assert at_once(*accepting) == ["done", "refused"]
    assert count_disputes(store)[DisputeState.ACCEPTED] == 1


def test_a_trace_that_has_changed(store, traces, anna, judge):
    made = filed(store, traces, anna)
    with store.write() as session:
        session.execute(update(TraceRow).where(TraceRow.id == made.trace_id).values(digest="0" * 64))
    assert get_dispute(store, made.id).changed
    with refused(ConflictError):
        add_entry(store, made.id, judge, "", DisputeState.ACCEPTED)
    assert add_entry(store, made.id, judge, "", DisputeState.REJECTED).state == DisputeState.REJECTED


def test_lists(store, traces, anna, judge):
    add(store, [ERROR], "more")
    first, second = filed(store, traces, anna), filed(store, traces, judge, step=0, proposed=None)
    third = filed(store, traces, anna, trace_id=traces[1].trace_id, step=0, proposed="neu")
    add_entry(store, second.id, judge, "", DisputeState.ACCEPTED)

    def ids(which: DisputeFilter = DisputeFilter(), **part: int) -> list[int]:  # noqa: B008
        return [one.id for one in list_disputes(store, which, **part)]

    assert ids() == [third.id, second.id, first.id]
    assert ids(start=1, limit=1) == [second.id]
    assert ids(DisputeFilter(state=DisputeState.OPEN)) == [third.id, first.id]
    assert ids(DisputeFilter(state=DisputeState.ACCEPTED)) == [second.id]
    assert ids(DisputeFilter(trace_id=traces[1].trace_id)) == [third.id]
    assert ids(DisputeFilter(trace_id=2**40)) == []
    assert (ids(DisputeFilter(dataset="sums")), ids(DisputeFilter(dataset="more"))) == (ids(), [])
    counts = count_disputes(store, DisputeFilter(dataset="sums", state=DisputeState.OPEN))
    assert counts == {
        DisputeState.OPEN: 2,
        DisputeState.ACCEPTED: 1,
        DisputeState.REJECTED: 0,
        DisputeState.WITHDRAWN: 0,
    }
    assert disputed_datasets(store) == ["sums"]


def test_an_annotator_sees_disputes_of_traces_they_are_unblinded_to(store, judge):
    (anna, ben), first = people(store, 2), campaign(store, overlap=2, after_submission="everything")
    task = take(store, first, anna)
    label_all(store, task, anna, ["pos", "neg"])
    two = open_dispute(store, task.trace.trace_id, 0, "neg", "So.", judge)
    open_dispute(store, take(store, first, anna).trace.trace_id, 0, "neg", "So.", judge)
    assert [one.id for one in list_disputes(store, DisputeFilter(unblinded_for=anna))] == [two.id]
    assert count_disputes(store, DisputeFilter(unblinded_for=anna))[DisputeState.OPEN] == 1
    assert list_disputes(store, DisputeFilter(unblinded_for=ben)) == []
    assert (disputed_datasets(store, anna), disputed_datasets(store, ben)) == (["sums"], [])


def test_nothing_is_changed_or_deleted(store, traces, anna):
    made = filed(store, traces, anna)
    add_entry(store, made.id, anna, "Hm.")
    for table in (DisputeRow, DisputeEntryRow):
        for statement in (delete(table), update(table).values(user_id=anna.id)):
            with pytest.raises(DatabaseError, match="append-only"), store.write() as session:
                session.execute(statement)
    assert len(get_dispute(store, made.id).entries) == 1
