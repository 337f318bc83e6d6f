from dataclasses import replace

import numpy as np
import pytest

from stepsight.app.annotate.agreement_tables import (
    FIGURES,
    ViewRatings,
    agreeing_shares,
    annotator_table,
    evidence_table,
    gold_table,
    later_table,
    majority_table,
    mind_table,
    overall_table,
    pair_table,
    reasons,
    shared_traces,
    step_table,
    view_table,
)
from stepsight.core.metrics.agreement import NO_LABEL, ONE_ANNOTATOR, ONE_LABEL, Scale, alpha
from stepsight.core.metrics.bootstrap import Value, resamples
from stepsight.core.metrics.table import ONE_CLASS
from tests.app.annotate.rated import cells, rated

DRAWS = resamples(2, 50)


def test_the_four_figures_by_hand():
    # Two traces of two steps: both say neg, pos; then pos, neu of one and pos, pos of the other.
    table = overall_table(rated("np pu", "np pp"), DRAWS)
    assert [row[0] for row in table.rows] == list(FIGURES)
    # Of eight labels 2 are neg, 1 is neu, 5 are pos; all but the last step's two are in equal pairs:
    # 1 - (8 - 1) * 2 / (64 - 4 - 1 - 25).
    labels = cells(table, "labels")
    assert labels["alpha"].number == pytest.approx(1 - 7 * 2 / 34)
    assert labels["agreeing"].number == 3 / 4
    assert (labels["units"], labels["unit"], labels["pairs"]) == (4, "steps", 4)
    # In order: neg and neu are 2/2 + 1/2 apart, neu and pos 1/2 + 5/2, neg and pos 2/2 + 1 + 5/2. One coincidence
    # of neu and pos each way: 1 - 7 * 3^2 / (2 * 1 * 1.5^2 + 1 * 5 * 3^2 + 2 * 5 * 4.5^2).
    assert cells(table, "labels (neg < neu < pos)")["alpha"].number == pytest.approx(1 - 7 * 9 / (4.5 + 45 + 202.5))
    # neu and pos are both valid, so that everything agrees; one trace has its error in step 1, one has none.
    for figure in ("valid or not", "first error"):
        assert cells(table, figure)["alpha"].number == 1
    assert (cells(table, "first error")["units"], cells(table, "first error")["unit"]) == (2, "traces")


def test_agreement_on_the_steps_that_changed_labels_by_hand():
    none = np.nan
    # Both name step 2 for step 1, and steps 3 and 4 for step 2: 1 - (4 - 1) * 2 / (16 - 4 - 1 - 1).
    evidence = [[1, 2, none, none], [1, 3, none, none]]
    table = evidence_table(rated("nnpp", "nnpp", evidence=evidence), resamples(1, 5))
    found = cells(table, "step that changed the label")
    assert (found["alpha"].number, found["agreeing"].number) == (pytest.approx(1 - 3 * 2 / 10), 0.5)
    assert evidence_table(rated("pp", "pp"), resamples(1, 5)).rows == ()


def test_where_there_is_nothing_the_notes_say_why():
    table = overall_table(rated("np pp"), DRAWS)
    assert table.notes == (f"{', '.join(FIGURES)}: {ONE_ANNOTATOR}",)
    empty = rated("n").of_traces([])
    assert overall_table(empty, resamples(0, 5)).notes == (f"{', '.join(FIGURES)}: {NO_LABEL}",)


def test_every_step_for_a_file():
    table = step_table(rated("np ?", "nu -", "pu p", gold="pp -"))
    first = cells(table, 0)
    assert (first["trace"], first["step"], first["neg"], first["pos"]) == ("t0", 1, 2, 1)
    # Of three pairs one is equal.
    assert first["agreeing"].number == pytest.approx(1 / 3)
    assert (first["majority"], first["gold"]) == ("neg", "pos")
    last = cells(table, 2)
    assert (last["step"], last["pos"], last["unsure"], last["majority"], last["gold"]) == (1, 1, 1, "pos", "")
    assert not last["agreeing"].exists


def test_shares_are_of_pairs_of_labels():
    shares = agreeing_shares(rated("np?n", "nu-p", "np?u").last)
    # 3 of 3, 1 of 3, none, 0 of 3.
    np.testing.assert_allclose(shares, [1, 1 / 3, np.nan, 0])


def test_reasons_name_some_of_many():
    values = [(f"step {i}", Value.none("why")) for i in range(6)]
    values += [("x", Value(1.0)), ("y", Value.none("because"))]
    assert reasons(values) == ("step 0, step 1, step 2, step 3 and 2 more: why", "y: because")


