"""Reading uploads in a separate process, within bounds, to find out what they contain and whether they can be
imported.

Files may come from anybody, and a small one can take all memory or keep its reader busy for hours. Neither the
server nor a worker reads one before this process has.
"""

import atexit
import json
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from itertools import chain, tee
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator, TypeAdapter

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
# The number of characters shown of a trace.
_LONGEST = 1_000_000
_MEMORY = 1_500_000_000
_PREVIEW = Bounds(seconds=20, memory=_MEMORY, patience=60)
# The seconds that an import may take, and the additional seconds per megabyte; ordinary files take a tenth of that.
_IMPORT, _OF_MEGABYTE, _PATIENCE = 60, 5, 300
_READ_BY_COMMAND = "Check it, or import it on the machine that StepSight runs on: stepsight import auto FILE"

# The dataset of scores is found by this many characters of their first rows; each row has this overhead.
_HEAD, _OF_ROW = 4_000_000, 500

# How many files are read at once; up to this number, nobody has to wait until another file's deadline.
_AT_ONCE = 2
_FIRST_FILES = {
    "a.jsonl": b'{"problem": "What is 2 + 3?", "steps": ["2 + 3 = 5.", "So 5."], "id": "a"}\n',
    "a.csv": b"problem,solution\nWhat is 2 + 3?,2 + 3 = 5. So 5.\n",
}

_Fault = Annotated[
    UserError,
    PlainValidator(lambda texts: UserError(*texts)),
    PlainSerializer(lambda error: [error.message, error.hint]),
]
_Shown = Annotated[
    Trace,
    PlainValidator(lambda row: parse_trace(row, "a trace")),
    PlainSerializer(lambda trace: format_trace(replace(trace, meta={}))),
]
_LEAVE_OUT = "by adding the file again with bad rows left out"


@dataclass(frozen=True)
class UploadReading:
    """The findings on an upload that was read as `finding` describes.

    `good` and `bad` count the examined rows that can and cannot be imported. `faults` lists the first bad rows by
    place and error. `whole` is True if all rows were examined. `traces` are the first traces. `outputs` is the kind
    of scores in a score file, and `head` holds its first rows as JSON. `error` says why the file cannot be imported
    at all, or is None. `notes` are sentences about what is left out of the rows. `ids` are the first ids of its
    traces, or fewer of those that have scores: a file of scores belongs to the traces beside it that have all of
    these.
    """

    finding: Finding
    traces: tuple[_Shown, ...] = ()
    outputs: str = ""
    good: int = 0
    bad: int = 0
    faults: tuple[tuple[str, _Fault], ...] = ()
    whole: bool = True
    error: _Fault | None = None
    notes: tuple[str, ...] = ()
    head: str = ""
    ids: tuple[str, ...] = ()


_READING = TypeAdapter(UploadReading)


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
    stored = ""
    if shown.finding.holds == Holds.TRACES:
        stored = next((dataset.name for dataset in list_datasets(store) if dataset.sha256 == upload.sha256), "")
    return Preview(**vars(shown), upload=upload, stored=stored)


def _with_dataset(store: Store, shown: UploadReading, source: UploadSource) -> UploadReading:
    if shown.finding.dataset or not shown.head:
        return shown
    rows, _ = read_scores(shown.head.encode().splitlines(keepends=True), source.name)
    fitting = datasets_of(store, rows, shown.good)
    return replace(shown, finding=replace(shown.finding, dataset=fitting[0] if len(fitting) == 1 else ""))


def _read_upload(source: UploadSource, kind: str = "", columns: ColumnMap | None = None) -> UploadReading:
    """Read an upload for a preview. If `kind` or `columns` is given, it replaces the one suggested for the file.
    Raises `UserError` if its content cannot be recognised, or if reading it exceeds the bounds of a preview."""
    request = {"name": source.name, "sha256": source.sha256, "kind": kind, "columns": columns and asdict(columns)}
    try:
        return _READING.validate_python(_reader.ask({"preview": request}, source.parts()))
    except ChildError as error:
        raise _unreadable_error(source.name, error) from None


