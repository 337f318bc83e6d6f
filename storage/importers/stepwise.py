"""Stepwise supervision, the format of TRL's datasets: a prompt and completions that are each right or wrong.

    {"prompt": "Which number is larger, 9.8 or 9.11?", "completions": ["The fractional part …", "So 9.11 …"],
     "labels": [true, false]}

The labels only distinguish right from wrong. True becomes valid without a label, because datasets differ in whether
a neutral step counts as true or false. False becomes neg, and null unlabelled. 1 and 0, + and -, and words are read
like true and false. The rows have no ids, so each trace gets a hash of its row as id.

Labels may also be shares, which rollouts give but TRL's trainer cannot learn from: if one label of a row is a
fraction, all are shares from 0 to 1.

A file of several solutions to each prompt may have the same names. It is told by completions that are all whole
solutions, of several steps or with a final answer.
"""

import re
from collections.abc import Sequence

from stepsight.core.text.split import split_steps
from stepsight.core.trace import Trace
from stepsight.storage.importers.rows.fields import (
    VALIDITY,
    Items,
    NumbersSeen,
    RowFields,
    Text,
    Texts,
    are_shares,
    content_id,
    labelled_steps,
    listed_value,
)
from stepsight.storage.importers.rows.kind import OnBad, Row, Rows

# Words or signs with which a solution states its answer.
_ANSWER = re.compile(r"\\boxed\b|####|\banswer\b.{0,20}?(?:\bis\b|:)", re.IGNORECASE)


def are_stepwise(rows: Sequence[Row]) -> bool:
    """True if most rows are stepwise supervision."""
    return 2 * sum(map(is_stepwise, rows)) > len(rows)


def is_stepwise(row: Row) -> bool:
    """True if a row has a label for each completion, and the completions are steps rather than whole solutions."""
    completions, labels = listed_value(row.get("completions")), listed_value(row.get("labels"))
    if "prompt" not in row or completions is None or labels is None:
        return False
    is_alone = len(completions) == 1
    are_solutions = (
        isinstance(text, str) and (len(split_steps(text)) > 1 or (not is_alone and bool(_ANSWER.search(text))))
        for text in completions
    )
    return not completions or not all(are_solutions)


class _Stepwise(RowFields):
    completions: Texts
    labels: Items
    prompt: Text

    def trace(self, row: Row) -> Trace:
        labels = self.labels
        called = ("label", "completion")
        steps = labelled_steps(self.completions, labels, VALIDITY, called, are_shares=are_shares(labels))
        return Trace(content_id(row), self.prompt, steps, self.meta(row))


def write(trace: Trace) -> Row:
    """Return a row with the shares of a trace if it has any, and otherwise its validities."""
    labels = [step.share if trace.has_shares else step.valid for step in trace.steps]
    return {"prompt": trace.problem, "completions": [step.text for step in trace.steps], "labels": labels}


def _check_labels(rows: Rows, name: str, on_bad: OnBad | None) -> Rows:
    """Yield the rows. Raises `UserError` at the end if some labels are shares, and others may be."""
    seen = NumbersSeen()
    for where, row in rows:
        seen.add(where, listed_value(row.get("labels")) or ())
        yield where, row
    seen.check()


KIND = _Stepwise.kind(
    "stepwise",
    "stepwise-supervision rows of prompt, completions and labels",
    dataset=None,
    write=write,
    holds=is_stepwise,
    # Later rows may have only whole numbers, which are then shares too.
    gives_way=lambda rows, columns: columns["labels_as"] == "shares" or not are_stepwise(rows),
    through=_check_labels,
)
