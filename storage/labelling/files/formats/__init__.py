"""The formats for exporting labels, one module each.

To add a format, add a line to `FORMATS`.
"""

from stepsight.core.errors import UserError
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


def find_format(name: str) -> LabelFormat:
    """Return the format with this name. Raises `UserError`, with a message that lists all formats, if no format has
    this name."""
    if name not in FORMATS:
        raise UserError(f"There is no format {name!r}.", f"The formats are {', '.join(FORMATS)}, events.")
    return FORMATS[name]
