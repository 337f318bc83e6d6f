"""Importing files of traces into the store, each in a single transaction."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO, Any, Protocol

from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.files.jsonl import open_input
from stepsight.core.files.text_lines import stem_of
from stepsight.core.row_conditions import RowConditions
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import LeftOutRow, check_name
from stepsight.storage.database.store import Store
from stepsight.storage.database.upsert import insert_once
from stepsight.storage.importers import find_kind, read_traces
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.importers.data_files import DataFiles
from stepsight.storage.importers.rows.kind import FileKind
from stepsight.storage.traces.writer import TraceWriter

# The rows named in a refusal, and those held in memory at once.
_SHOWN = 5
_BATCH = 500
# The most rows that may be left out of a file, since each is stored.
_MOST_LEFT_OUT = 100_000
_OTHER_LISTING = "Name another file with --skipped."


class RefusedRows:
    """Counts the bad rows of the file `name`, in order to refuse the file at the end. The error then says how many
    rows are bad and tells the user, with the text `leave_out`, how to leave them out."""

    def __init__(self, name: str, leave_out: str = "with --skip-bad") -> None:
        self._name, self._leave_out = name, leave_out
        self._first: list[tuple[str, UserError]] = []
        self.count = 0

    def __call__(self, where: str, error: UserError, content: bytes) -> None:
        self.count += 1
        # Some faults are found later than those of later rows.
        rows = [*self._first, (where.removeprefix(f"{self._name} "), error)]
        self._first = sorted(rows, key=lambda bad: _number(bad[0]))[:_SHOWN]

    def finish(self, good: int) -> None:
        """Raise `UserError` if there were bad rows, and show the first few. `good` is the number of good rows."""
        if not self.count:
            return
        if self.count == 1:
            ((_, error),) = self._first
            mend = f"{error.hint} Or leave it out" if error.hint else "Fix it, or leave it out"
            raise UserError(error.message, f"{mend} {self._leave_out}.")
        counts = f"{self.count:,} of {self.count + good:,} rows are bad, so that nothing was stored"
        head = f"{self._name}: {counts}; fix them, or leave them out {self._leave_out}."
        lines = [f"  {place}: {_without_place(self._name, place, error)}" for place, error in self._first]
        more = [f"  and {self.count - _SHOWN:,} more"] if self.count > _SHOWN else []
        raise UserError("\n".join([head, *lines, *more]))

    def close(self) -> None:
        """Do nothing, because there is nothing to clean up."""


class LeftOutRows:
    """Stores the bad rows of a file with the dataset and, if `listing` is given, also lists them in the file
    `listing`.

    The listing is JSON Lines. It is created only if the import succeeds and some rows are bad, and it never
    overwrites a file with different rows.
    """

    def __init__(self, session: Session, dataset_id: int, name: str, source: str, listing: Path | None) -> None:
        self._session, self._dataset_id = session, dataset_id
        self._name, self._source = name, source
        self._listing = _Listing(listing) if listing else None
        self._seen: Counter[bytes] = Counter()
        self._waiting: list[dict[str, Any]] = []
        self.count = 0

    def __call__(self, where: str, error: UserError, content: bytes) -> None:
        place = where.removeprefix(f"{self._name} ")
        row = {"dataset_id": self._dataset_id, "digest": self._digest(content), "source": self._source}
        self._waiting.append(row | {"place": place, "error": _without_place(self._name, place, error)})
        self.count += 1
        if self.count > _MOST_LEFT_OUT:
            raise UserError(
                f"{self._name}: more than {_MOST_LEFT_OUT:,} rows are bad.", "Check the kind of the file."
            )
        if len(self._waiting) >= _BATCH:
            self._flush()

    def finish(self, good: int) -> None:
        """Move the listing into place. Raises `UserError` if every row is bad, or if a different file is already
        there."""
        if not self.count:
            return
        if not good:
            raise UserError(f"{self._name}: all of its {self.count:,} rows are bad.", "Check the kind of the file.")
        self._flush()
        if self._listing:
            self._listing.finish()

    def close(self) -> None:
        """Remove the listing unless it was moved into place."""
        if self._listing:
            self._listing.close()

    def _digest(self, content: bytes) -> str:
        """Return a digest of a row's content and of the number of earlier rows with the same content. Two identical
        bad rows are therefore counted as two rows."""
        digest = hashlib.sha256(content)
        key = digest.digest()
        if self._seen[key]:
            digest.update(f"\n{self._seen[key]}".encode())
        self._seen[key] += 1
        return digest.hexdigest()

    def _flush(self) -> None:
        if not self._waiting:
            return
        self._waiting.sort(key=lambda row: _number(row["place"]))
        insert_once(self._session, LeftOutRow, self._waiting, "dataset_id", "digest")
        if self._listing:
            self._listing.add(self._waiting)
        self._waiting = []


class _Listing:
    """A file with one line per bad row, written under a temporary name and moved to `path` at the end."""

    def __init__(self, path: Path) -> None:
        self._path, self._partial = path, path.with_name(f"{path.name}.partial")
        self._begun = False

    def add(self, rows: list[dict[str, Any]]) -> None:
        try:
            with open(self._partial, "a" if self._begun else "w", encoding="utf-8") as file:
                self._begun = True
                file.writelines(_line(row) for row in rows)
        except OSError as fault:
            raise self._unwritable(fault) from None

    def finish(self) -> None:
        """Move the file into place. Raises `UserError` if a file with different rows already exists there."""
        try:
            if not self._path.exists():
                os.replace(self._partial, self._path)
                return
            same = _same(self._partial, self._path)
        except OSError as fault:
            raise self._unwritable(fault) from None
        if not same:
            raise UserError(
                f"{self._path}: there already, and not the list of the rows left out now.", _OTHER_LISTING
            )

    def close(self) -> None:
        """Remove the file unless it was moved into place."""
        if self._begun:
            with suppress(OSError):
                self._partial.unlink()

    def _unwritable(self, fault: OSError) -> UserError:
        return UserError(f"{self._path}: cannot be written ({fault.strerror}).", _OTHER_LISTING)


def _line(row: dict[str, Any]) -> str:
    unit, number = row["place"].split()
    return json.dumps({"file": row["source"], unit: int(number), "error": row["error"]}, ensure_ascii=False) + "\n"


def _same(one: Path, other: Path) -> bool:
    """True if two listings contain the same rows. The errors of the rows may differ, because a repeated import
    finds the good rows already stored and can report different errors."""
    with open(one, encoding="utf-8") as left, open(other, encoding="utf-8", errors="replace") as right:
        return all(_place(a) == _place(b) for a, b in zip_longest(left, right, fillvalue=""))


def _place(line: str) -> object:
    try:
        return json.loads(line) | {"error": ""}
    except (ValueError, TypeError):
        return line


def _number(place: str) -> int:
    return int(place.split()[1])


def _without_place(name: str, place: str, error: UserError) -> str:
    """Return the error message of a row without the name of the file and the place of the row."""
    return f"{error.message.removeprefix(f'{name} {place}: ')} {error.hint}".strip()


# Called with the traces read so far and the part of the file read, from 0 to 1.
Progress = Callable[[int, float], None]
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
        left_out = f", {_counted(self.left_out, 'bad row')} left out" if self.left_out else ""
        left_out += "".join(f", {count:,} left out by {what}" for what, count in self.unwanted.items())
        left_out += f", {self.given_up:,} left out whose rest is not known" if self.given_up else ""
        notes = "".join(f" {note}" for note in self.notes)
        if not self.added:
            stored = _counted(self.unchanged, "trace")
            return f"{self.dataset}: nothing new, {stored} already stored{left_out}.{notes}"
        parts = [f"{_counted(self.added, 'trace')} added"]
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
    """Store the traces of a file in one transaction and with bounded memory.

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
    columns: ColumnMap,
    data: DataFiles,
    dataset: str,
    progress: Progress | None = None,
    skipped: str | Path | None = None,
    where: RowConditions | None = None,
) -> ImportSummary:
    """Like `import_file`, but for one or more data files whose columns are mapped by `columns`."""
    return import_source(store, data.kind(columns), data, dataset, _bad_rows(data, skipped), progress, where)


