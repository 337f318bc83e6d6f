r"""Math-Shepherd: solutions in which a step's label says whether continuing from it can reach the answer.

`label` is `input` with the tag after each step replaced by + or -:

    {"input": "Janet's ducks lay … Step 1: She sells 16 - 3 = <<16-3=13>>13. ки\nStep 2: So 25. ки",
     "label": "Janet's ducks lay … Step 1: She sells 16 - 3 = <<16-3=13>>13. +\nStep 2: So 25. -", "task": "GSM8K"}

A + says that the step is valid but not whether it is redundant, so the step is marked valid and given no label. A -
always means neg. The rows have no ids, so each gets an id made from its content. "Step 1:" stays part of the text
of the step.
"""

from stepsight.core.errors import UserError
from stepsight.core.label import Label
from stepsight.core.trace import Step, Trace, check_text
from stepsight.storage.importers.rows.fields import content_id, describe, located, rest, text
from stepsight.storage.importers.rows.kind import FileKind, PublicFile, Row

_TAG = "ки"
_FIRST = "Step 1:"


def parse(row: Row, where: str) -> Trace:
    """Parse a row into a trace. Raises `UserError` if a field is missing or `label` does not match `input`."""
    with located(where):
        parts = text(row, "input").split(_TAG)
        signs = _signs(parts, text(row, "label"))
        problem, marker, first = parts[0].rpartition(_FIRST)
        if not marker or not signs:
            raise UserError(f"the field 'input' has no {_FIRST!r} followed by {_TAG!r}.", "Check the file.")
        texts = [marker + first, *parts[1:-1]]
        return Trace(
            id=content_id(row),
            problem=check_text(problem.strip(), "the problem"),
            steps=tuple(_step(step.strip(), sign) for step, sign in zip(texts, signs, strict=True)),
            meta=rest(row, "input", "label"),
        )


def _signs(parts: list[str], label: str) -> list[str]:
    """Return the character, + or -, that replaces each tag in `label`. `parts` is the input split at the tags.
    Raises `UserError` if the texts differ or a character is missing."""
    signs, at = [], 0
    for number, part in enumerate(parts[:-1], start=1):
        at += len(part)
        sign = label[at : at + 1]
        if label[at - len(part) : at] != part:
            raise UserError(f"the field 'label' differs from 'input' before the tag of step {number}.")
        if sign not in ("+", "-"):
            raise UserError(f"the label of step {number} is {describe(sign)}.", "Expected + or -.")
        signs.append(sign)
        at += 1
    if parts[-1].strip() or label[at:].strip():
        raise UserError(f"text follows the last {_TAG!r}.", f"Expected {_TAG!r} after every step.")
    return signs


def _step(text: str, sign: str) -> Step:
    return Step((text,), valid=True) if sign == "+" else Step((text,), Label.NEG)


KIND = FileKind(
    name="math-shepherd",
    title="Math-Shepherd with + or - for every step",
    fields=frozenset({"input", "label"}),
    holds=lambda row: isinstance(row["label"], str) and _TAG in str(row["input"]),
    parse=parse,
    dataset="math-shepherd",
    files=(
        PublicFile(
            "math-shepherd.jsonl",
            "https://huggingface.co/datasets/peiyi9979/Math-Shepherd/resolve/"
            "ae6b0c54fca9fa26096f7de175c747e4b262e01a/math-shepherd.jsonl",
            "bbe67ca2e1d551734e100297349779b597ddfa9fd7655364ea1f99cc23beb4b6",
        ),
    ),
)
