"""Parsing the rows of score files, which `stepsight score` or the authors of an evaluator wrote."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepsight.core.errors import UserError, counted
from stepsight.core.evidence import LeaveOneOut
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.judgment_record import FORMAT as RECORD
from stepsight.core.judgment_record import JudgmentRecord, Places, scores_of
from stepsight.core.scores import Hindsight, Outputs, StepScores
from stepsight.core.trace import Label, Trace
from stepsight.core.validation import validate
from stepsight.storage.importers.benchmarks.strict_prmbench import SCORES as STRICT_PRMBENCH
from stepsight.storage.importers.benchmarks.strict_prmbench import translated
from stepsight.storage.importers.rows.fields import describe, text, whole
from stepsight.storage.importers.rows.fields import field as field_of
from stepsight.storage.importers.rows.kind import Row

_TOLERANCE = 1e-3
_ROUNDING = 1e-9
_WORDS = ("correctness_pred", "error_step_pred")
_VERDICTS = {"correct": 1.0, "absent": 1.0, "wrong": 0.0, "present": 0.0}
_OF_REDUNDANCY = ("absent", "present")
_THEIR_NAME = "prm_name"
_LEFT_OUT, _BOTH = "left_out", ("whole", "scores")
# What other programs call a step that is left out and replaced with nothing.
_DELETED = "deleted"
# A number with more digits is beyond the end of any solution, and Python refuses to parse very long ones.
_DIGITS = 9

Rows = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PublishedScores:
    """A row of a score file.

    `id` is None if the row has no id. `outputs` says which kind of scores the row contains. It has either `rows`,
    an array of shape (n, 3), or a `solution` score, or a verdict in words, which consists of its `word`, the
    `blamed` steps (counted from 1), and a `rationale`.

    `left_out` maps the 0-based index of a left-out sub-step to the scores of the remaining sub-steps, an array of
    shape (n - 1, 3). Only rows written by `stepsight score` have
    `evaluator`, `mode`, `recorded` (the scores and their places in the trace) and `spent` (the usage).
    """

    id: str | None
    outputs: Outputs
    rows: Rows | None = None
    solution: float | None = None
    word: str = ""
    blamed: tuple[int, ...] = ()
    rationale: str = ""
    evaluator: str | None = None
    mode: Mode | None = None
    recorded: tuple[Places, StepScores | Hindsight] | None = None
    left_out: Mapping[int, Rows] = field(default_factory=dict)
    spent: Usage | None = None

    @property
    def on_redundancy(self) -> bool:
        """True if the row holds a verdict on redundancy."""
        return self.word.startswith(_OF_REDUNDANCY)

    def judgment(self, trace: Trace, mode: Mode, on_redundancy: bool = False) -> Judgment:
        """Return these scores as a judgment of `trace`. `mode` applies if the row does not name a mode."""
        scores = self.scores(trace, on_redundancy)
        return Judgment(trace, self.mode or mode, scores, self.solution, self.rationale, self.spent)

    def scores(self, trace: Trace, on_redundancy: bool = False) -> StepScores | Hindsight:
        """Return one row of scores per sub-step of `trace`, with zeros where scores are missing.

        `on_redundancy` says whether the verdicts of the file are on redundancy, which cannot be distinguished from
        an unreadable verdict. Raises `UserError`, with a message that names the trace, unless there is one score
        per sub-step.
        """
        count = len(trace.substeps)
        if self.recorded is not None:
            return scores_of(self.recorded, trace)
        if self.outputs == Outputs.SOLUTION:
            return StepScores(np.zeros((count, 3), np.float32))
        if self.outputs == Outputs.VERDICT:
            return StepScores(self._verdict(len(trace.steps), on_redundancy)[trace.owners])
        assert self.rows is not None
        if len(self.rows) != count:
            raise UserError(
                f"{counted(len(self.rows), 'score')} for the {counted(count, 'sub-step')} of trace {trace.id!r}.",
                "Check that the file belongs to this dataset.",
            )
        return StepScores(self.rows)

    def leave_one_out(self, trace: Trace) -> LeaveOneOut:
        """Return the scores with sub-steps of `trace` left out."""
        scores = self.scores(trace)
        return LeaveOneOut.of(scores.offline if isinstance(scores, Hindsight) else scores, self.left_out)

    def _verdict(self, steps: int, on_redundancy: bool) -> Rows:
        rows = np.zeros((steps, len(Label)), np.float32)
        inside = [number - 1 for number in self.blamed if 1 <= number <= steps]
        if self.solution is None and not inside:
            return rows
        rows[:, Label.POS] = 1
        if on_redundancy:
            rows[inside] = np.eye(len(Label))[Label.NEU]
        elif self.word != "correct" and self.blamed and 1 <= self.blamed[0] <= steps:
            first = self.blamed[0] - 1
            rows[first] = np.eye(len(Label))[Label.NEG]
            rows[first + 1 :] = 0
        return rows


def score_rows(row: Row) -> list[Row]:
    """Return the score rows in a row of a file: the judgments if the row is a trace saved from the pages, and
    otherwise the row itself."""
    judgments = row.get("judgments")
    if (
        "problem" in row
        and judgments
        and isinstance(judgments, list)
        and all(isinstance(judgment, dict) for judgment in judgments)
    ):
        return judgments
    return [row]


def parse_scores(row: Row) -> PublishedScores:
    """Parse a row in any of the supported formats. Raises `UserError`, saying what was expected, if the row is
    malformed."""
    if row.get("format") == RECORD:
        return _from_record(validate(JudgmentRecord, row, "the row"))
    if any(name in row for name in STRICT_PRMBENCH):
        evaluator = text(row, _THEIR_NAME) if _THEIR_NAME in row else None
        return replace(parse_scores(translated(row)), evaluator=evaluator)
    if _LEFT_OUT in row:
        return _without_a_step(row)
    identifier = row.get("id", row.get("uuid"))
    if isinstance(identifier, bool) or not isinstance(identifier, str | int | None):
        raise UserError(f"the field 'id' is {describe(identifier)}, expected text or a whole number.")
    name = None if identifier is None else str(identifier)
    words = next((value for value in (row, *row.values()) if isinstance(value, dict) and _WORDS[0] in value), None)
    if words is not None:
        return _words(words, name)
    scores = field_of(row, "scores")
    if isinstance(scores, int | float) and not isinstance(scores, bool):
        return PublishedScores(name, Outputs.SOLUTION, solution=_number(scores, "the score"))
    if not isinstance(scores, list) or not scores:
        raise UserError(f"the field 'scores' is {describe(scores)}.", "Expected a number, or a list of them.")
    if isinstance(scores[0], list):
        rows = np.array([_triple(values, number) for number, values in enumerate(scores, 1)], np.float32)
        return PublishedScores(name, Outputs.THREE_WAY, rows=rows)
    values = np.array([_share(value, f"score {number}") for number, value in enumerate(scores, 1)])
    return PublishedScores(name, Outputs.VALIDITY, rows=validity_rows(values))


def _without_a_step(row: Row) -> PublishedScores:
    """Parse a row of scores with one sub-step left out. In the row, `whole` holds the scores with nothing left out,
    `scores` holds the scores of the remaining sub-steps, and `left_out` is the 1-based index of the sub-step."""
    if row.get("gap", _DELETED) != _DELETED:
        raise UserError(f"the field 'gap' is {describe(row['gap'])}, expected {_DELETED} (nothing in its place).")
    all_steps, others = (parse_scores({"id": field_of(row, "id"), "scores": field_of(row, key)}) for key in _BOTH)
    if all_steps.rows is None or others.rows is None or all_steps.outputs != others.outputs:
        raise UserError("the fields 'whole' and 'scores' hold scores of different kinds, or no scores of steps.")
    n = len(all_steps.rows)
    step = whole(row[_LEFT_OUT], 1, n, "the step left out") - 1
    if len(others.rows) != n - 1:
        raise UserError(f"{counted(len(others.rows), 'score')} with one of {n} steps left out, expected {n - 1}.")
    return replace(all_steps, left_out={step: others.rows})


def merged(first: PublishedScores, second: PublishedScores) -> PublishedScores:
    """Merge two rows of the same trace that leave out different sub-steps. Raises `UserError` if the rows
    contradict each other, or if one of the rows leaves nothing out."""
    if not (first.left_out and second.left_out) or first.recorded is not None or second.recorded is not None:
        raise UserError(f"the id {second.id!r} is used earlier in the file.", "Give each its own.")
    if first.left_out.keys() & second.left_out.keys():
        raise UserError(f"the same step of {second.id!r} is left out earlier in the file.", "Give each step once.")
    if not np.array_equal(first.rows, second.rows):  # type: ignore[arg-type]
        raise UserError(f"the complete scores of {second.id!r} differ from those of an earlier row.")
    return replace(first, left_out={**first.left_out, **second.left_out})


def _from_record(record: JudgmentRecord) -> PublishedScores:
    return PublishedScores(
        record.id,
        record.outputs,
        solution=record.solution_score,
        rationale=record.rationale or "",
        evaluator=record.evaluator,
        mode=record.mode,
        recorded=record.scores(),
        left_out=record.left_out_rows(),
        spent=record.spent,
    )


def validity_rows(values: NDArray[Any]) -> Rows:
    """Return rows of (neg, neu, pos) with the given validities and a redundancy of 0."""
    return np.stack([1 - values, np.zeros_like(values), values], axis=1).astype(np.float32)


def _words(row: Row, name: str | None) -> PublishedScores:
    words = [field_of(row, key) for key in _WORDS]
    for key, value in zip(_WORDS, words, strict=True):
        if not isinstance(value, str):
            raise UserError(f"the field {key!r} is {describe(value)}, expected text.")
    word, steps = words[0].lower(), tuple(int(number[:_DIGITS]) for number in re.findall(r"[0-9]+", words[1]))
    rationale = row.get("response")
    if not isinstance(rationale, str | None):
        raise UserError(f"the field 'response' is {describe(rationale)}, expected text.")
    return PublishedScores(name, Outputs.VERDICT, None, _VERDICTS.get(word), word, steps, (rationale or "").strip())


def _triple(values: object, number: int) -> list[float]:
    if not isinstance(values, list) or len(values) != len(Label):
        raise UserError(f"the scores of step {number} are {describe(values)}.", "Expected three numbers.")
    numbers = [_share(value, f"a score of step {number}") for value in values]
    if abs(sum(numbers) - 1) > _TOLERANCE + _ROUNDING:
        raise UserError(f"the scores of step {number} sum to {sum(numbers):.4f}.", "Expected 1, within 0.001.")
    return numbers


def _share(value: object, what: str) -> float:
    number = _number(value, what)
    if not -_TOLERANCE <= number <= 1 + _TOLERANCE:
        raise UserError(f"{what} is {number:g}, expected a probability from 0 to 1.")
    return number


def _number(value: object, what: str) -> float:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise UserError(f"{what} is {describe(value)}, expected a finite number.")
