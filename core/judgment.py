"""A judgment: the scores of one trace by one evaluator in one mode, and its JSON record."""

from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from stepsight.core import notebook
from stepsight.core.arrays import Floats32
from stepsight.core.label import LABEL_NAMES, Label
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds, judge_solution
from stepsight.core.trace import Trace

_DIGITS = 6


class Mode(StrEnum):
    """offline: every step in one pass over the whole trace; online: step `i`, with all its sub-steps, on its own
    input `(q, h_1 … h_i)`; hindsight: every sub-step after every later one, which contains the other two."""

    OFFLINE = "offline"
    ONLINE = "online"
    HINDSIGHT = "hindsight"


@dataclass(frozen=True)
class Spent:
    """What the server that wrote a judgment was asked: how many `calls` it answered, of which `unread` held no
    verdict, and the tokens that it read and wrote, None where it does not count them."""

    calls: int
    unread: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(
            self.calls + other.calls,
            self.unread + other.unread,
            _sum(self.prompt_tokens, other.prompt_tokens),
            _sum(self.completion_tokens, other.completion_tokens),
        )

    def __str__(self) -> str:
        words = [f"{self.calls:,} {'call' if self.calls == 1 else 'calls'}"]
        if self.prompt_tokens is not None and self.completion_tokens is not None:
            words.append(f"{self.prompt_tokens:,} tokens read and {self.completion_tokens:,} written")
        if self.unread:
            words.append(f"{self.unread:,} without a readable verdict")
        return ", ".join(words)


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


@dataclass(frozen=True, eq=False)
class Judgment:
    """The scores of every sub-step of `trace`; in hindsight mode the whole triangle.

    `solution` is the evaluator's own score of the whole, where it gives one (see `Outputs`), `rationale` the words
    that it gives for its verdict, and `spent` what it took, where a server wrote it. A sub-step without scores has
    a row of zeros. A triangle is given the ends of the trace's steps, where it has as many rows as the trace has
    sub-steps.
    """

    trace: Trace
    mode: Mode
    result: StepScores | Hindsight
    solution: float | None = None
    rationale: str = ""
    spent: Spent | None = None

    def __post_init__(self) -> None:
        ends = self.trace.step_ends
        if isinstance(self.result, Hindsight) and len(self.trace.steps) != len(ends) == len(self.result):
            object.__setattr__(self, "result", replace(self.result, ends=ends))

    def _repr_html_(self) -> str:
        trace = notebook.draw_trace(self.trace.problem, self.trace.steps)
        if isinstance(self.result, Hindsight):
            return notebook.page(trace, notebook.draw_hindsight(self.result))
        return notebook.page(trace, notebook.draw_scores(self.result, self.mode))

    @property
    def hindsight(self) -> Hindsight | None:
        return self.result if isinstance(self.result, Hindsight) else None

    @property
    def online(self) -> StepScores | None:
        """The online scores, or None where the mode does not give them."""
        return self._scores(Mode.ONLINE)

    @property
    def offline(self) -> StepScores | None:
        """The offline scores, or None where the mode does not give them."""
        return self._scores(Mode.OFFLINE)

    def _scores(self, mode: Mode) -> StepScores | None:
        if isinstance(self.result, Hindsight):
            return self.result.online if mode == Mode.ONLINE else self.result.offline
        return self.result if self.mode == mode else None


def judgment_record(
    judgment: Judgment,
    evaluator: str,
    thresholds: Thresholds | None = None,
    outputs: Outputs = Outputs.THREE_WAY,
) -> dict[str, Any]:
    """The JSON object that `stepsight score` writes: `id, evaluator, mode, steps, solution`, and in hindsight mode
    also `online`, `offline` and `hindsight`; where there are any, also the `rationale` that it gives and what was
    `spent` on it.

    Where the `outputs` are in words, an entry of `steps` is {"valid": true or false}, or null for what it says
    nothing of, `solution` has `valid`, which may be null, and there is no triangle.

    `steps` holds one object per sub-step, in the judgment's own mode (offline for hindsight); `hindsight` is the
    list of rows of the triangle, each a list of `[neg, neu, pos]`. Probabilities are rounded to 6 digits. Where the
    evaluator's `outputs` are not three-way, sub-steps and places of the triangle have a validity only; a sub-step
    of an ensemble has its `spread` too.
    """
    scores = judgment.online if judgment.mode == Mode.ONLINE else judgment.offline
    assert scores is not None
    record: dict[str, Any] = {"id": judgment.trace.id, "evaluator": evaluator, "mode": judgment.mode.value}
    record |= _said(judgment, scores) if outputs.in_words else _scores(scores, thresholds, outputs)
    if judgment.rationale:
        record["rationale"] = judgment.rationale
    if judgment.spent is not None:
        record["spent"] = asdict(judgment.spent)
    if len(judgment.trace.steps) != len(judgment.trace.substeps):
        record["step_of"] = judgment.trace.owners.tolist()
    if judgment.hindsight is not None and not outputs.in_words:
        record["online"] = _scores(judgment.hindsight.online, thresholds, outputs)
        record["offline"] = _scores(judgment.hindsight.offline, thresholds, outputs)
        rows = judgment.hindsight.rows
        three = outputs == Outputs.THREE_WAY
        record["hindsight"] = [_rounded(row if three else StepScores(row).validity) for row in rows]
    return record


def _said(judgment: Judgment, scores: StepScores) -> dict[str, Any]:
    steps = [{"valid": not probs[Label.NEG] > 0} if probs.any() else None for probs in scores.probs]
    whole = judgment.solution
    return {"steps": steps, "solution": {"valid": None if whole is None else whole >= 0.5}}


def _scores(scores: StepScores, thresholds: Thresholds | None, outputs: Outputs) -> dict[str, Any]:
    verdict = judge_solution(scores, thresholds)
    if outputs != Outputs.THREE_WAY:
        valid = {"validity": round(verdict.validity, _DIGITS), "valid": verdict.valid}
        steps = [{"validity": validity} for validity in _rounded(scores.validity)]
        return {"steps": _with_spread(steps, scores), "solution": valid}
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
    return {"steps": _with_spread(steps, scores), "solution": solution}


def _with_spread(steps: list[dict[str, Any]], scores: StepScores) -> list[dict[str, Any]]:
    if scores.spread is None:
        return steps
    return [step | {"spread": spread} for step, spread in zip(steps, _rounded(scores.spread), strict=True)]


def _rounded(values: Floats32) -> list[Any]:
    rounded: list[Any] = np.round(values.astype(np.float64), _DIGITS).tolist()
    return rounded
