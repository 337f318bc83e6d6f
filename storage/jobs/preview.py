"""Reading uploads in a separate process, within bounds, to find out what they contain and whether they can be
imported.

Files come from strangers, and a small one can take all memory or keep its reader busy for hours. Neither the server
nor a worker reads one before this process has.
"""

import atexit
import json
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import partial
from importlib import import_module
from itertools import chain
from typing import Any

from pydantic import TypeAdapter

from stepsight.core.errors import UserError
from stepsight.core.files.child import Answerer, Bounds, ChildError, Children
from stepsight.core.files.jsonl import format_trace, parse_trace
from stepsight.core.files.row_conditions import RowConditions
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store
from stepsight.storage.importers import read_traces
from stepsight.storage.importers.column_mapping import NAME as COLUMNS
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.importers.recognition import BEGINNING, Finding, Holds, find_reader, kind_of, recognise
from stepsight.storage.importers.rows.kind import FileKind
from stepsight.storage.jobs.uploads import Upload, UploadSource, upload_lines
from stepsight.storage.judgments.score_files import datasets_of, outputs_of, read_scores
from stepsight.storage.traces.bad_rows import BadRows, LeftOutRows, RefusedRows
from stepsight.storage.traces.imports import FileContent, WaitingRows, WantedTraces, row_lines
from stepsight.storage.traces.queries import list_datasets

SHOWN_TRACES = 2
SHOWN_BAD = 20
_MOST_IDS, _IDS_OF_SCORES = 500, 20
# The longest time for a preview; an import reads the whole file before it stores anything.
_SECONDS = 2.0
# The characters of a trace that is shown.
_LONGEST = 1_000_000
_MEMORY = 1_500_000_000
_PREVIEW = Bounds(seconds=20, memory=_MEMORY, patience=60)
# The seconds that an import may take, and those for each megabyte; honest files take a tenth.
_IMPORT, _OF_MEGABYTE, _PATIENCE = 60, 5, 300
_READ_BY_COMMAND = "Check it, or import it on the machine that StepSight runs on: stepsight import auto FILE"

# The dataset of scores is looked for by the rows of a file, or by its first `_HEAD` bytes if it is larger.
_MOST_BYTES, _MOST_ROWS, _HEAD = 30_000_000, 100_000, 1_000_000

# How many files are read at once: nobody waits for another's deadline, unless there are more.
_AT_ONCE = 2
_FIRST_FILES = {
    "a.jsonl": b'{"problem": "What is 2 + 3?", "steps": ["2 + 3 = 5.", "So 5."], "id": "a"}\n',
    "a.csv": b"problem,solution\nWhat is 2 + 3?,2 + 3 = 5. So 5.\n",
}

_FINDING = TypeAdapter(Finding)
# The fields of `UploadReading` that are the same in JSON.
_PLAIN = ("outputs", "good", "bad", "whole", "size", "head")
_LEAVE_OUT = "by adding the file again with bad rows left out"


@dataclass(frozen=True)
class UploadReading:
    """The findings on an upload that was read as `finding` describes.

    `good` and `bad` count the examined rows that can and cannot be imported. `faults` lists the first bad rows by
    place and error. `whole` is True if all rows were examined. `traces` are the first traces. `outputs` is the kind
    of scores in a score file, `size` its bytes as unpacked, and `head` the first rows of a large one as JSON.
    `error` says why the file cannot be imported at all, or is None. `notes` are sentences about what is left out of
    the rows. `ids` are the first ids of its traces, or fewer of those that have scores: a file of scores belongs to
    the traces beside it that have all of these.
    """

    finding: Finding
    traces: tuple[Trace, ...] = ()
    outputs: str = ""
    good: int = 0
    bad: int = 0
    faults: tuple[tuple[str, UserError], ...] = ()
    whole: bool = True
    error: UserError | None = None
    notes: tuple[str, ...] = ()
    size: int = 0
    head: str = ""
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Preview(UploadReading):
    """A preview of an upload. `stored` is the name of the dataset that the same file was imported into, or ""."""

    upload: Upload
    stored: str = ""

    @property
    def can_be_added(self) -> bool:
        return self.error is None and self.good > 0


