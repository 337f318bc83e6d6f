"""Disputes of a benchmark's labels: who may do what with them, that nothing of them goes, and their patches."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from threading import Barrier
from typing import Any

import numpy as np
import pytest
from sqlalchemy import delete, update
from sqlalchemy.exc import DatabaseError

from stepsight.core.errors import UserError
from stepsight.core.files.label_patch import LabelChange, Patch, format_patch, parse_patch
from stepsight.core.metrics.table import SILENT
from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.database.labelling_schema import DisputeEntryRow, DisputeRow
from stepsight.storage.database.people_schema import UserRow
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError
from stepsight.storage.judgments.columns import read_gold
from stepsight.storage.labelling.disputes import (
    OF_VALIDITY,
    RATED,
    DisputeFilter,
    DisputeState,
    add_entry,
    count_disputes,
    disputed_datasets,
    get_dispute,
    gold_values,
    list_disputes,
    open_dispute,
)
from stepsight.storage.labelling.patches import apply_patch, check_patch, make_patch
from stepsight.storage.people.users import Role
from stepsight.storage.traces.queries import find_dataset
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.samples import campaign, label_all, people, person, take
from tests.storage.samples import CLEAN, ERROR, FIRST_ERROR, MISSING, add


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


# The first error alone, at the first step: no step of it is known to be valid.
AT_ONCE = Trace("at once", "What?", (Step(("a",), Label.NEG), Step(("b",))))


def test_by_what_the_dataset_says(store):
    add(store, [Trace.of("q", ["a", "b"], ["neg", "neu"], id="1")], "rated")
    add(store, [AT_ONCE, FIRST_ERROR], "first errors")
    add(store, [MISSING], "silent")
    found = {name: gold_values(store, find_dataset(store, name).id) for name in ("rated", "first errors", "silent")}
    assert found == {"rated": RATED, "first errors": OF_VALIDITY, "silent": RATED}
    assert OF_VALIDITY == ("neg", "valid", None)
    # It is read anew when the dataset has changed.
    add(store, [Trace.of("q", ["a"], ["pos"], id="2")], "first errors")
    assert gold_values(store, find_dataset(store, "first errors").id) == RATED


# Valid, neg, unlabelled.
TRACES = (ERROR, CLEAN, FIRST_ERROR)


@pytest.fixture
def stored(store):
    return add(store, TRACES)


@pytest.fixture
def dataset(store, stored):
    return find_dataset(store, "sums")


def patch(*changes):
    return Patch("sums", "", "", changes, "fixes.json")


def change(trace, step, old, new):
    return LabelChange(trace.id, trace.digest, step, old, new)


def said(gold):
    """Label and validity of each step, by trace."""
    pairs = list(zip(gold.label.tolist(), gold.valid.tolist(), strict=True))
    starts = np.cumsum(gold.counts) - gold.counts
    return {id: pairs[start : start + n] for id, start, n in zip(gold.ids, starts, gold.counts, strict=True)}


def test_from_a_dispute_to_changed_gold(store, stored, dataset, judge):
    one = open_dispute(store, stored[1].trace_id, 0, "neu", "Nothing needs it.", judge)
    two = open_dispute(store, stored[0].trace_id, 1, "pos", "So it is.", judge)
    open_dispute(store, stored[0].trace_id, 0, "neg", "Not accepted.", judge)
    for dispute in (one, two):
        add_entry(store, dispute.id, judge, "", DisputeState.ACCEPTED)
    made, left_out = make_patch(store, dataset, name="fixes.json")
    assert left_out == []
    assert (made.dataset, made.sha256, made.name) == ("sums", "0" * 64, "fixes.json")
    # By the trace's id: clean before error.
    assert [(one.trace, one.step, one.old, one.new, one.by, one.dispute) for one in made.changes] == [
        ("clean", 0, "pos", "neu", "judge", one.id),
        ("error", 1, "neg", "pos", "judge", two.id),
    ]
    gold = read_gold(store, dataset)
    assert said(gold)["error"] == [(Label.POS, 1), (Label.NEG, 0)]
    changed = apply_patch(gold, parse_patch(format_patch(made), "fixes.json"))
    assert said(changed) == said(gold) | {"clean": [(Label.NEU, 1)], "error": [(Label.POS, 1), (Label.POS, 1)]}
    # In memory only, and the judgments still belong to their traces.
    assert said(read_gold(store, dataset)) == said(gold)
    assert changed.digests is gold.digests
    opened, _ = make_patch(store, dataset, DisputeState.OPEN)
    assert [(one.step, one.new) for one in opened.changes] == [(0, "neg")]


@pytest.mark.parametrize(
    ("new", "label", "valid"),
    [("neg", 0, 0), ("neu", 1, 1), ("pos", 2, 1), ("valid", SILENT, 1), (None, SILENT, SILENT)],
)
def test_the_gold_of_a_patched_step(store, stored, dataset, new, label, valid):
    found = apply_patch(read_gold(store, dataset), patch(change(FIRST_ERROR, 2, None, new)))
    assert said(found)["first"] == [(SILENT, 1), (Label.NEG, 0), (label, valid)]


def test_a_first_error_that_is_none_leaves_what_follows_unlabelled(store, stored, dataset):
    found = apply_patch(read_gold(store, dataset), patch(change(FIRST_ERROR, 1, "neg", "valid")))
    assert said(found)["first"] == [(SILENT, 1), (SILENT, 1), (SILENT, SILENT)]


@pytest.mark.parametrize(
    "made",
    [
        change(Trace.of("q", ["a"], id="none"), 0, None, "pos"),
        replace(change(ERROR, 1, "neg", "pos"), digest="0" * 64),
        change(ERROR, 5, "neg", "pos"),
        change(ERROR, 0, "neg", "pos"),
        change(FIRST_ERROR, 2, "valid", "neg"),
    ],
)
def test_a_patch_that_does_not_fit(store, stored, dataset, made):
    with refused():
        check_patch(store, dataset, patch(change(CLEAN, 0, "pos", "neu"), made))


def test_changed_traces_are_left_out_and_contradictions_refused(store, stored, dataset, judge):
    with refused():
        make_patch(store, dataset)
    anna = person(store, "anna")
    one = open_dispute(store, stored[0].trace_id, 1, "pos", "So.", anna)
    two = open_dispute(store, stored[0].trace_id, 1, "pos", "Indeed.", judge)
    made, _ = make_patch(store, dataset, DisputeState.OPEN)
    # Two of the same are one change, the older.
    assert [change.dispute for change in made.changes] == [one.id]
    three = open_dispute(store, stored[0].trace_id, 1, "neu", "Or so.", judge)
    with refused():
        make_patch(store, dataset, DisputeState.OPEN)
    open_dispute(store, stored[1].trace_id, 0, "neu", "So.", judge)
    with store.write() as session:
        session.execute(update(TraceRow).where(TraceRow.id == stored[0].trace_id).values(digest="0" * 64))
    made, left_out = make_patch(store, dataset, DisputeState.OPEN)
    assert [change.trace for change in made.changes] == ["clean"]
    assert [dispute.id for dispute in left_out] == [three.id, two.id, one.id]


def test_only_disputes_of_changed_traces(store, stored, dataset, judge):
    made = open_dispute(store, stored[0].trace_id, 1, "pos", "So.", judge)
    add_entry(store, made.id, judge, "", DisputeState.ACCEPTED)
    with store.write() as session:
        session.execute(update(TraceRow).where(TraceRow.id == made.trace_id).values(digest="0" * 64))
    with refused():
        make_patch(store, dataset)


def test_a_step_that_is_wrong_without_a_label(store):
    trace = Trace("bare", "q", (Step(("a",), valid=True), Step(("b",), valid=False)))
    add(store, [trace], "bare")
    dataset = find_dataset(store, "bare")
    found = apply_patch(read_gold(store, dataset), patch(change(trace, 1, "neg", "valid")))
    assert said(found)["bare"] == [(SILENT, 1), (SILENT, 1)]
