"""AgentProcessBench's metrics, by hand."""

import numpy as np
import pytest

from stepsight.core.metrics.agent_turns import first_error_hits, share, share_draws, step_hits
from stepsight.core.metrics.table import StepTable, build_table
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace

LABELS = "neg", "neu", "pos"


def table(*traces: tuple[list[str | None], list[str | None]]) -> StepTable:
    """A table of the gold labels and the verdicts of some traces; None is no label, and no verdict."""
    judged = []
    for number, (gold, said) in enumerate(traces):
        rows = np.array([[one == label for label in LABELS] for one in said], np.float32)
        judged.append((Trace.of("q", ["x"] * len(gold), gold, id=str(number)), StepScores(rows)))
    return build_table(judged)


def test_a_turn_without_a_verdict_counts_as_wrong_and_blames_nothing() -> None:
    made = table(
        (["pos", "neg", "neg"], ["pos", "neg", "pos"]),  # 2 of 3, the first error is the second turn in both
        (["pos", "neu"], ["neu", "neu"]),  # 1 of 2, neither has an error
        (["pos", "pos"], ["neg", None]),  # 0 of 2, an error that is none
        (["neg", "pos"], [None, None]),  # 0 of 2, an error that is not found
        ([None, "pos"], ["neg", "pos"]),  # 1 of 1, an error on a turn without gold
    )
    assert share(step_hits(made)[0]).number == pytest.approx(4 / 10)
    assert share(first_error_hits(made)[0]).number == pytest.approx(2 / 5)
    # One resample of the first trace twice and the third once: 4 of 8 turns, 2 of 3 traces.
    weights = np.array([[2, 0, 1, 0, 0]], np.uint8)
    assert share_draws(step_hits(made), weights).tolist() == [4 / 8]
    assert share_draws(first_error_hits(made), weights).tolist() == pytest.approx([2 / 3])


def test_without_labels_there_is_nothing_to_measure() -> None:
    made = table(([None], ["pos"]))
    assert not share(step_hits(made)[0]).exists
    assert not share(first_error_hits(made)[0]).exists
