"""Rows of version 0.1.0's score files, as its `stepsight score` wrote them."""

from typing import Any

import numpy as np
import pytest

from stepsight.core.files.earlier_record import is_earlier, upgraded
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.judgment_record import JudgmentRecord
from stepsight.core.scores import Outputs, StepScores
from stepsight.core.trace import Trace
from tests.cases import each
from tests.messages import refused

TRACE = Trace.of("q", ["x", ["y", "z"]], id="t")
# Step 1 is one sub-step, step 2 is two.
HEAD: dict[str, Any] = {"id": "t", "evaluator": "mini", "step_of": [0, 1, 1]}
THREE = [[0.1, 0.2, 0.7], [0.5, 0.25, 0.25], [0.0, 0.125, 0.875]]


def entry(neg: float, neu: float, pos: float) -> dict[str, float]:
    return {"neg": neg, "neu": neu, "pos": pos, "validity": neu + pos, "redundancy": neu}


def part(*steps: Any) -> dict[str, Any]:
    return {"steps": list(steps), "solution": {"validity": 0.5, "valid": True}}


ONLINE, OFFLINE = part(*(entry(0.25, 0.25, 0.5) for _ in THREE)), part(*(entry(*one) for one in THREE))
TRIANGLE = [[[0.25, 0.25, 0.5]], [[0.25, 0.25, 0.5], [0.75, 0.25, 0.0]], THREE]
IN_WORDS = {"steps": [{"valid": True}, {"valid": False}, None], "solution": {"valid": False}}


def read(row: dict[str, Any]) -> tuple[Outputs, Judgment]:
    record = JudgmentRecord.model_validate(upgraded(row))
    return record.outputs, record.judgment(TRACE)


def read_steps(row: dict[str, Any]) -> tuple[Outputs, Judgment, StepScores]:
    outputs, judgment = read(row)
    assert isinstance(judgment.result, StepScores)
    return outputs, judgment, judgment.result


@pytest.mark.parametrize("mode", [Mode.ONLINE, Mode.OFFLINE])
def test_three_numbers_belong_to_the_mode_of_the_row(mode: Mode) -> None:
    row = HEAD | OFFLINE | {"mode": mode.value, "rationale": "Because.", "spent": {"calls": 3, "unread": 1}}
    assert is_earlier(row)
    outputs, judgment, scores = read_steps(row)
    assert (outputs, judgment.mode, judgment.rationale) == (Outputs.THREE_WAY, mode, "Because.")
    assert judgment.spent == Usage(3, 1)
    np.testing.assert_array_equal(scores.probs, np.array(THREE, np.float32))


def test_hindsight_has_its_triangle() -> None:
    row = HEAD | OFFLINE | {"mode": "hindsight", "online": ONLINE, "offline": OFFLINE, "hindsight": TRIANGLE}
    outputs, judgment = read(row)
    assert (outputs, judgment.mode) == (Outputs.THREE_WAY, Mode.HINDSIGHT)
    assert judgment.hindsight is not None
    assert [rows.tolist() for rows in judgment.hindsight.rows] == [np.float32(row).tolist() for row in TRIANGLE]


def test_validity_alone_keeps_its_spread() -> None:
    row = HEAD | part(*({"validity": one, "spread": 0.1} for one in (0.75, 0.5, 0.25))) | {"mode": "offline"}
    outputs, _, scores = read_steps(row)
    assert (outputs, scores.validity.tolist()) == (Outputs.VALIDITY, [0.75, 0.5, 0.25])
    assert scores.spread is not None
    assert scores.spread.tolist() == [np.float32(0.1)] * 3


@each(
    "evaluator, mode, outputs, read_mode",
    [
        ("critic", "online", Outputs.VERDICT, Mode.ONLINE),
        ("critic", "hindsight", Outputs.VERDICT, Mode.OFFLINE),
        ("equations", "offline", Outputs.CHECKS, Mode.OFFLINE),
    ],
)
def test_verdicts_in_words_keep_silence(evaluator: str, mode: str, outputs: Outputs, read_mode: Mode) -> None:
    row = HEAD | IN_WORDS | {"evaluator": evaluator, "mode": mode}
    found, judgment, scores = read_steps(row)
    assert (found, judgment.mode, judgment.solution) == (outputs, read_mode, 0.0)
    # Right, wrong, and nothing of the third.
    assert scores.probs.tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 0]]


@each(
    "row",
    [
        HEAD | OFFLINE | {"mode": "offline", "problem": "q"},
        HEAD | OFFLINE | {"mode": "offline", "format": "stepsight-judgment"},
        HEAD | OFFLINE | {"mode": "offline", "solution": "The answer is 9."},
    ],
)
def test_other_rows_are_not_of_that_form(row: dict[str, Any]) -> None:
    assert not is_earlier(row)


@each("change", [{"step_of": [0, 1]}, {"step_of": "0 1 1"}, {"steps": [{"score": 1}, {"score": 1}, {"score": 0}]}])
def test_a_damaged_row_is_refused(change: dict[str, Any]) -> None:
    with refused():
        upgraded(HEAD | OFFLINE | {"mode": "offline"} | change)
