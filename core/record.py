"""A judgment as the JSON object that `stepsight score` writes and the pages offer for download."""

from typing import Any

import numpy as np

from core.judgment import Judgment, Mode
from core.label import LABEL_NAMES
from core.outputs import Outputs
from core.scores import Floats, StepScores, Thresholds, judge_solution

_DIGITS = 6


def judgment_record(
    judgment: Judgment,
    evaluator: str,
    thresholds: Thresholds | None = None,
    outputs: Outputs = Outputs.THREE_WAY,
) -> dict[str, Any]:
    """`id, evaluator, mode, steps, solution`; in hindsight mode also `online`, `offline` and `hindsight`.

    `steps` holds one object per sub-step, in the judgment's own mode (offline for hindsight); `hindsight` is the
    list of rows of the triangle, each a list of `[neg, neu, pos]`. Probabilities are rounded to 6 digits. Where the
    evaluator's `outputs` are not three-way there is nothing but validity: an object per sub-step has that alone,
    and so has each place of the triangle.
    """
    scores = judgment.online if judgment.mode == Mode.ONLINE else judgment.offline
    assert scores is not None
    record: dict[str, Any] = {"id": judgment.trace.id, "evaluator": evaluator, "mode": judgment.mode.value}
    record |= _scores(scores, thresholds, outputs)
    if len(judgment.trace.steps) != len(judgment.trace.substeps):
        record["step_of"] = judgment.trace.owners.tolist()
    if judgment.hindsight is not None:
        record["online"] = _scores(judgment.hindsight.online, thresholds, outputs)
        record["offline"] = _scores(judgment.hindsight.offline, thresholds, outputs)
        rows = judgment.hindsight.rows
        three = outputs == Outputs.THREE_WAY
        record["hindsight"] = [_rounded(row if three else StepScores(row).validity) for row in rows]
    return record


def _scores(scores: StepScores, thresholds: Thresholds | None, outputs: Outputs) -> dict[str, Any]:
    verdict = judge_solution(scores, thresholds)
    if outputs != Outputs.THREE_WAY:
        valid = {"validity": round(verdict.validity, _DIGITS), "valid": verdict.valid}
        return {"steps": [{"validity": validity} for validity in _rounded(scores.validity)], "solution": valid}
    steps = [
        dict(zip(LABEL_NAMES, probs, strict=True)) | {"validity": validity, "redundancy": redundancy}
        for probs, validity, redundancy in zip(
            _rounded(scores.probs), _rounded(scores.validity), _rounded(scores.redundancy), strict=True
        )
    ]
    solution = {
        "validity": round(verdict.validity, _DIGITS),
        "redundancy": round(verdict.redundancy, _DIGITS),
        "valid": verdict.valid,
        "redundant": verdict.redundant,
    }
    return {"steps": steps, "solution": solution}


def _rounded(values: Floats) -> list[Any]:
    rounded: list[Any] = np.round(values.astype(np.float64), _DIGITS).tolist()
    return rounded
