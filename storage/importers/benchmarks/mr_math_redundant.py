"""MR-MATH, redundant steps: solutions in which every step is rated (GAIR-NLP/ReasonEval).

The file is JSON Lines despite its extension `.json`. A step is a list of sub-steps. `rating` has one number per
step, 1 for pos, 0 for neu and -1 for neg, as in PRM800K:

    {"id": 1, "question": "Simplify $19x + 1 - 4x - 81$.", "ground_truth_answer": "15x - 80",
     "generator": "GPT-4 (PRM800K)",
     "model_output_step_format": [["To simplify …"], ["So …"], ["It helps to …"]], "rating": [1, 1, 0]}
"""

from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.trace import Step, Trace
from stepsight.storage.importers.rows.fields import (
    RATINGS,
    identifier,
    labelled_step,
    listed,
    located,
    rest,
    steps,
    text,
)
from stepsight.storage.importers.rows.kind import FileKind, PublicFile, Row

_STEPS = "model_output_step_format"


def parse(row: Row, where: str) -> Trace:
    """Parse a row into a trace. Raises `UserError` if fields are missing, mistyped or contradictory."""
    with located(where):
        return Trace(
            id=identifier(row, "id"),
            problem=text(row, "question"),
            steps=_labelled(steps(row, _STEPS), listed(row, "rating")),
            meta=rest(row, "id", "question", _STEPS, "rating"),
        )


def _labelled(texts: list[tuple[str, ...]], ratings: list[Any]) -> tuple[Step, ...]:
    if len(ratings) != len(texts):
        raise UserError(f"{len(ratings)} ratings for {len(texts)} steps.", "Give one rating per step.")
    pairs = zip(texts, ratings, strict=True)
    return tuple(
        labelled_step(step, rating, number, RATINGS) for number, (step, rating) in enumerate(pairs, start=1)
    )


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
