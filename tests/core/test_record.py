import json

import numpy as np
import pytest

from stepsight.core.judgment import Judgment, Mode, judgment_record
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds
from stepsight.core.trace import Trace

TRACE = Trace.of("q", ["x", "y"], id="t-1")
FIRST = np.array([[0.25, 0.25, 0.5]], np.float32)
BOTH = np.array([[0.125, 0.375, 0.5], [0.75, 0.25, 0.0]], np.float32)


def test_a_record_holds_every_step_and_the_solution():
    record = judgment_record(Judgment(TRACE, Mode.OFFLINE, StepScores(BOTH)), "mini")
    assert record == {
        "id": "t-1",
        "evaluator": "mini",
        "mode": "offline",
        "steps": [
            # validity = neu + pos, redundancy = neu
            {"neg": 0.125, "neu": 0.375, "pos": 0.5, "validity": 0.875, "redundancy": 0.375},
            {"neg": 0.75, "neu": 0.25, "pos": 0.0, "validity": 0.25, "redundancy": 0.25},
        ],
        # min(0.875, 0.25) < 0.5 and max(0.375, 0.25) >= 0.15
        "solution": {"validity": 0.25, "redundancy": 0.375, "valid": False, "redundant": True},
    }


def test_thresholds_decide_the_solution_and_nothing_else():
    judgment = Judgment(TRACE, Mode.ONLINE, StepScores(BOTH))
    strict, lax = judgment_record(judgment, "mini"), judgment_record(judgment, "mini", Thresholds(0.25, 0.4))
    assert lax["solution"] == {"validity": 0.25, "redundancy": 0.375, "valid": True, "redundant": False}
    assert lax["steps"] == strict["steps"]
    assert lax["mode"] == "online"


def test_hindsight_holds_the_triangle_and_both_of_its_edges():
    record = judgment_record(Judgment(TRACE, Mode.HINDSIGHT, Hindsight((FIRST, BOTH))), "mini")
    assert record["hindsight"] == [[[0.25, 0.25, 0.5]], [[0.125, 0.375, 0.5], [0.75, 0.25, 0.0]]]
    # The diagonal is FIRST[0] and BOTH[1], the last row is BOTH.
    assert [step["validity"] for step in record["online"]["steps"]] == [0.75, 0.25]
    assert [step["validity"] for step in record["offline"]["steps"]] == [0.875, 0.25]
    assert record["online"]["solution"]["redundancy"] == 0.25
    assert {key: record[key] for key in ("steps", "solution")} == record["offline"]


def test_substeps_name_their_step():
    trace = Trace.of("q", ["x", ["y", "z"]], id="t")
    record = judgment_record(Judgment(trace, Mode.OFFLINE, StepScores(BOTH[[0, 1, 1]])), "mini")
    assert record["step_of"] == [0, 1, 1]
    assert "step_of" not in judgment_record(Judgment(TRACE, Mode.OFFLINE, StepScores(BOTH)), "mini")


@pytest.mark.parametrize("mode", list(Mode))
def test_numbers_are_short_and_json_gives_them_back(mode):
    rows = np.random.default_rng(0).dirichlet([1, 1, 1], 3).astype(np.float32)
    trace = Trace.of("q", ["x", "y", "z"])
    result = Hindsight.constant(StepScores(rows)) if mode == Mode.HINDSIGHT else StepScores(rows)
    record = judgment_record(Judgment(trace, mode, result), "mini")
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    # float32 0.1 written out in full would be 0.10000000149011612.
    assert max(len(str(value)) for step in record["steps"] for value in step.values()) <= len("0.123456")
    assert record["steps"][0]["neg"] == pytest.approx(rows[0, 0], abs=5e-7)


def test_an_evaluator_that_says_how_valid_a_step_is_says_nothing_else():
    rows = (np.array([[0.25, 0, 0.75]], np.float32), np.array([[0.5, 0, 0.5], [0.625, 0, 0.375]], np.float32))
    judgment = Judgment(TRACE, Mode.HINDSIGHT, Hindsight(rows))
    record = judgment_record(judgment, "prm", outputs=Outputs.VALIDITY)
    assert record["steps"] == record["offline"]["steps"] == [{"validity": 0.5}, {"validity": 0.375}]
    assert record["solution"] == {"validity": 0.375, "valid": False}
    assert record["online"]["steps"] == [{"validity": 0.75}, {"validity": 0.375}]
    assert record["hindsight"] == [[0.75], [0.5, 0.375]]