def _bad_rows(source: "LineSource", skipped: str | Path | None) -> "Callable[[Session, int], BadRows]":
    def bad_rows(session: Session, dataset_id: int) -> BadRows:
        if skipped is None:
            return RefusedRows(source.name)
        return LeftOutRows(session, dataset_id, source.name, source.file_name, Path(skipped))

    return bad_rows


BadRows = RefusedRows | LeftOutRows


class LineSource(Protocol):
    """The lines of a file.

    `name` is used in messages, and `file_name` is the name that the store records. `fraction` is the fraction of
    the file read so far, from 0 to 1. `sha256` is the hash of the bytes read so far.
    """

    @property
    def name(self) -> str: ...
    @property
    def file_name(self) -> str: ...
    @property
    def fraction(self) -> float: ...
    @property
    def sha256(self) -> str: ...
    def __iter__(self) -> Iterator[bytes]: ...


def import_source(
    store: Store,
    kind: FileKind,
    source: LineSource,
    dataset: str,
    bad_rows: Callable[[Session, int], BadRows],
    progress: Progress | None = None,
    where: RowConditions | None = None,
    change: Change | None = None,
) -> ImportSummary:
    """Like `import_file`, but for any source of lines. `bad_rows` creates the handler for bad rows."""
    check_name(dataset, "the name of the dataset")
    with store.write() as session:
        writer = TraceWriter(session, dataset, kind.name, source.file_name)
        with closing(bad_rows(session, writer.dataset_id)) as bad:
            wanted = _Wanted(read_traces(kind, source, source.name, bad), where or RowConditions(), change)
            located = iter(wanted)
            while batch := list(islice(located, _BATCH)):
                writer.add(batch, bad)
                if progress:
                    progress(writer.read, source.fraction)
            wanted.check(source.name)
            if not writer.read and not bad.count:
                raise UserError(f"{source.name}: no trace found, the file is empty.", "Check the path.")
            writer.finish(source.file_name, source.sha256)
            bad.finish(writer.read)
    counts = writer.added, writer.unchanged, writer.repeated, writer.total, bad.count
    wants = wanted.labelled, wanted.left_out, wanted.given_up
    return ImportSummary(dataset, kind.name, *counts, *wants, kind.notes())


