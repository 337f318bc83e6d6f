"""MR-GSM8K: solutions to GSM8K problems and variants of them, with the first error marked (dvlab-research).

The file is a JSON array or JSON Lines. `question_type` is original, reversed or POT, and the first error is
1-based:

    [{"uuid": "179ede83-…", "question": "Miss Maria is … what is the value of unknown variable x?",
      "ground_truth_solution": "…", "ground_truth_answer": "6",
      "model_output_steps": ["Step 1: Miss Maria has x decks …", "Step 2: She also has …"],
      "model_output_answer_correctness": "wrong", "model_output_solution_correctness": "wrong",
      "model_output_solution_first_error_step": 2, "model_output_solution_first_error_reason": "…",
      "question_type": "reversed"}]

In a correct solution, the first error is `"N/A"`. As in MR-MATH, the steps before the first error become valid
without a label, and those after it are unlabelled.
"""

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.importers.benchmarks.mr_math_invalid import CORRECTNESS, FIRST_ERROR, first_error
from stepsight.storage.importers.rows.fields import (
    describe,
    field,
    identifier,
    located,
    rest,
    text,
    texts,
    until_error,
)
from stepsight.storage.importers.rows.kind import FileKind, PublicFile, Row

_STEPS = "model_output_steps"
_TYPES = ("original", "reversed", "POT")


def parse(row: Row, where: str) -> Trace:
    """Parse a row into a trace. Raises `UserError` if fields are missing, mistyped or contradictory."""
    with located(where):
        steps = texts(row, _STEPS)
        if (question_type := field(row, "question_type")) not in _TYPES:
            raise UserError(
                f"the field 'question_type' is {describe(question_type)}.", f"Expected {', '.join(_TYPES)}."
            )
        return Trace(
            id=identifier(row, "uuid"),
            problem=text(row, "question"),
            steps=until_error([(step,) for step in steps], first_error(row, len(steps))),
            meta=rest(row, "uuid", "question", _STEPS, FIRST_ERROR),
        )


_PUBLIC = "https://raw.githubusercontent.com/GAIR-NLP/ReasonEval/6c91c7a16e2b0e12ebc89685207cd091fb411478/dataset"
_GIT_BLOB = "faad84b84a2f5880a6f6888bf8cf5fe3d633360c"

KIND = FileKind(
    name="mr-gsm8k",
    title="MR-GSM8K with the first wrong step of each solution",
    fields=frozenset({"uuid", "question", _STEPS, CORRECTNESS, FIRST_ERROR}),
    parse=parse,
    dataset="mr-gsm8k",
    files=(PublicFile("mr-gsm8k.json", f"{_PUBLIC}/mr-gsm8k.json", git_blob=_GIT_BLOB),),
)
