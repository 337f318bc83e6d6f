import json
import math

import numpy as np
import pytest

from stepsight.core.metrics.table import build_table
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace
from stepsight.training.experiments.grid.results import Figures, figures_of

# Six steps of one trace, two of each third; the probabilities of neg, neu, pos.
TRACE = Trace.of("q", ["a", "b", "c", "d", "e", "f"], ["pos", "pos", "neu", "pos", "neg", "pos"], "1")
PROBS = [[0.1, 0.2, 0.7], [0.1, 0.6, 0.3], [0.2, 0.5, 0.3], [0.1, 0.1, 0.8], [0.6, 0.1, 0.3], [0.7, 0.1, 0.2]]
TABLE = build_table([(TRACE, StepScores(np.array(PROBS, np.float32)))])


def test_the_whole_by_hand():
    found = figures_of(TABLE)
    # Decided: pos, neu, neu, pos, neg, neg. Right are the 1st, 3rd, 4th and 5th of six.
    assert found.whole["accuracy"] == pytest.approx(4 / 6)
    # F1 of neg: 2 * 1 / (1 + 2); of neu: 2 * 1 / (1 + 2); of pos: 2 * 2 / (4 + 2).
    assert found.whole["macro_f1"] == pytest.approx((2 / 3 + 2 / 3 + 2 / 3) / 3)
    # neg .6 is above .1 .1 .2 .1 and below .7: 4 of 5. neu .5 is above .2 .1 .1 .1 and below .6: 4 of 5.
    # pos .7 .3 .8 .2 against .3 .3: .7 and .8 win 2 each, .3 ties twice, .2 loses both: 5 of 8.
    assert found.whole["macro_auc"] == pytest.approx((4 / 5 + 4 / 5 + 5 / 8) / 3)
    assert (found.traces, found.steps) == (1, 6)


def test_the_thirds_by_hand():
    found = figures_of(TABLE)
    # The first third has pos only; the last a neg at .6 against .7, and a pos at .2 against .3: both AUCs are 0.
    assert math.isnan(found.thirds["early"]["macro_auc"])
    assert found.thirds["late"]["macro_auc"] == found.whole["late_auc"] == 0
    # In the middle, neu .5 is above .1 and pos .8 above .3.
    assert found.thirds["middle"]["macro_auc"] == 1
    counts = {
        name: values for name, values in found.thirds["late"].items() if name in ("steps", "neg", "neu", "pos")
    }
    assert counts == {"steps": 2, "neg": 1, "neu": 0, "pos": 1}


def test_the_classes_by_hand():
    found = figures_of(TABLE).classes
    # There is one trace, so that all pairs are within it.
    assert found["pos"] == {"auc": pytest.approx(5 / 8), "within": pytest.approx(5 / 8), "f1": pytest.approx(2 / 3)}
    assert found["neg"]["auc"] == pytest.approx(4 / 5)


def test_a_class_that_the_gold_lacks_has_no_f1_although_it_is_predicted():
    # The third step, the only neu one, has no label here, and neu is predicted for the second.
    labels = ["pos", "pos", None, "pos", "neg", "pos"]
    trace = Trace.of("q", ["a", "b", "c", "d", "e", "f"], labels, "1")
    found = figures_of(build_table([(trace, StepScores(np.array(PROBS, np.float32)))]))
    assert found.as_json()["classes"]["neu"] == {"auc": None, "within": None, "f1": None}
    # Decided of five: pos, neu, pos, neg, neg. F1 of neg: 2 * 1 / (1 + 2); of pos: 2 * 2 / (4 + 2).
    assert found.whole["macro_f1"] == pytest.approx((2 / 3 + 2 / 3) / 2)


def test_an_undefined_figure_is_null_in_json_and_reads_back():
    written = json.loads(json.dumps(figures_of(TABLE).as_json()))
    assert written["thirds"]["early"]["macro_auc"] is None
    again = Figures.from_json(written)
    assert again.as_json() == written
    assert math.isnan(again.thirds["early"]["macro_auc"])
    with pytest.raises(KeyError):
        Figures.from_json({})