class _Wanted:
    """The traces of a file that meet the conditions and are not dropped by `change`. Iterating over them also
    counts their labelled steps."""

    def __init__(
        self, located: Iterator[tuple[str, Trace]], where: RowConditions, change: Change | None = None
    ) -> None:
        self._located = located
        self._where = where
        self._change = change
        self.given_up = self.kept = self.labelled = 0

    @property
    def left_out(self) -> dict[str, int]:
        """The number of traces that each condition left out."""
        return dict(self._where.left_out)

    def __iter__(self) -> Iterator[tuple[str, Trace]]:
        for place, trace in self._located:
            if not self._where.hold(trace.meta):
                continue
            changed = self._change(trace) if self._change else trace
            if changed is None:
                self.given_up += 1
                continue
            self.kept += 1
            self.labelled += sum(label is not None for label in changed.labels)
            yield place, changed

    def check(self, name: str) -> None:
        """Raise `UserError` if traces were read but none of them is wanted. `name` is the file name."""
        try:
            self._where.check()
        except UserError as error:
            raise error.at(name) from None
        if self.given_up and not self.kept:
            raise UserError(f"{name}: no trace has the rest of its solution.", "Leave --continued out.")


class FileSource:
    """The lines of a file, hashed as they are read."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self.name, self.file_name = str(path), _file_name(path)
        self._file = file
        self._size = os.fstat(file.fileno()).st_size
        self._read = 0
        self._hash = hashlib.sha256()

    def __iter__(self) -> Iterator[bytes]:
        for line in self._file:
            self._hash.update(line)
            self._read += len(line)
            yield line

    @property
    def fraction(self) -> float:
        return min(1.0, self._read / self._size) if self._size else 1.0

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def _file_name(path: Path) -> str:
    """Return the file's name with undecodable bytes replaced, because databases only accept text."""
    return os.fsencode(path.name).decode("utf-8", "replace")
