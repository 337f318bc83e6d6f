"""Validation sets of Inspect Scout, by which its scanners of transcripts are measured against people.

    {"id": "gsm8k-0", "target": {"valid": false, "first_error": 2}}

`first_error` is counted from 1, and 0 if no step is wrong: a scanner that returns such an object is compared with
it key by key. The id is that of the transcript. Scout reads an id with a comma, or a list in brackets, as several
ids. Such traces are left out, and so are those whose first error is unknown because an earlier step is unlabelled.

Scout reads the file if its name ends in `.jsonl`:

    from inspect_scout import validation_set

    cases = validation_set("labels.jsonl")

Source: `inspect_scout/_validation/validation.py` in meridianlabs-ai/inspect_scout.
"""

from stepsight.storage.labelling.files.formats.label_format import InexpressibleError, LabelFormat, Row, lines
from stepsight.storage.labelling.results.consensus import LabelledTrace


def format_row(labelled: LabelledTrace) -> Row:
    """Convert a labelled trace to a row. Raises `InexpressibleError` if a step before the first error is
    unlabelled, or if Scout would not read the id as one."""
    id, error = labelled.trace.id, labelled.first_error
    if None in labelled.labels[:error]:
        raise InexpressibleError("traces whose first error is unknown")
    if _is_several(id):
        raise InexpressibleError("traces whose id Scout reads as several")
    return {
        "id": id,
        "target": {"valid": error is None, "first_error": 0 if error is None else error + 1},
    }


def _is_several(id: str) -> bool:
    """True if Scout splits an id at commas or parses it as a list."""
    return "," in id or (id.strip().startswith("[") and id.strip().endswith("]"))


FORMAT = LabelFormat("scout", "Inspect Scout: a validation set of verdicts and first errors", lines(format_row))
