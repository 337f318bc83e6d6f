r"""Math-Shepherd: solutions in which a step's label says whether continuing from it can reach the answer.

`label` is `input` with the tag after each step replaced by + or -:

    {"input": "Janet's ducks lay … Step 1: She sells 16 - 3 = <<16-3=13>>13. ки\nStep 2: So 25. ки",
     "label": "Janet's ducks lay … Step 1: She sells 16 - 3 = <<16-3=13>>13. +\nStep 2: So 25. -", "task": "GSM8K"}

A + says that the step is valid but not whether it is redundant, so the step is marked valid and given no label. A -
always means neg. The rows have no ids, so each gets an id made from its content. "Step 1:" stays part of the text
of the step.
"""

from stepsight.core.errors import UserError
from stepsight.core.trace import Label, Step, Trace, check_text
from stepsight.storage.importers.rows.fields import RowFields, Text, content_id, describe
from stepsight.storage.importers.rows.kind import Row

_TAG = "ки"
_FIRST = "Step 1:"


class _MathShepherd(RowFields):
    input: Text
    label: Text

    def trace(self, row: Row) -> Trace:
        parts = self.input.split(_TAG)
        signs = self._signs(parts)
        problem, marker, first = parts[0].rpartition(_FIRST)
        if not marker or not signs:
            raise UserError(f"the field 'input' has no {_FIRST!r} followed by {_TAG!r}.", "Check the file.")
        texts = [step.strip() for step in (marker + first, *parts[1:-1])]
        return Trace(
            content_id(row),
            check_text(problem.strip(), "the problem"),
            tuple(
                Step((step,), valid=True) if sign == "+" else Step((step,), Label.NEG)
                for step, sign in zip(texts, signs, strict=True)
            ),
            self.meta(row),
        )

    def _signs(self, parts: list[str]) -> list[str]:
        """Return the character, + or -, that replaces each tag in `label`. `parts` is the input split at the
        tags."""
        signs, position, label = [], 0, self.label
        for number, part in enumerate(parts[:-1], start=1):
            position += len(part)
            sign = label[position : position + 1]
            if label[position - len(part) : position] != part:
                raise UserError(f"the field 'label' differs from 'input' before the tag of step {number}.")
            if sign not in ("+", "-"):
                raise UserError(f"the label of step {number} is {describe(sign)}.", "Expected + or -.")
            signs.append(sign)
            position += 1
        if parts[-1].strip() or label[position:].strip():
            raise UserError(f"text follows the last {_TAG!r}.", f"Expected {_TAG!r} after every step.")
        return signs


KIND = _MathShepherd.kind(
    "math-shepherd",
    "Math-Shepherd with + or - for every step",
    holds=lambda row: isinstance(row["label"], str) and _TAG in str(row["input"]),
)
