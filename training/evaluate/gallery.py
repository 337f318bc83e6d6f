"""The gallery: shipped traces that show what later steps can reveal."""

from functools import cache

from stepsight.core.files.jsonl import parse_trace, read_file
from stepsight.core.paths import asset
from stepsight.core.trace import Trace

GALLERY = asset("traces", "gallery.jsonl")
DATASET = GALLERY.stem
EXPOSED, CLEARED, VISIBLE, CLEAN = "exposed later", "cleared later", "visible at once", "no error"
KINDS = (EXPOSED, CLEARED, VISIBLE, CLEAN)


@cache
def read_gallery() -> tuple[Trace, ...]:
    """Return the traces of the gallery, in order.

    The meta of each trace holds these values:

    - `title`, `topic` and `evidence_kind`
    - `note`: a sentence that says which later step exposes or clears which earlier step
    - `kind`: one of `KINDS`
    - `focus`: the 0-based index of the step that is exposed, cleared or visibly wrong, or null
    - `evidence`: the 0-based index of the later step that exposes or clears the step in focus, or null
    - `error`: the kind of the error, or null
    """
    return tuple(parse_trace(row, f"{GALLERY.name} line {number}") for number, row in read_file(GALLERY))
