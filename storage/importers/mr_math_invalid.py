"""MR-MATH, invalid steps: solutions to MATH problems with the first wrong step named (GAIR-NLP/ReasonEval).

JSON Lines in spite of the `.json` name. A step is a list of sub-steps; the first error is 1-based:

    {"id": 4, "question": "Compute $\\sin 45^\\circ$.", "ground_truth_answer": "\\frac{\\sqrt{2}}{2}",
     "generator": "Abel13B-001", "model_output": "1. The problem …", "model_output_step_format":
     [["1. The problem asks …"], ["2. The sine of …", "So it is …"]],
     "model_output_answer_correctness": "correct", "model_output_solution_correctness": "wrong",
     "model_output_solution_first_error_step": 2}

A correct solution has `"N/A"` for the first error. The gold says which steps are valid, but not whether a
valid one is redundant, so a step before the first error is valid without a label, and one after it is
unlabelled.
"""

from core.errors import UserError
from core.label import Label
from core.trace import Step, Trace
from storage.importers.fields import describe, field, identifier, located, rest, steps, text
from storage.importers.kind import Kind, Row

_STEPS = "model_output_step_format"
_CORRECTNESS = "model_output_solution_correctness"
_FIRST_ERROR = "model_output_solution_first_error_step"


def parse(row: Row, where: str) -> Trace:
    """A row as a trace. Raises `UserError` on missing, mistyped or contradictory fields."""
    with located(where):
        texts = steps(row, _STEPS)
        error = _first_error(row, len(texts))
        return Trace(
            id=identifier(row, "id"),
            problem=text(row, "question"),
            steps=tuple(_step(substeps, i, error) for i, substeps in enumerate(texts)),
            meta=rest(row, "id", "question", _STEPS, _FIRST_ERROR),
        )


def _step(substeps: tuple[str, ...], i: int, error: int | None) -> Step:
    if error is None or i < error:
        return Step(substeps, valid=True)
    return Step(substeps, Label.NEG) if i == error else Step(substeps)


def _first_error(row: Row, n_steps: int) -> int | None:
    """The 0-based first error, None for a correct solution."""
    correctness, found = field(row, _CORRECTNESS), field(row, _FIRST_ERROR)
    if correctness == "correct":
        if found != "N/A":
            raise UserError(
                f"the solution is marked correct, yet {_FIRST_ERROR!r} is {describe(found)}.",
                'Expected "N/A".',
            )
        return None
    if correctness != "wrong":
        raise UserError(f"the field {_CORRECTNESS!r} is {describe(correctness)}.", "Expected correct or wrong.")
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= n_steps:
        raise UserError(
            f"the field {_FIRST_ERROR!r} is {describe(found)}, expected a step from 1 to {n_steps}.",
            "The solution is marked wrong.",
        )
    return found - 1


KIND = Kind(
    name="mr-math-invalid",
    title="MR-MATH with the first wrong step of each solution",
    fields=frozenset({"question", _STEPS, _CORRECTNESS, _FIRST_ERROR}),
    parse=parse,
    dataset="mr-math-invalid",
)