def preview(store: Store, upload: Upload, kind: str = "", columns: ColumnMap | None = None) -> Preview:
    """Preview a complete upload. If `kind` or `columns` is given, it replaces the one suggested for the file.
    Raises `UserError` if the content of the upload cannot be recognised."""
    source = UploadSource(upload)
    shown = _read_upload(source, kind, columns)
    if shown.finding.holds == Holds.SCORES:
        shown = _with_dataset(store, shown, source)
    stored = _stored(store, upload) if shown.finding.holds == Holds.TRACES else ""
    found = {field.name: getattr(shown, field.name) for field in fields(shown)}
    return Preview(**found, upload=upload, stored=stored)


def _with_dataset(store: Store, shown: UploadReading, source: UploadSource) -> UploadReading:
    """Suggest the dataset that the scores fit, if exactly one does."""
    if shown.finding.dataset or shown.error:
        return shown
    is_large = _is_large(shown.good, shown.size)
    if is_large and not shown.head:
        return shown
    lines = shown.head.encode().splitlines(keepends=True) if is_large else source
    try:
        fitting = datasets_of(store, read_scores(lines, source.name)[0], shown.good)
    except UserError as fault:
        return replace(shown, error=fault)
    return replace(shown, finding=replace(shown.finding, dataset=fitting[0] if len(fitting) == 1 else ""))


def _is_large(rows: int, size: int) -> bool:
    """True if the rows of a score file would take much memory."""
    return rows > _MOST_ROWS or size > _MOST_BYTES


def _stored(store: Store, upload: Upload) -> str:
    return next((one.name for one in list_datasets(store) if one.sha256 == upload.sha256), "")


def _read_upload(source: UploadSource, kind: str = "", columns: ColumnMap | None = None) -> UploadReading:
    """Read an upload for a preview. If `kind` or `columns` is given, it replaces the one suggested for the file.
    Raises `UserError` if its content cannot be recognised, or if reading it exceeds the bounds of a preview."""
    asked = {"name": source.name, "sha256": source.sha256, "kind": kind, "columns": columns and asdict(columns)}
    try:
        found = _reader.ask({"preview": asked}, source.parts())
    except ChildError as error:
        raise _unreadable(source.name, error) from None
    return _reading(found, source.name)


def check_upload(source: UploadSource, parts: Iterable[bytes], request: Mapping[str, Any]) -> None:
    """Read through an upload of scores or labels, whose content is given in `parts`. `request` is that of its
    import. Raises `UserError` if it cannot be imported in this way, or if reading it exceeds the bounds of an
    import."""
    _import_upload(source, parts, request)


def read_upload_rows(
    source: UploadSource,
    parts: Iterable[bytes],
    request: Mapping[str, Any],
    waiting: WaitingRows,
    bad: BadRows,
) -> FileContent:
    """Like `check_upload`, but for an upload of traces, whose rows are added to `waiting` and whose bad rows to
    `bad`. Return what else it holds."""

    def keep(lines: bytes) -> None:
        # Bad rows are objects.
        (bad.add_lines if lines.startswith(b"{") else waiting.add)(lines)

    content = _import_upload(source, parts, request, keep)
    return FileContent(content["kind"], content["labelled"], tuple(content["notes"]))


def _import_upload(
    source: UploadSource,
    parts: Iterable[bytes],
    request: Mapping[str, Any],
    keep: Callable[[bytes], None] | None = None,
) -> Any:
    try:
        return _reader.ask({"import": {**request, "name": source.name}}, parts, _bounds(source.size), keep)
    except ChildError as error:
        raise _unreadable(source.name, error) from None


