"""Importing files of traces into the store, each in a single transaction."""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import SpooledTemporaryFile, gettempdir
from typing import IO, Protocol

from stepsight.core.errors import UserError, counted, located
from stepsight.core.files.jsonl import open_input
from stepsight.core.files.row_conditions import RowConditions
from stepsight.core.files.text_lines import stem_of
from stepsight.core.paths import format_bytes
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import check_name
from stepsight.storage.database.store import Store
from stepsight.storage.importers import find_kind, read_traces
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.importers.data_files import DataFiles
from stepsight.storage.importers.rows.kind import FileKind
from stepsight.storage.traces.bad_rows import BadRows, LeftOutRows, RefusedRows
from stepsight.storage.traces.writer import TraceRows, TraceWriter, rows_of

# The largest number of traces held in memory at once, and the largest total size in bytes.
_BATCH = 500
_BATCH_SIZE = 4_000_000
# Traces take at most this many times the size of their file, which may be compressed, or this many bytes.
_UNFOLDED = 100
_SMALL = 50_000_000
# Fewer traces than this are written despite bad rows, so that errors found by the store are in the same message.
_FEW = 5_000
# The bytes of traces buffered in memory; more are buffered in a file.
_IN_MEMORY = 16_000_000
# The fraction of an import's time that reading the file takes.
_READING = 0.1


Progress = Callable[[int, float], None]
"""Called with the number of traces written so far, and the fraction of the import that is done, from 0 to 1."""
Change = Callable[[Trace], Trace | None]
"""Turns a trace into another one, or drops it."""


@dataclass(frozen=True)
class ImportSummary:
    """The outcome of an import.

    `added` counts new traces, `unchanged` the traces that were already stored, and `repeated` the repetitions
    within the file. `left_out` counts bad rows. `unwanted` counts the traces that fail a condition, by the first
    condition that they fail. `given_up` counts the traces that `change` dropped. `total` is the number of traces
    now in the dataset, and `labelled` is the number of labelled steps in the traces read. `notes` are sentences
    about what was left out of the rows.
    """

    dataset: str
    kind: str
    added: int
    unchanged: int
    repeated: int
    total: int
    left_out: int = 0
    labelled: int = 0
    unwanted: Mapping[str, int] = field(default_factory=dict)
    given_up: int = 0
    notes: tuple[str, ...] = ()

    @property
    def read(self) -> int:
        """The number of wanted traces in the file, counting repeated and already stored ones."""
        return self.added + self.unchanged + self.repeated

    def __str__(self) -> str:
        left_out = f", {counted(self.left_out, 'bad row')} left out" if self.left_out else ""
        left_out += "".join(f", {count:,} left out by {what}" for what, count in self.unwanted.items())
        left_out += f", {self.given_up:,} left out because the rest is unknown" if self.given_up else ""
        notes = "".join(f" {note}" for note in self.notes)
        if not self.added:
            stored = counted(self.unchanged, "trace")
            return f"{self.dataset}: nothing new, {stored} already stored{left_out}.{notes}"
        parts = [f"{counted(self.added, 'trace')} added"]
        parts += [f"{self.unchanged:,} already stored"] if self.unchanged else []
        parts += [f"{self.repeated:,} repeated in the file"] if self.repeated else []
        return f"{self.dataset}: {', '.join(parts)}{left_out}; {self.total:,} in the dataset.{notes}"


def import_file(
    store: Store,
    kind: str | FileKind,
    path: str | Path,
    dataset: str | None = None,
    progress: Progress | None = None,
    skipped: str | Path | None = None,
    where: RowConditions | None = None,
    change: Change | None = None,
) -> ImportSummary:
    """Store the traces of a file in one transaction and with bounded memory. The transaction, in which nobody else
    can write to a store on SQLite, begins when the whole file has been read and checked.

    Importing a file again changes nothing, except that rows that are new to the dataset are appended. Two traces
    are the same if their problem, steps and gold labels are equal (`Trace.digest`). Other fields keep the values
    first stored.

    A row is bad if it is not a trace of the kind, or if its id already belongs to different content. With
    `skipped`, bad rows are left out, stored with the dataset and listed in the file `skipped` as JSON Lines. That
    file is created only if there are bad rows, and it does not replace a file with different rows. Traces whose
    metadata do not meet `where` are left out, and so are those that `change` drops. All remaining traces are stored
    as `change` returns them.

    Raises `UserError`, with the number of bad rows, if there are any and `skipped` is not given. Also raises
    `UserError` if the file has no trace or no wanted trace, looks like a different kind, or cannot be read to its
    end, or if the dataset is of a different kind. Nothing is stored in these cases.
    """
    path = Path(path)
    chosen = find_kind(kind) if isinstance(kind, str) else kind
    name = (chosen.dataset or stem_of(path)) if dataset is None else dataset
    with open_input(path) as file:
        source = FileSource(path, file)
        return import_source(store, chosen, source, name, _bad_rows(source, skipped), progress, where, change)


