"""Stepwise supervision, the format of TRL's datasets: a prompt and completions that are each right or wrong.

    {"prompt": "Which number is larger, 9.8 or 9.11?", "completions": ["The fractional part …", "So 9.11 …"],
     "labels": [true, false]}

The labels only distinguish right from wrong. True becomes valid without a label, because datasets differ in whether
a neutral step counts as true or false. False becomes neg, and null unlabelled. 1 and 0, + and -, and words are read
like true and false. The rows have no ids, so each trace gets a hash of its row as id.
"""

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.importers.rows.fields import (
    VALIDITY,
    content_id,
    labelled_step,
    listed,
    located,
    rest,
    text,
    texts,
)
from stepsight.storage.importers.rows.kind import FileKind, Row


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
                labelled_step((step,), label, i, VALIDITY)
                for i, (step, label) in enumerate(zip(steps, labels, strict=True), 1)
            ),
            meta=rest(row, "prompt", "completions", "labels"),
        )


KIND = FileKind(
    name="stepwise",
    title="stepwise-supervision rows of prompt, completions and labels",
    fields=frozenset({"prompt", "completions", "labels"}),
    parse=parse,
)
