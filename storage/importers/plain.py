"""StepSight's plain format, which is JSON Lines as described in `core.files.jsonl` (`stepsight import jsonl`).

A step is a text, or a list of texts if it has sub-steps. `labels` and all other fields are optional:

    {"id": "pencils-1", "problem": "Three pencils cost $1.24. …", "steps":
     ["Let p be …", ["Then …", "So p = 29."]], "labels": ["pos", null], "generator": "a model"}
"""

from collections.abc import Iterable, Iterator
from contextlib import nullcontext

from stepsight.core.files.jsonl import open_input, parse_trace
from stepsight.core.trace import Trace
from stepsight.storage.importers.kind import FileKind, json_rows


def read_plain(source: str | Iterable[bytes], name: str) -> Iterator[Trace]:
    """Yield the traces of a file, given by its path or its lines. Raises `UserError` at the first bad row."""
    with open_input(source) if isinstance(source, str) else nullcontext(source) as lines:
        for where, row in json_rows(lines, name):
            yield parse_trace(row, where)


KIND = FileKind(
    name="plain",
    title="JSON Lines with id, problem, steps and optional labels",
    fields=frozenset({"id", "problem", "steps"}),
    parse=parse_trace,
)
