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

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.importers.rows.fields import (
    describe,
    field,
    identifier,
    is_missing,
    located,
    rest,
    says_not_applicable,
    steps,
    text,
    until_error,
    whole_number,
)
from stepsight.storage.importers.rows.kind import FileKind, PublicFile, Row

_STEPS = "model_output_step_format"
CORRECTNESS = "model_output_solution_correctness"
FIRST_ERROR = "model_output_solution_first_error_step"


def parse(row: Row, where: str) -> Trace:
    """Parse a row into a trace. Raises `UserError` if fields are missing, mistyped or contradictory."""
    with located(where):
        texts = steps(row, _STEPS)
        error = first_error(row, len(texts))
        return Trace(
            id=identifier(row, "id"),
            problem=text(row, "question"),
            steps=until_error(texts, error),
            meta=rest(row, "id", "question", _STEPS, FIRST_ERROR),
        )


def first_error(row: Row, n_steps: int) -> int | None:
    """Return the 0-based first error of an MR-MATH or MR-GSM8K row, or None if the solution is correct."""
    correctness, error = field(row, CORRECTNESS), field(row, FIRST_ERROR)
    if correctness == "correct":
        # A program that reads "N/A" as a gap writes null or NaN.
        if not (is_missing(error) or says_not_applicable(error)):
            raise UserError(
                f"the solution is marked correct, yet {FIRST_ERROR!r} is {describe(error)}.",
                'Expected "N/A".',
            )
        return None
    if correctness != "wrong":
        raise UserError(f"the field {CORRECTNESS!r} is {describe(correctness)}.", "Expected correct or wrong.")
    number = whole_number(error)
    if number is None or not 1 <= number <= n_steps:
        raise UserError(
            f"the field {FIRST_ERROR!r} is {describe(error)}, expected a step from 1 to {n_steps}.",
            "The solution is marked wrong.",
        )
    return number - 1


_PUBLIC = "https://raw.githubusercontent.com/GAIR-NLP/ReasonEval/37d5d2885182b56fdec3ad3f38770e6b15bd353e/dataset"

KIND = FileKind(
    name="mr-math-invalid",
    title="MR-MATH with the first wrong step of each solution",
    fields=frozenset({"question", _STEPS, CORRECTNESS, FIRST_ERROR}),
    parse=parse,
    dataset="mr-math-invalid",
    files=(
        PublicFile(
            "mr-math_invalid_errors.json",
            f"{_PUBLIC}/MR-MATH_invalid_errors.json",
            "24317f01a3f34f569cc6438396a242252c9695bcd6c603cd153d3f99ca14929c",
        ),
    ),
)
