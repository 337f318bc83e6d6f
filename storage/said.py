"""A row of a released score file: what an evaluator said of one trace, in any of the forms that are published.

Three numbers per sub-step (ReasonEval), one (Math-Shepherd), one per solution (ROSCOE), or words (GPT-4):

    {"id": 0, "scores": [[0.027, 0.395, 0.578], [0.032, 0.064, 0.904]]}
    {"id": 0, "scores": [0.694, 0.625]}
    {"id": 0, "scores": 0.0354}
    {"id": 2, "response": "Step-by-step …", "correctness_pred": "Wrong", "error_step_pred": "Step 4"}

Words are read as ReasonEval's script does. "Correct" or "Wrong" is a verdict on validity: the first number of
`error_step_pred` is the step blamed, the steps before it are held for valid, and of those after it nothing was
said; a number past the end blames no step. "Absent" or "Present" is one on redundancy, and every number is a
redundant step. Any other word, "Present." included, is a verdict that could not be read; the steps blamed beside
it count all the same. The two fields may stand in an object of their own:

    {"id": "179ede83-…", "gpt4_eval_output": {"correctness_pred": "Wrong", "error_step_pred": "Step 2"}}
"""

import math
import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from core.errors import UserError
from core.label import Label
from core.outputs import Outputs
from core.scores import StepScores
from core.trace import Trace
from storage.importers.fields import describe, field
from storage.importers.kind import Row

_TOLERANCE = 1e-3
_ROUNDING = 1e-9
_WORDS = ("correctness_pred", "error_step_pred")
_VERDICTS = {"correct": 1.0, "absent": 1.0, "wrong": 0.0, "present": 0.0}
_OF_REDUNDANCY = ("absent", "present")
# A number of more digits is past the end of any solution, and Python refuses to read the longest.
_DIGITS = 9

Rows = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Said:
    """`id` is the row's, None where it has none. `outputs` tells which of the others is there: `rows`, of shape (n,
    3), `solution`, or, of a verdict, its `word` and the `blamed` steps, counted from 1."""

    id: str | None
    outputs: Outputs
    rows: Rows | None = None
    solution: float | None = None
    word: str = ""
    blamed: tuple[int, ...] = ()

    @property
    def on_redundancy(self) -> bool:
        """Whether it is a verdict on redundancy, read or not."""
        return self.word.startswith(_OF_REDUNDANCY)

    def scores(self, trace: Trace, on_redundancy: bool = False) -> StepScores:
        """A row per sub-step of `trace`; zeros where nothing was said. `on_redundancy` tells what verdicts are on,
        since a word that could not be read does not.

        Raises `UserError` naming the trace where the counts differ.
        """
        count = len(trace.substeps)
        if self.outputs == Outputs.SOLUTION:
            return StepScores(np.zeros((count, 3), np.float32))
        if self.outputs == Outputs.VERDICT:
            return StepScores(self._verdict(len(trace.steps), on_redundancy)[trace.owners])
        assert self.rows is not None
        if len(self.rows) != count:
            raise UserError(
                f"{len(self.rows)} scores for the {count} sub-steps of trace {trace.id!r}.",
                "Check that the file belongs to this dataset.",
            )
        return StepScores(self.rows)

    def _verdict(self, steps: int, on_redundancy: bool) -> Rows:
        rows = np.zeros((steps, len(Label)), np.float32)
        rows[:, Label.POS] = 1
        if on_redundancy:
            redundant = [number - 1 for number in self.blamed if 1 <= number <= steps]
            rows[redundant] = np.eye(len(Label))[Label.NEU]
        elif self.word != "correct" and self.blamed and 1 <= self.blamed[0] <= steps:
            first = self.blamed[0] - 1
            rows[first] = np.eye(len(Label))[Label.NEG]
            rows[first + 1 :] = 0
        return rows


def parse_said(row: Row) -> Said:
    """A row in any of the forms. Raises `UserError` saying what was found and what was expected."""
    identifier = row.get("id", row.get("uuid"))
    if isinstance(identifier, bool) or not isinstance(identifier, str | int | None):
        raise UserError(f"the field 'id' is {describe(identifier)}, expected text or a whole number.")
    name = None if identifier is None else str(identifier)
    words = next((held for held in (row, *row.values()) if isinstance(held, dict) and _WORDS[0] in held), None)
    if words is not None:
        return _words(words, name)
    found = field(row, "scores")
    if isinstance(found, int | float) and not isinstance(found, bool):
        return Said(name, Outputs.SOLUTION, solution=_number(found, "the score"))
    if not isinstance(found, list) or not found:
        raise UserError(f"the field 'scores' is {describe(found)}.", "Expected a number, or a list of them.")
    if isinstance(found[0], list):
        rows = np.array([_triple(values, number) for number, values in enumerate(found, 1)], np.float32)
        return Said(name, Outputs.THREE_WAY, rows=rows)
    values = np.array([_share(value, f"score {number}") for number, value in enumerate(found, 1)])
    return Said(name, Outputs.VALIDITY, rows=validity_rows(values))


def validity_rows(values: NDArray[Any]) -> Rows:
    """Rows of neg, neu, pos whose validity is `values`, without redundancy."""
    return np.stack([1 - values, np.zeros_like(values), values], axis=1).astype(np.float32)


def _words(row: Row, name: str | None) -> Said:
    words = [field(row, key) for key in _WORDS]
    for key, found in zip(_WORDS, words, strict=True):
        if not isinstance(found, str):
            raise UserError(f"the field {key!r} is {describe(found)}, expected text.")
    word, steps = words[0].lower(), tuple(int(number[:_DIGITS]) for number in re.findall(r"[0-9]+", words[1]))
    return Said(name, Outputs.VERDICT, solution=_VERDICTS.get(word), word=word, blamed=steps)


def _triple(values: object, number: int) -> list[float]:
    if not isinstance(values, list) or len(values) != len(Label):
        raise UserError(f"the scores of step {number} are {describe(values)}.", "Expected three numbers.")
    found = [_share(value, f"a score of step {number}") for value in values]
    if abs(sum(found) - 1) > _TOLERANCE + _ROUNDING:
        raise UserError(f"the scores of step {number} sum to {sum(found):.4f}.", "Expected 1, within 0.001.")
    return found


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