def read_upload_rows(
    source: UploadSource,
    parts: Iterable[bytes],
    request: Mapping[str, Any],
    waiting: WaitingRows,
    bad: BadRows,
) -> FileContent:
    """Like `read_upload`, but for an upload of traces, whose rows are added to `waiting` and whose bad rows to
    `bad`. Returns everything else that it holds."""

    def keep(lines: bytes) -> None:
        # A line that is an object is a bad row; good rows are lists.
        (bad.add_lines if lines.startswith(b"{") else waiting.add)(lines)

    content = read_upload(source, parts, request, keep)
    return FileContent(content["kind"], content["labelled"], tuple(content["notes"]))


def read_upload(
    source: UploadSource,
    parts: Iterable[bytes],
    request: Mapping[str, Any],
    keep: Callable[[bytes], None] | None = None,
) -> Any:
    """Read through an upload, whose content is given in `parts`. `request` is that of its import, and `keep` is
    called with what the child sends. Raises `UserError` if the upload cannot be imported in this way, or if reading
    it exceeds the bounds of an import."""
    seconds = _IMPORT + _OF_MEGABYTE * source.size // 1_000_000
    # A busy machine gives the child only part of its time.
    bounds = Bounds(seconds, _MEMORY, _PATIENCE + 4 * seconds)
    try:
        return _reader.ask({"import": {**request, "name": source.name}}, parts, bounds, keep)
    except ChildError as error:
        raise _unreadable_error(source.name, error) from None


def prepare() -> None:
    """Start the process that reads previews if it is not running, without waiting for it."""
    _reader.start()


def make_reader() -> Answerer:
    """Return the function by which the child reads."""
    with suppress(ImportError):
        # Otherwise each copy would load them again.
        import_module("pyarrow.parquet")
        import_module("pyarrow.compute")
    # The same is true of everything else that the first file of a kind needs.
    for name, content in _FIRST_FILES.items():
        _preview({"name": name, "sha256": "", "kind": "", "columns": None}, iter([content]))
    return _read


def _read(request: Any, content: Iterator[bytes]) -> Any:
    if "preview" in request:
        return _preview(request["preview"], content)
    return _import(request["import"], content) if "import" in request else None


_reader = Children(make_reader, _PREVIEW, _AT_ONCE)
atexit.register(_reader.close)


def _unreadable_error(name: str, error: ChildError) -> UserError:
    return UserError(f"{name}: it cannot be read here ({error}).", _READ_BY_COMMAND)


def _split_beginning(request: Any, content: Iterator[bytes]) -> tuple[bytes, Iterator[bytes]]:
    first = next(content, b"")
    return first[:BEGINNING], upload_lines(chain([first], content), request["name"])


def _columns(request: Any) -> ColumnMap | None:
    return request["columns"] and ColumnMap(**request["columns"])


def _import(request: Any, content: Iterator[bytes]) -> Any:
    name = request["name"]
    beginning, lines = _split_beginning(request, content)
    if request["holds"] == Holds.TRACES:
        return _import_traces(request, kind_of(request["kind"], _columns(request), beginning), lines)
    if request["holds"] == Holds.SCORES:
        outputs_of(read_scores(lines, name)[0])
    else:
        for _ in find_reader(beginning)(lines, name):
            pass
    return None


def _import_traces(request: Any, kind: FileKind, lines: Iterator[bytes]) -> Generator[bytes, None, dict[str, Any]]:
    bad = bad_rows(request["name"], leave_out=request["leave_out"])
    traces = WantedTraces(read_traces(kind, lines, request["name"], bad), RowConditions())
    bad.check((yield from row_lines(traces, bad)))
    yield from bad.lines()
    return asdict(traces.content(kind))


def bad_rows(name: str, *, leave_out: bool) -> BadRows:
    """Return the collector of the bad rows of the upload `name`."""
    return LeftOutRows(name, name) if leave_out else RefusedRows(name, _LEAVE_OUT)


