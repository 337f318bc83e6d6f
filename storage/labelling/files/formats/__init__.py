"""The formats for exporting labels, one module each.

To add a format, add a line to `FORMATS`.
"""

from stepsight.storage.labelling.files.formats import (
    argilla,
    jsonl,
    label_studio,
    prm800k,
    stepwise,
    table,
)
from stepsight.storage.labelling.files.formats.label_format import LabelFormat

FORMATS: dict[str, LabelFormat] = {
    module.FORMAT.name: module.FORMAT for module in (prm800k, stepwise, label_studio, argilla, jsonl, table)
}
