import numpy as np
import pytest

from stepsight.core.metrics.binary import macro_f1
from stepsight.core.metrics.reasoneval import CATEGORIES, prm_items
from stepsight.core.metrics.table import TableBuilder
from stepsight.core.scores import Outputs, StepScores
from tests.core.metrics.tables import table, trace


def test_every_labelled_step_counts_also_after_the_error():
    found = prm_items(table((["pos", "neg", "pos", None], [0.9, 0.6, 0.7, 0.1]), groups=["deception"]))
    assert found.gold.tolist() == [True, False, True]
    # Positive F1: TP 2, FP 1: 4 / 5; negative F1 0.
    assert macro_f1(found).number == pytest.approx(2 / 5)


def test_in_simplicity_the_error_is_redundancy():
    builder = TableBuilder()
    probs = StepScores(np.array([[0.1, 0.1, 0.8], [0.1, 0.6, 0.3], [0.1, 0.3, 0.6]], np.float32))
    builder.add(trace("pos", "neu", "pos"), probs, group="redundency")
    found = prm_items(builder.build())
    assert found.gold.tolist() == [True, False, True]
    assert found.predicted.tolist() == [True, False, False]


def test_without_redundancy_validity_tells_of_simplicity_too():
    builder = TableBuilder()
    # (1 - v, 0, v): the redundant step is called wrong.
    probs = StepScores(np.array([[0.1, 0, 0.9], [0.8, 0, 0.2], [0.3, 0, 0.7]], np.float32))
    builder.add(trace("pos", "neu", "pos"), probs, group="circular")
    found = prm_items(builder.build(), outputs=Outputs.VALIDITY)
    assert found.scores == pytest.approx([0.9, 0.2, 0.7])
    assert found.predicted.tolist() == found.gold.tolist() == [True, False, True]
    assert macro_f1(found).number == 1
    # By redundancy no step would ever be wrong: positive F1 4 / 5, negative 0.
    assert macro_f1(prm_items(builder.build())).number == pytest.approx(2 / 5)


def test_some_classes_only():
    both = table((["pos"], [0.9]), (["neg"], [0.2]), groups=["deception", "confidence"])
    assert len(prm_items(both, classes=CATEGORIES["soundness"])) == 1
    assert len(prm_items(both)) == 2


def test_a_score_at_the_threshold_counts_as_in_the_official_script():
    found = prm_items(table((["pos", "neg", "pos"], [0.5, 0.5, 0.51]), groups=["deception"]))
    assert found.predicted.tolist() == [False, False, True]
    builder = TableBuilder()
    builder.add(
        trace("pos", "neu"), StepScores(np.array([[0, 0.15, 0.85], [0, 0.16, 0.84]], np.float32)), group="circular"
    )
    assert prm_items(builder.build()).predicted.tolist() == [True, False]
