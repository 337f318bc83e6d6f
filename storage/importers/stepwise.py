"""Stepwise supervision, the format of TRL's datasets: a prompt and completions that are each right or wrong.

    {"prompt": "Which number is larger, 9.8 or 9.11?", "completions": ["The fractional part …", "So 9.11 …"],
     "labels": [true, false]}

The labels only distinguish right from wrong. True becomes valid without a label, because datasets differ in whether
a neutral step counts as true or false. False becomes neg, and null unlabelled. The rows have no ids, so each trace
gets a hash of its row as id.
"""

from stepsight.core.errors import UserError
from stepsight.core.label import Label
from stepsight.core.trace import Step, Trace
from stepsight.storage.importers.fields import content_id, describe, listed, located, rest, text, texts
from stepsight.storage.importers.kind import FileKind, Row


def parse(row: Row, where: str) -> Trace:
    """Parse a row into a trace. Raises `UserError` if a field is missing or mistyped."""
    with located(where):
        steps, labels = texts(row, "completions"), listed(row, "labels")
        if len(labels) != len(steps):
            raise UserError(f"{len(labels)} labels for {len(steps)} completions.", "Give one label per step.")
        return Trace(
            id=content_id(row),
            problem=text(row, "prompt"),
            steps=tuple(
                _step(step, label, i) for i, (step, label) in enumerate(zip(steps, labels, strict=True), 1)
            ),
            meta=rest(row, "prompt", "completions", "labels"),
        )


def _step(text: str, label: object, number: int) -> Step:
    if label is False:
        return Step((text,), Label.NEG)
    if label is True or label is None:
        return Step((text,), valid=label)
    raise UserError(f"the label of step {number} is {describe(label)}.", "Expected true, false or null.")


KIND = FileKind(
    name="stepwise",
    title="stepwise-supervision rows of prompt, completions and labels",
    fields=frozenset({"prompt", "completions", "labels"}),
    parse=parse,
)
