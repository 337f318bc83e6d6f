"""The format of stepwise supervision, which `storage.importers.stepwise` can read.

    {"prompt": "Which number is larger, 9.8 or 9.11?", "completions": ["The fractional part …", "So 9.11 …"],
     "labels": [true, false]}

True stands for pos and neu, which are both valid. False stands for neg, and null for unlabelled. A trace without
any label is left out.
"""

from stepsight.storage.labelling.files.formats.label_format import Row
from stepsight.storage.labelling.results.consensus import LabelledTrace


def rows(versions: list[LabelledTrace], campaign: str) -> list[Row]:
    """Return a row for each version of a trace."""
    return [
        {
            "prompt": labelled.trace.problem,
            "completions": [step.text for step in labelled.trace.steps],
            "labels": [None if label is None else label != "neg" for label in labelled.labels],
        }
        for labelled in versions
    ]
