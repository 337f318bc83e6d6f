"""Stepwise supervision, the format of TRL's datasets: a prompt and completions that are each right or wrong.

    {"prompt": "Which number is larger, 9.8 or 9.11?", "completions": ["The fractional part …", "So 9.11 …"],
     "labels": [true, false]}

The labels only distinguish right from wrong. True becomes valid without a label, because datasets differ in whether
a neutral step counts as true or false. False becomes neg, and null unlabelled. 1 and 0, + and -, and words are read
like true and false. The rows have no ids, so each trace gets a hash of its row as id.
"""

from stepsight.core.errors import UserError
from stepsight.core.trace import Step, Trace
from stepsight.storage.importers.fields import (
    VALIDITY,
    content_id,
    describe,
    is_missing,
    listed,
    located,
    meaning,
    rest,
    step_of,
    text,
    texts,
)
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
    if is_missing(label):
        return Step((text,))
    says = meaning(label, VALIDITY)
    if says is None:
        raise UserError(f"the label of step {number} is {describe(label)}.", "Expected true, false or null.")
    return step_of((text,), says)


KIND = FileKind(
    name="stepwise",
    title="stepwise-supervision rows of prompt, completions and labels",
    fields=frozenset({"prompt", "completions", "labels"}),
    parse=parse,
)
