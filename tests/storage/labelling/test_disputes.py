"""Disputes of a benchmark's labels: who may do what with them, that nothing of them goes, and their patches."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sqlalchemy import delete, update
from sqlalchemy.exc import DatabaseError

from stepsight.core.errors import UserError
from stepsight.core.files.label_patch import LabelChange, Patch, format_patch, parse_patch
from stepsight.core.metrics.table import SILENT
from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.database.labelling_schema import Dispute, DisputeEntry
from stepsight.storage.database.schema import TraceRow, UserRow
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError
from stepsight.storage.judgments.columns import read_gold
from stepsight.storage.labelling.disputes import (
    OF_VALIDITY,
    RATED,
    DisputeFilter,
    DisputeState,
    add_entry,
    apply_patch,
    check_patch,
    count_disputes,
    disputed_datasets,
    get_dispute,
    gold_values,
    list_disputes,
    make_patch,
    open_dispute,
    possible_states,
)
from stepsight.storage.people.users import Role
from stepsight.storage.traces.queries import find_dataset
from tests.cases import each
from tests.messages import refused
from tests.storage.labelling.samples import Scene, person
from tests.storage.samples import CLEAN, ERROR, FIRST_ERROR, MISSING, add

OPEN, ACCEPTED, REJECTED, WITHDRAWN = (
    DisputeState.OPEN,
    DisputeState.ACCEPTED,
    DisputeState.REJECTED,
    DisputeState.WITHDRAWN,
)


@pytest.fixture
def traces(store):
    """`error` says pos and neg of its two steps, `clean` pos of its one, `first` valid, neg and nothing."""
    return add(store, [ERROR, CLEAN, FIRST_ERROR])


@pytest.fixture
def dataset(store, traces):
    return find_dataset(store, "sums")


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


def accept(store, dispute, judge):
    return add_entry(store, dispute.id, judge, "", ACCEPTED)


def change_trace(store, trace_id):
    with store.write() as session:
        session.execute(update(TraceRow).where(TraceRow.id == trace_id).values(digest="0" * 64))


def test_a_dispute(store, traces, anna):
    made = filed(store, traces, anna, reason=" It is right.\n")
    assert (made.trace, made.dataset, made.step, made.digest) == ("error", "sums", 1, traces[0].digest)
    assert (made.gold, made.proposed, made.reason) == ("neg", "pos", "It is right.")
    assert (made.user, made.state, made.changed, made.entries) == ("anna", OPEN, False, [])


def test_possible_gold_is_what_the_dataset_says(store, anna):
    # The first error alone, at the first step: no step of it is known to be valid.
    at_once = Trace("at once", "What?", (Step(("a",), Label.NEG), Step(("b",))))
    add(store, [Trace.of("q", ["a", "b"], ["neg", "neu"], id="1")], "rated")
    _, trace = add(store, [at_once, FIRST_ERROR], "first errors")
    add(store, [MISSING], "silent")
    names = ("rated", "first errors", "silent")
    assert [gold_values(store, find_dataset(store, name).id) for name in names] == [RATED, OF_VALIDITY, RATED]
    assert OF_VALIDITY == ("neg", "valid", None)
    disputed = [
        open_dispute(store, trace.trace_id, step, proposed, "So.", anna).gold
        for step, proposed in ((0, "neg"), (1, "valid"), (2, "valid"))
    ]
    assert disputed == ["valid", "neg", None]
    with refused():
        open_dispute(store, trace.trace_id, 1, "pos", "So.", anna)
    # It is read anew when the dataset has changed.
    add(store, [Trace.of("q", ["a"], ["pos"], id="2")], "first errors")
    assert gold_values(store, find_dataset(store, "first errors").id) == RATED


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
    add_entry(store, first.id, anna, "", WITHDRAWN)
    filed(store, traces, anna)
    assert len(list_disputes(store)) == 5


def test_a_discussion_that_keeps_all_that_was_said(store, traces, anna, judge):
    made = filed(store, traces, anna)
    # The first is sent twice.
    for user, text in ((judge, "Why?"), (judge, "Why?"), (anna, "See step 1.")):
        add_entry(store, made.id, user, text)
    discussed = add_entry(store, made.id, judge, "Agreed.", ACCEPTED)
    assert [(one.user, one.state, one.text) for one in discussed.entries] == [
        ("judge", None, "Why?"),
        ("anna", None, "See step 1."),
        ("judge", ACCEPTED, "Agreed."),
    ]
    assert discussed.state == ACCEPTED
    with refused():
        add_entry(store, made.id, anna, " ")
    with pytest.raises(NotFoundError):
        add_entry(store, 99999, anna, "Hm.")
    for table in (Dispute, DisputeEntry):
        for statement in (delete(table), update(table).values(user_id=anna.id)):
            with pytest.raises(DatabaseError, match="append-only"), store.write() as session:
                session.execute(statement)
    assert len(get_dispute(store, made.id).entries) == 3


STATES = {
    # From a state, what its author can do, and what an adjudicator.
    OPEN: ({WITHDRAWN}, {ACCEPTED, REJECTED}),
    ACCEPTED: (set(), {OPEN, REJECTED}),
    REJECTED: (set(), {OPEN, ACCEPTED}),
    WITHDRAWN: ({OPEN}, set()),
}


@pytest.mark.parametrize("state", STATES)
def test_the_states_that_each_role_may_set(store, traces, anna, judge, state):
    made = filed(store, traces, anna)
    if state != OPEN:
        made = add_entry(store, made.id, anna if state == WITHDRAWN else judge, "", state)
    by_author, by_judge = STATES[state]
    people = (anna, judge, person(store, "ben"))
    assert [set(possible_states(made, who)) for who in people] == [by_author, by_judge, set()]
    for new in DisputeState:
        for who, allowed in ((anna, by_author), (judge, by_judge)):
            if new not in allowed:
                with pytest.raises(ForbiddenError if new in by_author | by_judge else ConflictError):
                    add_entry(store, made.id, who, "So.", new)
    assert len(get_dispute(store, made.id).entries) == len(made.entries)


def test_an_adjudicator_accepts_their_own_dispute_only_if_nobody_else_could(store, traces, judge):
    made = filed(store, traces, judge)
    accept(store, made, judge)
    add_entry(store, made.id, judge, "", OPEN)
    boss = person(store, "boss", Role.ADMIN)
    # Somebody without a password cannot log in, and so does not count.
    assert ACCEPTED in possible_states(get_dispute(store, made.id), judge)
    with store.write() as session:
        session.execute(update(UserRow).where(UserRow.id == boss.id).values(password="hashed"))
    assert ACCEPTED not in possible_states(get_dispute(store, made.id), judge)
    with refused(ForbiddenError):
        accept(store, made, judge)
    assert accept(store, made, boss).state == ACCEPTED


def test_two_labels_of_a_step_are_not_accepted(store, traces, anna, judge):
    one, two = filed(store, traces, anna), filed(store, traces, anna, proposed="neu")
    same, other = filed(store, traces, judge), filed(store, traces, anna, step=0, proposed="neu")
    for dispute in (one, same, other):
        accept(store, dispute, judge)
    with refused(ConflictError):
        accept(store, two, judge)
    for dispute in (one, same):
        add_entry(store, dispute.id, judge, "", REJECTED)
    assert accept(store, two, judge).state == ACCEPTED


def test_a_dispute_of_a_trace_that_has_changed_is_rejected_and_makes_no_patch(store, traces, dataset, anna, judge):
    made, accepted = filed(store, traces, anna), filed(store, traces, judge, step=0, proposed="neg")
    accept(store, accepted, judge)
    change_trace(store, made.trace_id)
    assert get_dispute(store, made.id).changed
    with refused(ConflictError):
        accept(store, made, judge)
    assert add_entry(store, made.id, judge, "", REJECTED).state == REJECTED
    with refused():
        make_patch(store, dataset)


def test_lists(store, traces, anna, judge):
    add(store, [ERROR], "more")
    first, second = filed(store, traces, anna), filed(store, traces, judge, step=0, proposed=None)
    third = filed(store, traces, anna, trace_id=traces[1].trace_id, step=0, proposed="neu")
    accept(store, second, judge)

    def ids(start: int = 0, limit: int | None = None, **which: Any) -> list[int]:
        return [one.id for one in list_disputes(store, DisputeFilter(**which), start, limit)]

    assert ids() == [third.id, second.id, first.id]
    assert ids(start=1, limit=1) == ids(state=ACCEPTED) == [second.id]
    assert ids(state=OPEN) == [third.id, first.id]
    assert ids(trace_id=traces[1].trace_id) == [third.id]
    assert (ids(dataset="sums"), ids(dataset="more"), ids(trace_id=2**40)) == (ids(), [], [])
    counts = count_disputes(store, DisputeFilter(dataset="sums", state=OPEN))
    assert counts == {OPEN: 2, ACCEPTED: 1, REJECTED: 0, WITHDRAWN: 0}
    assert disputed_datasets(store) == ["sums"]


def test_an_annotator_sees_disputes_of_traces_they_are_unblinded_to(store, judge):
    scene = Scene(store, overlap=2, after_submission="everything")
    seen, ahead = scene.label("pos neg"), scene.take()
    two, _ = (open_dispute(store, task.trace.trace_id, 0, "neg", "So.", judge) for task in (seen, ahead))
    ann, bob = scene.who("ann"), scene.who("bob")
    assert [one.id for one in list_disputes(store, DisputeFilter(unblinded_for=ann))] == [two.id]
    assert count_disputes(store, DisputeFilter(unblinded_for=ann))[OPEN] == 1
    assert list_disputes(store, DisputeFilter(unblinded_for=bob)) == []
    assert (disputed_datasets(store, ann), disputed_datasets(store, bob)) == (["sums"], [])


def patch(*changes):
    return Patch("sums", "", "", changes, "fixes.json")


def change(trace, step, old, new):
    return LabelChange(trace.id, trace.digest, step, old, new)


def by_trace(gold):
    """Label and validity of each step, by trace."""
    pairs = list(zip(gold.label.tolist(), gold.valid.tolist(), strict=True))
    starts = np.cumsum(gold.counts) - gold.counts
    return {id: pairs[start : start + n] for id, start, n in zip(gold.ids, starts, gold.counts, strict=True)}


def test_from_a_dispute_to_changed_gold(store, traces, dataset, judge):
    with refused():
        make_patch(store, dataset)
    one = filed(store, traces, judge, trace_id=traces[1].trace_id, step=0, proposed="neu")
    two = filed(store, traces, judge)
    filed(store, traces, judge, step=0, proposed="neg")
    for dispute in (one, two):
        accept(store, dispute, judge)
    made, left_out = make_patch(store, dataset, name="fixes.json")
    assert (made.dataset, made.sha256, made.name, left_out) == ("sums", "0" * 64, "fixes.json", [])
    # By the trace's id: clean before error.
    assert [(one.trace, one.step, one.old, one.new, one.by, one.dispute) for one in made.changes] == [
        ("clean", 0, "pos", "neu", "judge", one.id),
        ("error", 1, "neg", "pos", "judge", two.id),
    ]
    gold = read_gold(store, dataset)
    before = by_trace(gold)
    changed = apply_patch(gold, parse_patch(format_patch(made), "fixes.json"))
    assert by_trace(changed) == before | {"clean": [(Label.NEU, 1)], "error": [(Label.POS, 1), (Label.POS, 1)]}
    # In memory only, and the judgments still belong to their traces.
    assert by_trace(read_gold(store, dataset)) == before
    assert changed.digests is gold.digests
    opened, _ = make_patch(store, dataset, OPEN)
    assert [(one.step, one.new) for one in opened.changes] == [(0, "neg")]


@pytest.mark.parametrize(
    ("step", "old", "new", "gold"),
    [
        (2, None, "neg", [(SILENT, 1), (Label.NEG, 0), (0, 0)]),
        (2, None, "neu", [(SILENT, 1), (Label.NEG, 0), (1, 1)]),
        (2, None, "pos", [(SILENT, 1), (Label.NEG, 0), (2, 1)]),
        (2, None, "valid", [(SILENT, 1), (Label.NEG, 0), (SILENT, 1)]),
        (2, None, None, [(SILENT, 1), (Label.NEG, 0), (SILENT, SILENT)]),
        # A first error that is none leaves what follows unlabelled.
        (1, "neg", "valid", [(SILENT, 1), (SILENT, 1), (SILENT, SILENT)]),
    ],
)
def test_the_gold_of_a_patched_step(store, dataset, step, old, new, gold):
    patched = apply_patch(read_gold(store, dataset), patch(change(FIRST_ERROR, step, old, new)))
    assert by_trace(patched)["first"] == gold


def test_a_step_that_is_wrong_without_a_label_is_patched(store):
    trace = Trace("bare", "q", (Step(("a",), valid=True), Step(("b",), valid=False)))
    add(store, [trace], "bare")
    patched = apply_patch(read_gold(store, find_dataset(store, "bare")), patch(change(trace, 1, "neg", "valid")))
    assert by_trace(patched)["bare"] == [(SILENT, 1), (SILENT, 1)]


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
def test_a_patch_that_does_not_fit(store, dataset, made):
    with refused():
        check_patch(store, dataset, patch(change(CLEAN, 0, "pos", "neu"), made))


def test_changed_traces_are_left_out_and_contradictions_refused(store, traces, dataset, anna, judge):
    one, two = filed(store, traces, anna), filed(store, traces, judge)
    made, _ = make_patch(store, dataset, OPEN)
    # Two of the same are one change, the older.
    assert [change.dispute for change in made.changes] == [one.id]
    three = filed(store, traces, judge, proposed="neu")
    with refused():
        make_patch(store, dataset, OPEN)
    filed(store, traces, judge, trace_id=traces[1].trace_id, step=0, proposed="neu")
    change_trace(store, traces[0].trace_id)
    made, left_out = make_patch(store, dataset, OPEN)
    assert [change.trace for change in made.changes] == ["clean"]
    assert [dispute.id for dispute in left_out] == [three.id, two.id, one.id]
