import numpy as np
import pytest

from stepsight.core.metrics.table import SILENT as NO_GOLD
from stepsight.core.metrics.table import (
    Third,
    build_table,
    by_change,
    by_third,
    codes_of_gold,
    gold_of_codes,
    retroactive,
)
from stepsight.core.scores import StepScores
from stepsight.core.trace import Label, Step, Trace
from tests.core.metrics.tables import SILENT, VALID, WRONG, judged_table, scores, table, trace


def test_columns_of_two_traces():
    found = table(([VALID, WRONG, SILENT], [0.9, 0.2, 0.6]), (["neu", "pos"], [0.3, 0.8]))
    assert len(found) == 5
    assert found.traces == 2
    assert found.ids == ("0", "1")
    assert found.trace.tolist() == [0, 0, 0, 1, 1]
    assert found.position.tolist() == [0, 1, 2, 0, 1]
    assert found.label.tolist() == [NO_GOLD, NO_GOLD, NO_GOLD, Label.NEU, Label.POS]
    assert found.valid.tolist() == [1, 0, NO_GOLD, 1, 1]
    assert found.first_errors().tolist() == [1, NO_GOLD]
    np.testing.assert_allclose(found.validity, [0.9, 0.2, 0.6, 0.3, 0.8], atol=1e-6)
    assert np.isnan(found.solution).all()


def test_a_step_has_the_least_validity_and_the_greatest_redundancy_of_its_substeps():
    steps = (Step(("a", "b"), Label.POS), Step(("c",), Label.NEG))
    probs = [[0.1, 0.6, 0.3], [0.5, 0.2, 0.3], [0.7, 0.1, 0.2]]
    found = build_table([(Trace("t", "q", steps), StepScores(np.array(probs)))])
    # s_val of the sub-steps of the first: 0.9 and 0.5; s_red 0.6 and 0.2.
    np.testing.assert_allclose(found.validity, [0.5, 0.3], atol=1e-6)
    np.testing.assert_allclose(found.redundancy, [0.6, 0.1], atol=1e-6)
    np.testing.assert_allclose(found.probs, [probs[1], probs[2]], atol=1e-6)


def test_a_step_of_which_nothing_was_said_is_no_number():
    said = StepScores(np.array([[0, 0, 1], [0, 0, 0]], np.float32))
    found = build_table([(trace("pos", "pos"), said), (trace("pos"), None)])
    assert np.isnan(found.validity).tolist() == [False, True, True]
    assert np.isnan(found.redundancy).tolist() == [False, True, True]


def test_the_solution_score_and_the_group_stay_with_the_trace():
    found = judged_table((trace("pos"), None, 0.03, "POT"), (trace("pos"), None))
    assert found.solution[0] == 0.03
    assert np.isnan(found.solution[1])
    assert found.groups == ("POT", "")


def test_some_of_the_steps():
    found = table(([VALID, WRONG], [0.9, 0.2]), ([VALID], [0.4]))
    kept = found.where(np.array([False, True, True]))
    assert (kept.trace.tolist(), kept.position.tolist()) == ([0, 1], [1, 0])
    assert kept.ids == found.ids


def test_no_trace_gives_an_empty_table():
    found = build_table([])
    assert (len(found), found.traces, found.probs.shape) == (0, 0, (0, 3))
    assert found.first_errors().shape == (0,)


def test_scores_of_another_trace_are_refused():
    with pytest.raises(ValueError, match="1 rows for 2 sub-steps of trace 't'"):
        build_table([(trace("pos", "neg"), scores(0.5))])


def test_a_table_tells_the_bytes_of_its_numbers():
    made = table((["neg", "pos"], [0.2, 0.8]), (["pos"], [0.9]))
    # Three steps: place, position, label and validity of the gold in 8 bytes each, redundancy and three
    # probabilities in 4; two traces: the score of the whole in 8.
    assert made.nbytes == 3 * (4 * 8 + 4 * 4) + 2 * 8
    assert made.where(made.position == 0).nbytes == 2 * (4 * 8 + 4 * 4) + 2 * 8


def test_gold_comes_back_from_its_codes():
    for gold in ("neg", "neu", "pos", "valid", None):
        assert gold_of_codes(*codes_of_gold(gold)) == gold
    assert codes_of_gold("neg") == (0, 0)
    assert codes_of_gold("valid") == (NO_GOLD, 1)


@pytest.mark.parametrize(
    ("steps", "counts"),
    [
        (1, (1, 0, 0)),
        (2, (1, 1, 0)),
        (3, (1, 1, 1)),
        # 0, 3 / 4, 6 / 4 and 9 / 4, rounded down.
        (4, (2, 1, 1)),
        (5, (2, 2, 1)),
        (6, (2, 2, 2)),
    ],
)
def test_steps_by_third(steps, counts):
    thirds = by_third(table((["pos"] * steps, [0.5] * steps)))
    assert tuple(len(thirds[name]) for name in Third) == counts


def test_the_thirds_are_those_of_the_labelled_steps():
    # Of six steps three are labelled, as where labels stop at the first error; of the other trace all two.
    parts = by_third(table(([VALID, "pos", "neg", SILENT, SILENT, SILENT], [0.5] * 6), (["pos", "neg"], [0.5] * 2)))
    where = {
        name: list(zip(part.trace.tolist(), part.position.tolist(), strict=True)) for name, part in parts.items()
    }
    assert where == {"early": [(0, 0), (1, 0)], "middle": [(0, 1), (1, 1)], "late": [(0, 2)]}


def test_steps_that_are_left_out_move_no_other_to_another_third():
    whole = table((["pos", "pos", "pos"], [0.5] * 3))
    parts = by_third(whole, np.array([True, False, True]))
    assert {name: part.position.tolist() for name, part in parts.items()} == {
        "early": [0],
        "middle": [],
        "late": [2],
    }


def test_steps_are_divided_by_the_change_in_hindsight():
    golds = ["pos", "pos", "neg"]
    online, offline = table((golds, [0.9, 0.4, 0.7])), table((golds, [0.85, 0.8, 0.2]))
    change = retroactive(online, offline)
    np.testing.assert_allclose(change, [-0.05, 0.4, -0.5], atol=1e-6)
    groups = by_change(offline, change)
    assert {name: part.position.tolist() for name, part in groups.items()} == {
        "fell": [2],
        "rose": [1],
        "stayed": [0],
    }


def test_tables_of_other_traces_are_refused():
    with pytest.raises(ValueError, match="different traces"):
        retroactive(table((["pos"], [0.5])), table((["pos", "pos"], [0.5, 0.5])))
