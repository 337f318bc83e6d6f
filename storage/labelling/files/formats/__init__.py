"""The formats in which labels are exported, one module each, tables together. A new one is a line in `FORMATS`."""

from stepsight.core.errors import UserError
from stepsight.storage.labelling.files.formats import (
    argilla,
    jsonl,
    label_studio,
    prm800k,
    prmbench,
    processbench,
    stepwise,
    table,
)
from stepsight.storage.labelling.files.formats.label_format import LabelFormat

FORMATS: dict[str, LabelFormat] = {
    format.name: format
    for format in (
        *(module.FORMAT for module in (prm800k, processbench, prmbench, stepwise, label_studio, argilla, jsonl)),
        table.CSV,
        table.PARQUET,
    )
}


def find_format(name: str) -> LabelFormat:
    """The format of that name. Raises `UserError` naming all of them."""
    if name not in FORMATS:
        raise UserError(f"There is no format {name!r}.", f"The formats are {', '.join(FORMATS)}, events.")
    return FORMATS[name]
