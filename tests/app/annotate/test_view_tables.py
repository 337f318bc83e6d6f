from dataclasses import replace

import numpy as np
import pytest

from stepsight.app.annotate.agreement_tables import (
    ViewRatings,
    later_table,
    majority_table,
    mind_table,
    shared_traces,
    view_table,
)
from stepsight.core.metrics.bootstrap import resamples
from stepsight.core.metrics.labels.agreement import ONE_LABEL
from tests.app.annotate.rated import cells, rated

DRAWS = resamples(2, 50)


def test_changes_of_mind_by_hand():
    # Of six labels a changes pos to neg and unsure to neu, b changes nothing, and leaves one out.
    said = rated("npu", "np-", first=["pp?", "np-"])
    table = mind_table(said, resamples(1, 20))
    pos = cells(table, "pos")
    assert (pos["labels"], pos["then_neg"], pos["then_pos"]) == (3, 1, 2)
    assert pos["changed"].number == pytest.approx(1 / 3)
    assert cells(table, "unsure")["then_neu"] == 1
    assert (cells(table, "neu")["labels"], cells(table, "neu")["changed"].exists) == (0, False)
    everything = cells(table, "all")
    assert (everything["labels"], everything["changed"].number) == (5, 2 / 5)
    # What stood in the end: two neg, one neu, two pos.
    assert (everything["then_neg"], everything["then_neu"], everything["then_pos"]) == (2, 1, 2)


def test_when_minds_changed():
    # In traces of four and of two steps: step 1 of the first changed with two later steps in view, step 2 of it
    # with one, step 1 of the second with one.
    said = rated("nnpp np", first=["pppp pp"], later=[[2, 1, 0, 0, 1, 0]])
    table = later_table(said, DRAWS)
    one, two, three = (cells(table, name) for name in ("1", "2", "3"))
    # Steps 1 to 3 of the first and step 1 of the second have a step after them; 1 and 2 have two; 1 has three.
    assert (one["changed"], one["to_neg"], one["from_neg"], one["share"].number) == (2, 2, 0, 2 / 4)
    assert (two["changed"], two["share"].number) == (1, 1 / 2)
    assert (three["changed"], three["share"].number) == (0, 0)


def test_many_later_steps_share_a_row():
    said = rated("n" + "p" * 11, first=["p" * 12], later=[[10] + [0] * 11])
    table = later_table(said, resamples(1, 5))
    assert [row[0] for row in table.rows] == [*"1234567", "8 or more"]
    # Steps 1 to 4 of twelve have eight or more after them.
    assert (cells(table, "8 or more")["changed"], cells(table, "8 or more")["share"].number) == (1, 1 / 4)


def test_the_two_views_side_by_side():
    said = rated("nn pp", "np pp", first=["pp pp", "np pp"], gold="nn --")
    table = view_table(
        [ViewRatings("steps so far", "x", said.first), ViewRatings("in the end", "x", said.last)], said, DRAWS
    )
    early, late = (cells(table, name) for name in ("steps so far", "in the end"))
    # First 1 of 8 labels is neg, in the end 3 are.
    assert (early["labels"], early["neg"].number, late["neg"].number) == (8, 1 / 8, 3 / 8)
    # Of the four labels of the first trace the gold has one, then three.
    assert (early["gold"].number, late["gold"].number) == (1 / 4, 3 / 4)
    # Three of four steps agree in both, on other labels: 1 - 7 * 2 / (64 - 1 - 49), 1 - 7 * 2 / (64 - 9 - 25).
    assert early["alpha"].number == pytest.approx(1 - 14 / 14)
    assert late["alpha"].number == pytest.approx(1 - 14 / 30)


def test_the_majority_of_one_campaign_against_that_of_another():
    mine, theirs = rated("pp pp", "pp pp", "nn pp"), rated("np pp", "np pp")
    table = majority_table(
        ViewRatings("steps so far", "x", mine.last), ViewRatings("whole trace", "y", theirs.last), DRAWS
    )
    pos = cells(table, "pos")
    assert (pos["labels"], pos["then_neg"], pos["changed"].number) == (4, 1, 1 / 4)
    assert [row[0] for row in table.rows] == ["neg", "neu", "pos", "all"]
    # By chance 0 * 1/4 + 1 * 3/4.
    assert table.notes[0].startswith("Cohen's kappa 0.000")
    same = majority_table(
        ViewRatings("a", "x", rated("pp").last), ViewRatings("b", "y", rated("pp").last), resamples(1, 5)
    )
    assert same.notes == (ONE_LABEL,)


def test_a_tie_is_no_majority():
    tie, one = rated("np", "pp"), rated("pp", "pp")
    table = majority_table(ViewRatings("a", "x", tie.last), ViewRatings("b", "y", one.last), resamples(1, 5))
    assert cells(table, "all")["labels"] == 1


def test_shared_traces_have_the_same_steps():
    mine, theirs = rated("n pp u np"), rated("u np p nn").of_traces([3, 2, 1])
    changed = replace(theirs.traces[1], digest="another")
    one, other = shared_traces(mine, replace(theirs, traces=(theirs.traces[0], changed, theirs.traces[2])))
    # The first is not among theirs, the third has other steps there.
    assert [trace.trace_id for trace in one.traces] == [trace.trace_id for trace in other.traces] == [101, 103]
    np.testing.assert_array_equal(one.last.codes, [[2, 2, 0, 2]])
    np.testing.assert_array_equal(other.last.codes, [[0, 2, 0, 0]])