def prepare() -> None:
    """Start the process that reads previews if it does not run, without waiting for it."""
    _reader.start()


def _bounds(size: int) -> Bounds:
    seconds = _IMPORT + _OF_MEGABYTE * size // 1_000_000
    # A busy machine gives it a part of its time.
    return Bounds(seconds, _MEMORY, _PATIENCE + 4 * seconds)


def make_reader() -> Answerer:
    """Return the function by which the child reads."""
    with suppress(ImportError):
        # Each copy would load them anew.
        import_module("pyarrow.parquet")
        import_module("pyarrow.compute")
    # So would it everything else that the first file of a kind needs.
    for name, content in _FIRST_FILES.items():
        _preview({"name": name, "sha256": "", "kind": "", "columns": None}, iter([content]))
    return _read


def _read(asked: Any, content: Iterator[bytes]) -> Any:
    if "preview" in asked:
        return _preview(asked["preview"], content)
    return _import(asked["import"], content) if "import" in asked else None


_reader = Children(make_reader, _PREVIEW, _AT_ONCE)
atexit.register(_reader.close)


def _unreadable(name: str, error: ChildError) -> UserError:
    return UserError(f"{name}: it cannot be read here ({error}).", _READ_BY_COMMAND)


def _begun(asked: Any, content: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    """Return the first bytes of a file, and its lines."""
    first = next(content, b"")
    return first[:BEGINNING], upload_lines(chain([first], content), asked["name"])


def _columns(asked: Any) -> ColumnMap | None:
    return asked["columns"] and ColumnMap(**asked["columns"])


def _import(asked: Any, content: Iterator[bytes]) -> Any:
    name = asked["name"]
    beginning, lines = _begun(asked, content)
    if asked["holds"] == Holds.TRACES:
        return _import_traces(asked, kind_of(asked["kind"], _columns(asked), beginning), lines)
    if asked["holds"] == Holds.SCORES:
        outputs_of(read_scores(lines, name)[0])
    else:
        for _ in find_reader(beginning)(lines, name):
            pass
    return None


def _import_traces(asked: Any, kind: FileKind, lines: Iterator[bytes]) -> Generator[bytes, None, dict[str, Any]]:
    bad = bad_rows(asked["name"], leave_out=asked["leave_out"])
    traces = WantedTraces(read_traces(kind, lines, asked["name"], bad), RowConditions())
    bad.check((yield from row_lines(traces, bad)))
    yield from bad.lines()
    return asdict(traces.content(kind))


def bad_rows(name: str, *, leave_out: bool) -> BadRows:
    """Return the collector of the bad rows of the upload `name`."""
    return LeftOutRows(name, name) if leave_out else RefusedRows(name, _LEAVE_OUT)


def _preview(asked: Any, content: Iterator[bytes]) -> dict[str, Any]:
    beginning, lines = _begun(asked, content)
    # Rows are recognised by the first, and then all are read from the beginning.
    seen: list[bytes] = []
    finding = recognise(beginning, _kept(lines, seen), asked["name"], asked["sha256"], _columns(asked))
    lines = chain(seen, lines)
    if finding.holds == Holds.SCORES:
        shown = _scores(UploadReading(finding), lines, asked["name"])
    elif finding.holds == Holds.LABELS:
        shown = _labels(UploadReading(finding), lines, asked["name"], beginning)
    else:
        finding = replace(finding, kind=asked["kind"] or finding.kind)
        shown = _traces(UploadReading(finding), lines, asked["name"], beginning)
    return _as_json(shown)


def _kept(lines: Iterator[bytes], seen: list[bytes]) -> Iterator[bytes]:
    for line in lines:
        seen.append(line)
        yield line


class _EnoughError(Exception):
    """Raised to end a preview when its time is up."""


def _traces(shown: UploadReading, lines: Iterable[bytes], name: str, beginning: bytes) -> UploadReading:
    columns, doubts = shown.finding.columns, shown.finding.doubts
    if shown.finding.kind == COLUMNS and doubts:
        return replace(shown, error=UserError(doubts[0].message))
    if shown.finding.kind == COLUMNS and not (columns and columns.problem and columns.steps):
        return replace(shown, error=UserError("Say which columns hold the problem and the steps."))
    faults: list[tuple[str, UserError]] = []
    traces: list[Trace] = []
    ids: list[str] = []
    bad = good = 0
    until = time.monotonic() + _SECONDS

    def note(where: str, error: UserError, content: bytes) -> None:
        nonlocal bad
        bad += 1
        if time.monotonic() > until:
            raise _EnoughError
        if len(faults) < SHOWN_BAD:
            faults.append((where.removeprefix(f"{name} "), error))

    whole, error, kind = True, None, None
    try:
        kind = kind_of(shown.finding.kind, columns, beginning)
        for _, trace in read_traces(kind, lines, name, note):
            good += 1
            if len(ids) < _MOST_IDS:
                ids.append(trace.id)
            if len(traces) < SHOWN_TRACES:
                traces.append(trace)
            if time.monotonic() > until:
                raise _EnoughError
    except _EnoughError:
        whole = False
    except UserError as fault:
        error = fault
    guessed = shown.finding.notes if shown.finding.kind == COLUMNS else ()
    notes = (*guessed, *(kind.notes() if kind else ()))
    shown = replace(shown, traces=tuple(traces), good=good, bad=bad, faults=tuple(faults), ids=tuple(ids))
    return replace(shown, whole=whole, error=error, notes=notes)


def _labels(shown: UploadReading, lines: Iterable[bytes], name: str, beginning: bytes) -> UploadReading:
    until, good, whole = time.monotonic() + _SECONDS, 0, True
    try:
        for _ in find_reader(beginning)(lines, name):
            good += 1
            if time.monotonic() > until:
                whole = False
                break
    except UserError as fault:
        return replace(shown, error=fault)
    return replace(shown, good=good, whole=whole)


def _scores(shown: UploadReading, lines: Iterable[bytes], name: str) -> UploadReading:
    size = length = 0
    head: list[str] = []

    def keep(row: Any) -> None:
        nonlocal length
        if length < _HEAD:
            head.append(json.dumps(row))
            length += len(head[-1])

    def measured() -> Iterator[bytes]:
        nonlocal size
        for line in lines:
            size += len(line)
            yield line

    try:
        rows, _ = read_scores(measured(), name, keep)
        first = "\n".join(head) if _is_large(len(rows), size) and length < 2 * _HEAD else ""
        ids = tuple(row.id for _, row in rows[:_IDS_OF_SCORES] if row.id)
        return replace(shown, outputs=outputs_of(rows).value, good=len(rows), size=size, head=first, ids=ids)
    except UserError as fault:
        return replace(shown, error=fault)


def _as_json(shown: UploadReading) -> dict[str, Any]:
    short = [trace for trace in shown.traces if len(trace.problem) + sum(map(len, trace.substeps)) <= _LONGEST]
    return {
        **{name: getattr(shown, name) for name in (*_PLAIN, "notes", "ids")},
        "finding": _FINDING.dump_python(shown.finding, mode="json"),
        "traces": [format_trace(replace(trace, meta={})) for trace in short],
        "faults": [[where, error.message, error.hint] for where, error in shown.faults],
        "error": shown.error and [shown.error.message, shown.error.hint],
    }


def _reading(answer: dict[str, Any], name: str) -> UploadReading:
    return UploadReading(
        **{field: answer[field] for field in _PLAIN},
        finding=_FINDING.validate_python(answer["finding"]),
        traces=tuple(map(partial(parse_trace, where=name), answer["traces"])),
        faults=tuple((where, UserError(*error)) for where, *error in answer["faults"]),
        error=answer["error"] and UserError(*answer["error"]),
        notes=tuple(answer["notes"]),
        ids=tuple(answer["ids"]),
    )