def import_table(
    store: Store,
    content: ColumnMap | FileKind,
    data: DataFiles,
    dataset: str,
    progress: Progress | None = None,
    skipped: str | Path | None = None,
    where: RowConditions | None = None,
) -> ImportSummary:
    """Like `import_file`, but for data files with a column mapping, or whose rows are of a kind."""
    return import_source(store, data.kind(content), data, dataset, _bad_rows(data, skipped), progress, where)


def _bad_rows(source: "LineSource", skipped: str | Path | None) -> BadRows:
    return (
        RefusedRows(source.name) if skipped is None else LeftOutRows(source.name, source.file_name, Path(skipped))
    )


class LineSource(Protocol):
    """The lines of a file.

    `name` is used in messages, and `file_name` is the name that the store records. `fraction` is the fraction of
    the file read so far, from 0 to 1. `size` is the number of its bytes, and `sha256` the hash of those read so
    far.
    """

    @property
    def name(self) -> str: ...
    @property
    def file_name(self) -> str: ...
    @property
    def fraction(self) -> float: ...
    @property
    def size(self) -> int: ...
    @property
    def sha256(self) -> str: ...
    def __iter__(self) -> Iterator[bytes]: ...


def import_source(
    store: Store,
    kind: FileKind,
    source: LineSource,
    dataset: str,
    bad: BadRows,
    progress: Progress | None = None,
    where: RowConditions | None = None,
    change: Change | None = None,
) -> ImportSummary:
    """Like `import_file`, but for any source of lines. `bad` gets the bad rows."""
    check_name(dataset, "the name of the dataset")
    with waiting_rows(source.name, source.size) as waiting:
        traces = WantedTraces(read_traces(kind, source, source.name, bad), where or RowConditions(), change)
        for lines in row_lines(traces, bad):
            waiting.add(lines)
            if progress:
                progress(0, _READING * source.fraction)
        traces.check(source.name)
        content = traces.content(kind)
        summary = store_rows(store, dataset, content, source, waiting, bad, progress)
    return replace(summary, unwanted=traces.left_out, given_up=traces.given_up)


@dataclass(frozen=True)
class FileContent:
    """What a file of traces holds beside them: the name of its `kind`, the number of `labelled` steps, and `notes`
    on what was left out of the rows."""

    kind: str
    labelled: int
    notes: tuple[str, ...]


