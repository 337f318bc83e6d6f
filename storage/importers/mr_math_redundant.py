"""MR-MATH, redundant steps: solutions in which every step is rated (GAIR-NLP/ReasonEval).

The file is JSON Lines despite its extension `.json`. A step is a list of sub-steps. `rating` has one number per
step, 1 for pos, 0 for neu and -1 for neg, as in PRM800K:

    {"id": 1, "question": "Simplify $19x + 1 - 4x - 81$.", "ground_truth_answer": "15x - 80",
     "generator": "GPT-4 (PRM800K)",
     "model_output_step_format": [["To simplify …"], ["So …"], ["It helps to …"]], "rating": [1, 1, 0]}
"""

from collections.abc import Mapping

from stepsight.core.errors import UserError
from stepsight.core.label import Label
from stepsight.core.trace import Step, Trace
from stepsight.storage.importers.fields import describe, field, identifier, located, rest, steps, text, whole_number
from stepsight.storage.importers.kind import FileKind, PublicFile, Row

_STEPS = "model_output_step_format"
_LABELS: Mapping[int | None, Label] = {1: Label.POS, 0: Label.NEU, -1: Label.NEG}


def parse(row: Row, where: str) -> Trace:
    """Parse a row into a trace. Raises `UserError` if fields are missing, mistyped or contradictory."""
    with located(where):
        texts = steps(row, _STEPS)
        labels = _labels(row, len(texts))
        return Trace(
            id=identifier(row, "id"),
            problem=text(row, "question"),
            steps=tuple(Step(substeps, label) for substeps, label in zip(texts, labels, strict=True)),
            meta=rest(row, "id", "question", _STEPS, "rating"),
        )


def _labels(row: Row, n_steps: int) -> list[Label]:
    ratings = field(row, "rating")
    if not isinstance(ratings, list):
        raise UserError(f"the field 'rating' is {describe(ratings)}, expected a list.")
    if len(ratings) != n_steps:
        raise UserError(f"{len(ratings)} ratings for {n_steps} steps.", "Give one rating per step.")
    return [_label(rating, number) for number, rating in enumerate(ratings, start=1)]


def _label(rating: object, number: int) -> Label:
    label = _LABELS.get(whole_number(rating))
    if label is None:
        raise UserError(f"the rating of step {number} is {describe(rating)}.", "Expected 1, 0 or -1.")
    return label


_PUBLIC = "https://raw.githubusercontent.com/GAIR-NLP/ReasonEval/c73fd593736792bab94ea53386bd44232c10d332/dataset"

KIND = FileKind(
    name="mr-math-redundant",
    title="MR-MATH with a rating of every step",
    fields=frozenset({"question", _STEPS, "rating"}),
    parse=parse,
    dataset="mr-math-redundant",
    files=(
        PublicFile(
            "mr-math_redundant_errors.json",
            f"{_PUBLIC}/mr-math_redundant_errors.json",
            "a2abed891b581481f9e66e2321229602c3247934ec01fb862e4399c11d1a4641",
        ),
    ),
)
