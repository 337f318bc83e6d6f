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

from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.importers.benchmarks.mr_math_invalid import MarkedSolution
from stepsight.storage.importers.rows.fields import Id, Text, Texts, describe, until_error
from stepsight.storage.importers.rows.kind import FileKind, Row

_TYPES = ("original", "reversed", "POT")


class _MrGsm8kFields(MarkedSolution):
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


KIND = FileKind(
    name="mr-gsm8k",
    title="MR-GSM8K with the first wrong step of each solution",
    read=_MrGsm8kFields.read,
    fields=_MrGsm8kFields.names() - {"question_type"},
    dataset="mr-gsm8k",
)