def row_lines(traces: Iterable[tuple[str, Trace]], bad: BadRows) -> Generator[bytes, None, int]:
    """Yield the rows that store traces, as lines of JSON for `WaitingRows`, and return their number. `bad` gets the
    traces that cannot be stored."""
    lines: list[bytes] = []
    size = count = 0
    for rows in rows_of(traces, bad):
        lines.append(json.dumps(rows, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n")
        size += len(lines[-1])
        count += 1
        if size > _BATCH_SIZE or len(lines) == _BATCH:
            yield b"".join(lines)
            lines, size = [], 0
    if lines:
        yield b"".join(lines)
    return count


def store_rows(
    store: Store,
    dataset: str,
    content: FileContent,
    source: "LineSource",
    waiting: "WaitingRows",
    bad: BadRows,
    progress: Progress | None = None,
) -> ImportSummary:
    """Store the rows of a file that has been read, in one transaction. `bad` has the bad rows, and gets those whose
    ids belong to different content. Raises `UserError` as `import_file` does."""
    check_name(dataset, "the name of the dataset")
    if not waiting.count and not bad.count:
        raise UserError(f"{source.name}: no trace found, the file is empty.", "Check the path.")
    if not waiting.count or waiting.count > _FEW:
        bad.check(waiting.count)
    with store.write(bulk=True) as session:
        writer = TraceWriter(session, dataset, content.kind, source.file_name)
        for rows in waiting:
            writer.add_rows(rows, bad)
            if progress:
                progress(writer.read, _READING + (1 - _READING) * writer.read / waiting.count)
        writer.finish(source.file_name, source.sha256)
        bad.check(writer.read)
        bad.store(session, writer.dataset_id)
    counts = writer.added, writer.unchanged, writer.repeated, writer.total, bad.count, content.labelled
    return ImportSummary(dataset, content.kind, *counts, notes=content.notes)


@contextmanager
def waiting_rows(name: str, size: int, most: int = sys.maxsize) -> "Iterator[WaitingRows]":
    """Yield a collector of the rows of the file `name` of `size` bytes. It takes at most `most` bytes, and at most
    as many as an ordinary file of that size holds: a small one can refer to a long text again and again."""
    with SpooledTemporaryFile(_IN_MEMORY) as file:
        yield WaitingRows(file, name, min(most, max(_SMALL, _UNFOLDED * size)))


class WaitingRows:
    """The rows of traces that wait, in a temporary file without a name, until everything has been read. `count` is
    the number of traces, and `written` that of the bytes that they take."""

    def __init__(self, file: IO[bytes], name: str, most: int) -> None:
        self._file, self._name, self._most = file, name, most
        self.written = self.count = 0

    def add(self, lines: bytes) -> None:
        """Add what `row_lines` yields. Raises `UserError` if it is too much, or if there is no room for it."""
        self.written += len(lines)
        self.count += lines.count(b"\n")
        if self.written > self._most:
            raise UserError(
                f"{self._name}: its traces take more than {format_bytes(self._most)} of disk space.",
                "Split the file, or leave out what its rows repeat.",
            )
        try:
            self._file.write(lines)
        except OSError as fault:
            where = f"{gettempdir()}: cannot be written ({fault.strerror})."
            raise UserError(where, "Free some space there, or set TMPDIR to another folder.") from None

    def __iter__(self) -> Iterator[list[TraceRows]]:
        self._file.seek(0)
        batch: list[TraceRows] = []
        size = 0
        for line in self._file:
            batch.append(TraceRows(*json.loads(line.decode("utf-8", "surrogatepass"))))
            size += len(line)
            if size > _BATCH_SIZE or len(batch) == _BATCH:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch


class WantedTraces:
    """The traces of a file that meet the conditions and are not dropped by `change`. Iterating over them also
    counts their labelled steps."""

    def __init__(
        self, traces: Iterable[tuple[str, Trace]], where: RowConditions, change: Change | None = None
    ) -> None:
        self._traces = traces
        self._where = where
        self._change = change
        self.given_up = self.kept = self.labelled = 0

    @property
    def left_out(self) -> dict[str, int]:
        """The number of traces that each condition left out."""
        return dict(self._where.left_out)

    def __iter__(self) -> Iterator[tuple[str, Trace]]:
        for place, trace in self._traces:
            if not self._where.hold(trace.meta):
                continue
            changed = self._change(trace) if self._change else trace
            if changed is None:
                self.given_up += 1
                continue
            self.kept += 1
            self.labelled += sum(label is not None for label in changed.labels)
            yield place, changed

    def content(self, kind: FileKind) -> FileContent:
        """Return what the file of this kind held, after all of its traces."""
        return FileContent(kind.name, self.labelled, kind.notes())

    def check(self, name: str) -> None:
        """Raise `UserError` if traces were read but none of them is wanted. `name` is the file name."""
        with located(name):
            self._where.check()
        if self.given_up and not self.kept:
            raise UserError(f"{name}: no trace has the rest of its solution.", "Leave --continued out.")


class FileSource:
    """The lines of a file, hashed as they are read."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        # Databases accept only text.
        self.name, self.file_name = str(path), os.fsencode(path.name).decode("utf-8", "replace")
        self._file = file
        self.size = os.fstat(file.fileno()).st_size
        self._read = 0
        self._hash = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        for line in self._file:
            self._hash.update(line)
            self._read += len(line)
            yield line

    @property
    def fraction(self) -> float:
        return min(1.0, self._read / self.size) if self.size else 1.0

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()
