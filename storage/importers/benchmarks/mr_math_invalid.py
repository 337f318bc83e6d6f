r"""MR-MATH, invalid steps: solutions to MATH problems with the first error marked (GAIR-NLP/ReasonEval).

The file is JSON Lines despite its extension `.json`. A step is a list of sub-steps, and the first error is 1-based:

    {"id": 4, "question": "Compute $\sin 45^\circ$.", "ground_truth_answer": "\frac{\sqrt{2}}{2}",
     "generator": "Abel13B-001", "model_output": "1. The problem …", "model_output_step_format":
     [["1. The problem asks …"], ["2. The sine of …", "So it is …"]],
     "model_output_answer_correctness": "correct", "model_output_solution_correctness": "wrong",
     "model_output_solution_first_error_step": 2}

In a correct solution, the first error is `"N/A"`. The gold labels say which steps are valid, but not whether a
valid step is redundant. The steps before the first error therefore become valid without a label, and those after it
are unlabelled.
"""

from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.importers.rows.fields import (
    Id,
    RowFields,
    Substeps,
    Text,
    describe,
    is_missing,
    says_not_applicable,
    until_error,
    whole_number,
)
from stepsight.storage.importers.rows.kind import FileKind, Row

_FIRST_ERROR = "model_output_solution_first_error_step"


class MarkedSolution(RowFields):
    """The fields of MR-MATH and MR-GSM8K that mark the first error of a solution."""

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
                    f"the solution is marked correct, yet {_FIRST_ERROR!r} is {describe(error)}.",
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


class _MrMathInvalidFields(MarkedSolution):
    kept = ("model_output_solution_correctness",)

    id: Id
    question: Text
    model_output_step_format: Substeps

    def trace(self, row: Row) -> Trace:
        steps = self.model_output_step_format
        return Trace(self.id, self.question, until_error(steps, self.first_error(len(steps))), self.meta(row))


KIND = FileKind(
    name="mr-math-invalid",
    title="MR-MATH with the first wrong step of each solution",
    read=_MrMathInvalidFields.read,
    fields=_MrMathInvalidFields.names() - {"id"},
    dataset="mr-math-invalid",
)
