"""Perturbed PRM800K solutions: correct solutions into which one error each was inserted (GAIR-NLP/ReasonEval).

The file is JSON Lines despite its extension `.json`. `tags` holds 0-based indices into `hypothesis_steps`:

    {"id": 0, "rid": 0, "question": "Three pencils …", "ground_truth_answer": "29",
     "reference_steps": ["Let's call …", "We have …"], "hypothesis_steps": ["Let's call …", "We have … 1.15"],
     "error_type": "random number", "tags": 1}

The meaning of `tags` depends on the error type:

- `random number`, `random operation`, `remove step`: the wrong step, or the first step after the removed
  one.
- `swap steps`: the two swapped steps. The earlier one is the first error.
- `repeat step`: the step that is followed by its copy. The copy becomes neu, and all other steps become
  valid without a label.
- `swap solutions`: the number of the problem that the solution was taken from. This names no step, so all
  steps are unlabelled, and `tags` stays in the metadata.

In the first two cases, the steps before the first error become valid without a label, and those after it are
unlabelled.
"""

from stepsight.core.errors import UserError
from stepsight.core.label import Label
from stepsight.core.trace import Step, Trace
from stepsight.storage.importers.rows.fields import (
    describe,
    field,
    identifier,
    located,
    rest,
    text,
    texts,
    until_error,
    whole,
)
from stepsight.storage.importers.rows.kind import FileKind, PublicFile, Row

_STEPS = "hypothesis_steps"
_ONE = ("random number", "random operation", "remove step")


def parse(row: Row, where: str) -> Trace:
    """Parse a row into a trace. Raises `UserError` if a field is missing or mistyped, or a tag is out of range."""
    with located(where):
        return Trace(
            id=identifier(row, "id"),
            problem=text(row, "question"),
            steps=_steps(texts(row, _STEPS), text(row, "error_type"), field(row, "tags")),
            meta=rest(row, "id", "question", _STEPS),
        )


def _steps(steps: list[str], error: str, tags: object) -> tuple[Step, ...]:
    last = len(steps) - 1
    if error in _ONE:
        return until_error([(step,) for step in steps], whole(tags, 0, last, "the field 'tags'"))
    if error == "swap steps":
        if not isinstance(tags, list) or len(tags) != 2:
            raise UserError(f"the field 'tags' is {describe(tags)}, expected the two steps that were swapped.")
        first = min(whole(tag, 0, last, "a tag") for tag in tags)
        return until_error([(step,) for step in steps], first)
    if error == "repeat step":
        copy = whole(tags, 0, last - 1, "the field 'tags'") + 1
        return tuple(
            Step((step,), Label.NEU) if i == copy else Step((step,), valid=True) for i, step in enumerate(steps)
        )
    if error == "swap solutions":
        return tuple(Step((step,)) for step in steps)
    expected = ", ".join([*_ONE, "swap steps", "repeat step", "swap solutions"])
    raise UserError(f"the field 'error_type' is {error!r}.", f"Expected {expected}.")


_PUBLIC = "https://raw.githubusercontent.com/GAIR-NLP/ReasonEval/37d5d2885182b56fdec3ad3f38770e6b15bd353e/dataset"

KIND = FileKind(
    name="perturbation",
    title="PRM800K solutions with one planted error each",
    fields=frozenset({"question", _STEPS, "error_type", "tags"}),
    parse=parse,
    dataset="perturbation",
    files=(
        PublicFile(
            "perturbation.json",
            f"{_PUBLIC}/perturbation.json",
            "732fe0c890bcc979f5cf0ca54d44d9936f27bf86eaad1bd849094c5f239d2cf0",
        ),
    ),
)
