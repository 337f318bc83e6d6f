"""Rows of released score files, in every form there is."""

import numpy as np
import pytest

from stepsight.core.scores import Outputs
from stepsight.core.trace import Step, Trace
from stepsight.storage.judgments.score_files import parse_scores
from tests.cases import each
from tests.messages import refused

# Three steps, of which the second has two sub-steps.
TRACE = Trace("7", "q", (Step(("a",)), Step(("b", "c")), Step(("d",))))


def verdict(word, steps, **other):
    return {"id": 7, "response": "…", "correctness_pred": word, "error_step_pred": steps} | other


def read(row, on_redundancy=False):
    found: list[list[float]] = parse_scores(row).scores(TRACE, on_redundancy).probs.tolist()
    return found


def test_three_numbers_per_substep():
    probs = [[0.25, 0.5, 0.25], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    said = parse_scores({"id": 7, "scores": probs})
    assert (said.id, said.outputs, said.solution) == ("7", Outputs.THREE_WAY, None)
    assert said.scores(TRACE).probs.tolist() == probs


def test_one_number_per_substep_is_its_validity():
    said = parse_scores({"id": "x", "scores": [0.75, 1, 0, 0.5]})
    assert (said.id, said.outputs) == ("x", Outputs.VALIDITY)
    # 1 - s_val is neg, the rest pos: nothing is said of neu.
    assert said.scores(TRACE).probs.tolist() == [[0.25, 0, 0.75], [0, 0, 1], [1, 0, 0], [0.5, 0, 0.5]]


def test_one_number_for_the_solution_says_nothing_of_steps():
    said = parse_scores({"id": 7, "scores": 0.0354})
    assert (said.outputs, said.solution) == (Outputs.SOLUTION, 0.0354)
    assert not said.scores(TRACE).probs.any()


VALID, NEG, NEU, UNREAD = [0, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0]


@each(
    "word, steps, solution, expected",
    [
        ("Correct", "N/A", 1.0, [VALID] * 4),
        ("correct", "Step 1", 1.0, [VALID] * 4),
        ("Wrong", "Step 2", 0.0, [VALID, NEG, NEG, UNREAD]),
        ("wrong", "1", 0.0, [NEG, UNREAD, UNREAD, UNREAD]),
        # Only the first number counts.
        ("Wrong", "Steps 3 and 1", 0.0, [VALID, VALID, VALID, NEG]),
        # Past the end, or before the start: no step is blamed.
        ("Wrong", "Step 4", 0.0, [VALID] * 4),
        ("Wrong", "0, 2", 0.0, [VALID] * 4),
        ("Wrong", "9" * 5000, 0.0, [VALID] * 4),
        ("Wrong", "N/A", 0.0, [VALID] * 4),
        # A verdict that could not be read; the step beside it was.
        ("Unsure", "Step 3", None, [VALID, VALID, VALID, NEG]),
        # Nothing could be read, and nothing was said.
        ("Unsure", "N/A", None, [[0, 0, 0]] * 4),
        ("Unsure", "Step 9", None, [[0, 0, 0]] * 4),
    ],
)
def test_a_verdict_on_validity(word, steps, solution, expected):
    said = parse_scores(verdict(word, steps))
    assert (said.outputs, said.solution, said.on_redundancy) == (Outputs.VERDICT, solution, False)
    assert said.scores(TRACE).probs.tolist() == expected


@pytest.mark.parametrize(
    ("word", "steps", "solution", "expected"),
    [
        ("Absent", "N/A", 1.0, [VALID] * 4),
        ("Present", "Step 1, Step 2", 0.0, [NEU, NEU, NEU, VALID]),
        ("present", "[3, 9, 0]", 0.0, [VALID, VALID, VALID, NEU]),
        # GPT-4 puts a full stop there twice: the verdict could not be read, the steps were.
        ("Present.", "Step 3", None, [VALID, VALID, VALID, NEU]),
        # Steps named in spite of the verdict count.
        ("Absent", "Step 3", 1.0, [VALID, VALID, VALID, NEU]),
    ],
)
def test_a_verdict_on_redundancy(word, steps, solution, expected):
    said = parse_scores(verdict(word, steps))
    assert (said.solution, said.on_redundancy) == (solution, True)
    assert said.scores(TRACE, on_redundancy=True).probs.tolist() == expected


def test_a_verdict_in_an_object_of_its_own():
    inner = {"correctness_pred": "Wrong", "error_step_pred": "Step 1"}
    said = parse_scores({"id": "u", "question_type": "POT", "gpt3_5_eval_output": inner})
    assert (said.id, said.solution, said.blamed) == ("u", 0.0, (1,))


def test_an_id_may_be_a_uuid_or_missing():
    assert parse_scores({"uuid": "179ede83", "scores": 1}).id == "179ede83"
    assert parse_scores({"scores": 1}).id is None


def test_a_sum_may_be_off_by_a_thousandth():
    assert parse_scores({"scores": [[0.5, 0.25, 0.251]]}).outputs == Outputs.THREE_WAY
    assert parse_scores({"scores": [[0.5, 0.25, 0.249]]}).outputs == Outputs.THREE_WAY


@each(
    "row",
    [
        {"scores": [[0.5, 0.3, 0.3]]},
        {"scores": [[0, 0, 1], [0.5, 0.25, 0.2515]]},
        {"scores": [[0.5, 0.5]]},
        {"scores": [[0, 0, 1], 0.5]},
        {"scores": [0.5, [0, 0, 1]]},
        {"scores": [float("nan")]},
        {"scores": [[float("nan"), 0, 1]]},
        {"scores": float("inf")},
        {"scores": 10**400},
        {"scores": [True]},
        {"scores": [1.2]},
        {"scores": [-0.5]},
        {"scores": []},
        {"scores": "0.5"},
        {"id": 1},
        {"id": [1], "scores": 1},
        {"id": True, "scores": 1},
        {"correctness_pred": "Wrong"},
        {"correctness_pred": 0, "error_step_pred": ""},
    ],
)
def test_an_invalid_score_is_refused(row):
    with refused():
        parse_scores(row)


@pytest.mark.parametrize("scores", [[0.5] * 3, [[0, 0, 1]] * 5])
def test_a_count_that_is_not_the_traces(scores):
    with refused():
        parse_scores({"id": 7, "scores": scores}).scores(TRACE)


def test_rows_are_single_precision():
    assert parse_scores({"scores": [[0.1, 0.2, 0.7]] * 4}).scores(TRACE).probs.dtype == np.float32
    assert len(read({"scores": 0.5})) == 4
