import numpy as np
import pytest

from stepsight.app.annotate.agreement_tables import MAJORITY, annotator_table, gold_table, pair_table
from stepsight.core.metrics.bootstrap import resamples
from stepsight.core.metrics.labels.agreement import ONE_LABEL, Scale, alpha
from stepsight.core.metrics.table import ONE_CLASS
from tests.app.annotate.rated import cells, rated

DRAWS = resamples(2, 50)


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
    majority = cells(table, MAJORITY)
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
