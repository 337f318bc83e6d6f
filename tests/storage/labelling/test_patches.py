"""Label patches of the store: made of disputes, and applied to gold in memory."""

from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import update

from stepsight.core.files.label_patch import LabelChange, Patch, format_patch, parse_patch
from stepsight.core.label import Label
from stepsight.core.metrics.table import SILENT
from stepsight.core.trace import Step, Trace
from stepsight.storage.database.schema import TraceRow
from stepsight.storage.judgments.columns import read_gold
from stepsight.storage.labelling.disputes import DisputeState, add_entry, open_dispute
from stepsight.storage.labelling.patches import apply_patch, check_patch, make_patch
from stepsight.storage.people.users import Role
from stepsight.storage.traces.queries import find_dataset
from tests.messages import refused
from tests.storage.labelling.samples import person
from tests.storage.samples import CLEAN, ERROR, FIRST_ERROR, add

# Valid, neg, unlabelled.
TRACES = (ERROR, CLEAN, FIRST_ERROR)


@pytest.fixture
def stored(store):
    return add(store, TRACES)


@pytest.fixture
def dataset(store, stored):
    return find_dataset(store, "sums")


@pytest.fixture
def judge(store):
    return person(store, "judge", Role.ADJUDICATOR)


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
