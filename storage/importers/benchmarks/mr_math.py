r"""MR-MATH and MR-GSM8K: solutions with the first error marked, or with every step rated.

Invalid steps of MR-MATH (GAIR-NLP/ReasonEval). The file is JSON Lines despite its extension `.json`. A step is a
list of sub-steps, and the first error is 1-based:

    {"id": 4, "question": "Compute $\sin 45^\circ$.", "ground_truth_answer": "\frac{\sqrt{2}}{2}",
     "generator": "Abel13B-001", "model_output": "1. The problem …", "model_output_step_format":
     [["1. The problem asks …"], ["2. The sine of …", "So it is …"]],
     "model_output_answer_correctness": "correct", "model_output_solution_correctness": "wrong",
     "model_output_solution_first_error_step": 2}

In a correct solution, the first error is `"N/A"`. The gold labels say which steps are valid, but not whether a
valid step is redundant. The steps before the first error therefore become valid without a label, and those after it
are unlabelled.

Redundant steps of MR-MATH (GAIR-NLP/ReasonEval), also JSON Lines. `rating` has one number per step, 1 for pos, 0
for neu and -1 for neg, as in PRM800K:

    {"id": 1, "question": "Simplify $19x + 1 - 4x - 81$.", "ground_truth_answer": "15x - 80",
     "generator": "GPT-4 (PRM800K)",
     "model_output_step_format": [["To simplify …"], ["So …"], ["It helps to …"]], "rating": [1, 1, 0]}

MR-GSM8K (dvlab-research): GSM8K problems and variants of them, as a JSON array or JSON Lines. `question_type` is
original, reversed or POT, and the first error is as in MR-MATH:

    [{"uuid": "179ede83-…", "question": "Miss Maria is … what is the value of unknown variable x?",
      "ground_truth_solution": "…", "ground_truth_answer": "6",
      "model_output_steps": ["Step 1: Miss Maria has x decks …", "Step 2: She also has …"],
      "model_output_answer_correctness": "wrong", "model_output_solution_correctness": "wrong",
      "model_output_solution_first_error_step": 2, "model_output_solution_first_error_reason": "…",
      "question_type": "reversed"}]
"""

from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.importers.rows.fields import (
    RATINGS,
    Id,
    Items,
    RowFields,
    Substeps,
    Text,
    Texts,
    describe,
    is_missing,
    labelled_steps,
    says_not_applicable,
    until_error,
    whole_number,
)
from stepsight.storage.importers.rows.kind import Row

_FIRST_ERROR = "model_output_solution_first_error_step"
_TYPES = ("original", "reversed", "POT")


class _MarkedSolution(RowFields):
    model_output_solution_correctness: Any
    model_output_solution_first_error_step: Any

    def first_error(self, n_steps: int) -> int | None:
        """Return the 0-based first error, or None if the solution is correct."""
        correctness = self.model_output_solution_correctness
        error = self.model_output_solution_first_error_step
        if correctness == "correct":
            # A program that reads "N/A" as a gap writes null or NaN.
            if not (is_missing(error) or says_not_applicable(error)):
                raise UserError(
                    f"the solution is marked correct, but {_FIRST_ERROR!r} is {describe(error)}.",
                    'Expected "N/A".',
                )
            return None
        if correctness != "wrong":
            raise UserError(
                f"the field 'model_output_solution_correctness' is {describe(correctness)}.",
                "Expected correct or wrong.",
            )
        number = whole_number(error)
        if number is None or not 1 <= number <= n_steps:
            raise UserError(
                f"the field {_FIRST_ERROR!r} is {describe(error)}, expected a step from 1 to {n_steps}.",
                "The solution is marked wrong.",
            )
        return number - 1


class _MrMathInvalid(_MarkedSolution):
    kept = ("model_output_solution_correctness",)

    id: Id
    question: Text
    model_output_step_format: Substeps

    def trace(self, row: Row) -> Trace:
        steps = self.model_output_step_format
        return Trace(self.id, self.question, until_error(steps, self.first_error(len(steps))), self.meta(row))


class _MrMathRedundant(RowFields):
    id: Id
    question: Text
    model_output_step_format: Substeps
    rating: Items

    def trace(self, row: Row) -> Trace:
        steps = labelled_steps(self.model_output_step_format, self.rating, RATINGS, ("rating", "step"))
        return Trace(self.id, self.question, steps, self.meta(row))


class _MrGsm8k(_MarkedSolution):
    kept = ("model_output_solution_correctness", "question_type")

    uuid: Id
    question: Text
    model_output_steps: Texts
    question_type: Any

    def trace(self, row: Row) -> Trace:
        if self.question_type not in _TYPES:
            raise UserError(
                f"the field 'question_type' is {describe(self.question_type)}.", f"Expected {', '.join(_TYPES)}."
            )
        steps = self.model_output_steps
        return Trace(self.uuid, self.question, until_error(steps, self.first_error(len(steps))), self.meta(row))


INVALID = _MrMathInvalid.kind("mr-math-invalid", "MR-MATH with the first wrong step of each solution", but={"id"})
REDUNDANT = _MrMathRedundant.kind("mr-math-redundant", "MR-MATH with a rating of every step", but={"id"})
GSM8K = _MrGsm8k.kind("mr-gsm8k", "MR-GSM8K with the first wrong step of each solution", but={"question_type"})
