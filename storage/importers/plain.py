"""StepSight's plain format, which is JSON Lines as described in `core.files.jsonl` (`stepsight import jsonl`).

A step is a text, or a list of texts if it has sub-steps. `labels` and all other fields are optional. A
label may be any word that other kinds of file have for it, such as `+`. If one is a fraction, all are shares:

    {"id": "pencils-1", "problem": "Three pencils cost $1.24. …", "steps":
     ["Let p be …", ["Then …", "So p = 29."]], "labels": ["pos", null], "generator": "a model"}
"""

import random
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from itertools import islice

from stepsight.core.errors import UserError, located
from stepsight.core.files.jsonl import SHARES, format_trace, open_input, read_trace
from stepsight.core.trace import Label, Trace
from stepsight.storage.importers.rows.fields import (
    VALIDITY,
    Meaning,
    are_shares,
    check_texts,
    is_missing,
    meaning,
)
from stepsight.storage.importers.rows.kind import FileKind, Row, json_rows


def read_plain(source: str | Iterable[bytes], name: str) -> Iterator[Trace]:
    """Yield the traces of a file, given by its path or its lines. Raises `UserError` at the first bad row."""
    with open_input(source) if isinstance(source, str) else nullcontext(source) as lines:
        for where, row in json_rows(lines, name):
            trace = KIND.parse(row, where)
            with located(where):
                check_texts(trace)
            yield trace


def draw_plain(path: str, most: int, seed: int) -> list[Trace]:
    """Return at most `most` traces of a file, drawn with equal chances while it is read, in file order. `-` is
    standard input."""
    rng = random.Random(seed)
    rest = iter(read_plain(sys.stdin.buffer if path == "-" else path, "standard input" if path == "-" else path))
    sample = dict(enumerate(islice(rest, most)))
    places = list(sample)
    for number, trace in enumerate(rest, start=most):
        slot = rng.randrange(number + 1)
        if slot < most:
            del sample[places[slot]]
            sample[number], places[slot] = trace, number
    return [sample[place] for place in sorted(sample)]


def read(row: Row) -> Trace:
    """Turn a row into a trace. Raises `UserError` if a field is missing or mistyped, or if a label is a number."""
    try:
        return read_trace(row)
    except UserError:
        # Most files use only the names.
        return read_trace(_with_names(row))


def _with_names(row: Row) -> Row:
    changed: Row = {}
    if isinstance(row.get("valid"), list):
        changed["valid"] = [_read(label, VALIDITY) for label in row["valid"]]
    if isinstance(row.get("labels"), list) and SHARES not in row and are_shares(row["labels"]):
        changed |= {SHARES: row["labels"], "labels": None}
    elif isinstance(row.get("labels"), list):
        labels = [_read(label, {}) for label in row["labels"]]
        if "valid" not in changed and any(label is True for label in labels):
            changed["valid"] = [label is True or None for label in labels]
            labels = [None if label is True else label for label in labels]
        changed["labels"] = ["neg" if label is False else label for label in labels]
    return row | changed


def _read(label: object, numbers: Mapping[int, Meaning]) -> object:
    """Return a label as `read_trace` expects it: a name, a boolean, or None if it is missing. Anything else is
    returned unchanged."""
    if is_missing(label):
        return None
    says = meaning(label, numbers)
    return says.text if isinstance(says, Label) else label if says is None else says


KIND = FileKind(
    name="plain",
    title="JSON Lines with id, problem, steps and optional labels",
    read=read,
    write=format_trace,
    fields=frozenset({"id", "problem", "steps"}),
)