def _preview(request: Any, content: Iterator[bytes]) -> dict[str, Any]:
    beginning, lines = _split_beginning(request, content)
    # The kind is recognised from the first rows, and then all rows are read from the beginning.
    first, lines = tee(lines)
    finding = recognise(beginning, first, request["name"], request["sha256"], _columns(request))
    # Otherwise what it has not read would be kept for it.
    del first
    if finding.holds == Holds.SCORES:
        shown = _scores(UploadReading(finding), lines, request["name"])
    elif finding.holds == Holds.LABELS:
        shown = _labels(UploadReading(finding), lines, request["name"], beginning)
    else:
        finding = replace(finding, kind=request["kind"] or finding.kind)
        shown = _traces(UploadReading(finding), lines, request["name"], beginning)
    short = [trace for trace in shown.traces if len(trace.problem) + sum(map(len, trace.substeps)) <= _LONGEST]
    return _READING.dump_python(replace(shown, traces=tuple(short)), mode="json")


class _EnoughError(Exception):
    """Raised to end a preview when its time is up."""


def _traces(shown: UploadReading, lines: Iterable[bytes], name: str, beginning: bytes) -> UploadReading:
    columns, doubts = shown.finding.columns, shown.finding.doubts
    if shown.finding.kind == COLUMNS and doubts:
        return replace(shown, error=UserError(doubts[0].message))
    if shown.finding.kind == COLUMNS and not (columns and columns.problem and columns.steps):
        return replace(shown, error=UserError("Say which columns hold the problem and the steps."))
    errors: list[tuple[str, UserError]] = []
    traces: list[Trace] = []
    ids: list[str] = []
    bad = good = 0
    deadline = time.monotonic() + _SECONDS

    def note(where: str, error: UserError, content: bytes) -> None:
        nonlocal bad
        bad += 1
        if time.monotonic() > deadline:
            raise _EnoughError
        if len(errors) < SHOWN_BAD:
            errors.append((where.removeprefix(f"{name} "), error))

    whole, error, kind = True, None, None
    try:
        kind = kind_of(shown.finding.kind, columns, beginning)
        for _, trace in read_traces(kind, lines, name, note):
            good += 1
            if len(ids) < _MOST_IDS:
                ids.append(trace.id)
            if len(traces) < SHOWN_TRACES:
                traces.append(trace)
            if time.monotonic() > deadline:
                raise _EnoughError
    except _EnoughError:
        whole = False
    except UserError as fault:
        error = fault
    guessed = shown.finding.notes if shown.finding.kind == COLUMNS else ()
    notes = (*guessed, *(kind.notes() if kind else ()))
    shown = replace(shown, traces=tuple(traces), good=good, bad=bad, faults=tuple(errors), ids=tuple(ids))
    return replace(shown, whole=whole, error=error, notes=notes)


def _labels(shown: UploadReading, lines: Iterable[bytes], name: str, beginning: bytes) -> UploadReading:
    deadline, good, whole = time.monotonic() + _SECONDS, 0, True
    try:
        for _ in find_reader(beginning)(lines, name):
            good += 1
            if time.monotonic() > deadline:
                whole = False
                break
    except UserError as fault:
        return replace(shown, error=fault)
    return replace(shown, good=good, whole=whole)


def _scores(shown: UploadReading, lines: Iterable[bytes], name: str) -> UploadReading:
    length = 0
    head: list[str] = []

    def keep(row: Any) -> None:
        nonlocal length
        if length < _HEAD:
            head.append(json.dumps(row))
            length += len(head[-1]) + _OF_ROW

    try:
        rows, _ = read_scores(lines, name, keep)
        first = "\n".join(head) if length < 2 * _HEAD else ""
        ids = tuple(row.id for _, row in rows[:_IDS_OF_SCORES] if row.id)
        return replace(shown, outputs=outputs_of(rows).value, good=len(rows), head=first, ids=ids)
    except UserError as fault:
        return replace(shown, error=fault)
