"""The format of stepwise supervision, which `storage.importers.stepwise` can read.

    {"prompt": "Which number is larger, 9.8 or 9.11?", "completions": ["The fractional part …", "So 9.11 …"],
     "labels": [true, false]}

True stands for pos and neu, which are both valid. False stands for neg, and null for unlabelled. A trace without
any label is left out.
"""

from stepsight.storage.labelling.files.formats.label_format import InexpressibleError, LabelFormat, Row, lines
from stepsight.storage.labelling.results.consensus import LabelledTrace


def format_row(labelled: LabelledTrace) -> Row:
    """Convert a labelled trace to a row. Raises `InexpressibleError` if no step has a label."""
    if set(labelled.labels) == {None}:
        raise InexpressibleError("traces without a label")
    return {
        "prompt": labelled.trace.problem,
        "completions": [step.text for step in labelled.trace.steps],
        "labels": [None if label is None else label != "neg" for label in labelled.labels],
    }


FORMAT = LabelFormat("stepwise", "stepwise supervision: prompt, completions, labels", lines(format_row))
