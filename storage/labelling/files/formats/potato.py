"""The JSON Lines of Potato's scheme `process_reward`, as its exporter `coding_eval` writes them.

    {"instance_id": "gsm8k-0", "annotator": "ada", "steps": [{"index": 0, "reward": 1}, {"index": 1, "reward": -1}],
     "mode": "per_step"}

A reward is 1 for pos, 0 for neu, -1 for neg and null for unlabelled, as with `allow_neutral`. Without this option
Potato writes 0 for a step that is not marked. In its mode `first_error`, it marks the steps after the first wrong
one itself.

The rows written here have the problem and the texts of the steps too, which Potato's own rows leave to its data
file. A trace without any label is left out.
"""

from stepsight.storage.labelling.files.formats.label_format import InexpressibleError, LabelFormat, Row, lines
from stepsight.storage.labelling.results.consensus import LabelledTrace

REWARDS = {"neg": -1, "neu": 0, "pos": 1}
"""The reward of each label."""

PER_STEP, FIRST_ERROR = "per_step", "first_error"
"""The modes in which people give rewards: to each step, or by naming the first wrong one."""


def format_row(labelled: LabelledTrace) -> Row:
    """Convert a labelled trace to a row. Raises `InexpressibleError` if no step has a label."""
    if set(labelled.labels) == {None}:
        raise InexpressibleError("traces without a label")
    trace = labelled.trace
    return {
        "instance_id": trace.id,
        "annotator": labelled.annotator or "consensus",
        "problem": trace.problem,
        "steps": [
            {"index": place, "text": step.text, "reward": None if label is None else REWARDS[label]}
            for place, (step, label) in enumerate(zip(trace.steps, labelled.labels, strict=True))
        ],
        "mode": PER_STEP,
    }


FORMAT = LabelFormat("potato", "Potato's process rewards", lines(format_row))
