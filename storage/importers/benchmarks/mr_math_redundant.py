"""MR-MATH, redundant steps: solutions in which every step is rated (GAIR-NLP/ReasonEval).

The file is JSON Lines despite its extension `.json`. A step is a list of sub-steps. `rating` has one number per
step, 1 for pos, 0 for neu and -1 for neg, as in PRM800K:

    {"id": 1, "question": "Simplify $19x + 1 - 4x - 81$.", "ground_truth_answer": "15x - 80",
     "generator": "GPT-4 (PRM800K)",
     "model_output_step_format": [["To simplify …"], ["So …"], ["It helps to …"]], "rating": [1, 1, 0]}
"""

from stepsight.core.trace import Trace
from stepsight.storage.importers.rows.fields import RATINGS, Id, Items, RowFields, Substeps, Text, labelled_steps
from stepsight.storage.importers.rows.kind import FileKind, Row


class _MrMathRedundantFields(RowFields):
    id: Id
    question: Text
    model_output_step_format: Substeps
    rating: Items

    def trace(self, row: Row) -> Trace:
        steps = labelled_steps(self.model_output_step_format, self.rating, RATINGS, ("ratings", "steps"))
        return Trace(self.id, self.question, steps, self.meta(row))


KIND = FileKind(
    name="mr-math-redundant",
    title="MR-MATH with a rating of every step",
    read=_MrMathRedundantFields.read,
    fields=_MrMathRedundantFields.names() - {"id"},
    dataset="mr-math-redundant",
)
