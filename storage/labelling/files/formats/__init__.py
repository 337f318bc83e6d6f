"""The formats for exporting labels, one module each.

To add a format, add a line to `FORMATS`.
"""

from stepsight.storage.labelling.files.formats import argilla, jsonl, label_studio, prm800k, stepwise, table
from stepsight.storage.labelling.files.formats.label_format import LabelFormat

FORMATS: dict[str, LabelFormat] = {
    "prm800k": LabelFormat("PRM800K: ratings of each step", prm800k.rows),
    "stepwise": LabelFormat("stepwise supervision: prompt, completions, labels", stepwise.rows, labelled_only=True),
    "label-studio": LabelFormat(
        "Label Studio: tasks with a choice per step", label_studio.rows, array=True, with_gold=True
    ),
    "argilla": LabelFormat("Argilla: a record per step", argilla.rows, array=True, with_gold=True),
    "jsonl": LabelFormat("JSON Lines: every annotation in full", jsonl.rows, with_gold=True, with_evidence=True),
    "csv": LabelFormat(
        "CSV, a row per step", table.rows, columns=table.COLUMNS, with_gold=True, with_evidence=True
    ),
}