def test_pairs_by_hand():
    table = pair_table(rated("np pp", "nn pp", "-- p-"), DRAWS)
    assert [row[:2] for row in table.rows] == [("a", "b"), ("a", "c"), ("b", "c")]
    first = cells(table, 0)
    # Equal on 3 of 4; by chance 1/4 * 2/4 + 3/4 * 2/4 = 1/2.
    assert first["kappa"].number == pytest.approx((3 / 4 - 1 / 2) / (1 / 2))
    assert (first["traces"], first["steps"], first["agreeing"].number) == (2, 4, 3 / 4)
    # a's and b's first errors: step 1 in the first trace and none in the second.
    assert (first["known"], first["first_error"].number) == (2, 1)
    # c labelled one step, as everybody: no kappa, and no first error that could be told.
    second = cells(table, 1)
    assert (second["traces"], second["steps"], second["agreeing"].number, second["known"]) == (1, 1, 1, 0)
    assert table.notes == (f"a and c, b and c: {ONE_LABEL}",)


def test_people_without_a_common_trace_are_no_pair():
    assert pair_table(rated("np --", "-- pp"), DRAWS).rows == ()


def test_alpha_without_each_person_shows_the_outlier():
    # c says the contrary of a and b, who agree.
    said = rated("np np", "np np", "pn pn")
    table = annotator_table(said, DRAWS)
    outlier, other = cells(table, "c"), cells(table, "a")
    assert outlier["agreeing"].number == 0
    # a agrees with b on four of the eight pairs with others.
    assert other["agreeing"].number == 1 / 2
    everybody = alpha(said.last.labels, Scale.ORDINAL).alpha.number
    # Four of each label; all in equal pairs.
    assert outlier["without"].number == 1
    assert outlier["change"].number == pytest.approx(1 - everybody)
    assert outlier["change"].number > 0
    # b and c never agree: 1 - 7 * 8 / (64 - 16 - 16).
    assert other["without"].number == pytest.approx(1 - 7 * 8 / 32)
    assert other["change"].number < 0


def test_traces_labels_and_unsure_steps_of_people_are_counted():
    table = annotator_table(rated("n? --", "np pp"), DRAWS)
    assert tuple(cells(table, "a").values())[1:4] == (1, 1, 1)
    assert tuple(cells(table, "b").values())[1:4] == (2, 4, 0)
    # Without either there is one person left.
    assert np.isnan(cells(table, "a")["without"].number)
    assert np.isnan(cells(table, "a")["change"].number)


def test_against_gold_labels_and_gold_validity():
    # The gold labels the first trace, and tells of the second that its steps are valid and wrong.
    said = rated("np un", "pp pp", "nn pn", gold="np --", valid="-- pn")
    table = gold_table(said, DRAWS, "gold", "Against the gold")
    a, b = cells(table, "a"), cells(table, "b")
    assert (a["steps"], a["accuracy"].number, a["kappa"].number) == (2, 1, 1)
    # neu is valid.
    assert (a["valid_steps"], a["valid_accuracy"].number, a["valid_kappa"].number) == (4, 1, 1)
    # b says pos of everything: right on half, by chance also.
    assert (b["accuracy"].number, b["kappa"].number) == (1 / 2, 0)
    assert (b["valid_accuracy"].number, b["valid_kappa"].number) == (1 / 2, 0)
    # The majority of step 1 is neg, of step 2 pos, then pos, and neg.
    majority = cells(table, "the majority")
    assert (majority["accuracy"].number, majority["valid_accuracy"].number) == (1, 1)
    assert table.rules == (len(table.rows) - 1,)


def test_a_gold_that_says_one_thing_only_has_no_kappa():
    # As where a benchmark labels the first error and no other step.
    table = gold_table(rated("pn", "pp", gold="-n", valid="p-"), resamples(1, 5), "gold", "")
    b = cells(table, "b")
    assert (b["steps"], b["accuracy"].number, b["kappa"].reason) == (1, 0, ONE_CLASS)
    assert (b["valid_steps"], b["valid_accuracy"].number, b["valid_kappa"].number) == (2, 1 / 2, 0)


def test_without_gold_there_is_no_table():
    assert gold_table(rated("np", "np"), resamples(1, 5), "gold", "").rows == ()


def test_intervals_are_over_traces():
    one, other = (" ".join(traces * 8) for traces in (["np", "pp", "up"], ["np", "pn", "pp"]))
    said, weights = rated(one, other, gold=one), resamples(24, 200)
    for table, row in ((pair_table(said, weights), 0), (gold_table(said, weights, "gold", ""), "b")):
        value = cells(table, row)["kappa"]
        assert value.low < value.number < value.high


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
