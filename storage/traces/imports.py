"""Importing a file of traces into the store: all of it or nothing."""

import hashlib
import json
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import islice, zip_longest
from pathlib import Path
from typing import IO, Any

from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.jsonl import open_input
from stepsight.storage.database.schema import LeftOutRow, check_name
from stepsight.storage.database.store import Store
from stepsight.storage.database.upsert import insert_once
from stepsight.storage.importers import find_kind, read_traces
from stepsight.storage.traces.writer import TraceWriter

# Rows named in a refusal, and rows held in memory at once.
_SHOWN = 5
_BATCH = 500
_OTHER_LISTING = "Name another file with --skipped."


class RefusedRows:
    """Counts the bad rows of the file called `name`, so that its refusal can tell how many there are."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._first: list[tuple[str, UserError]] = []
        self.count = 0

    def __call__(self, where: str, error: UserError, content: bytes) -> None:
        self.count += 1
        # Some faults of a row are found later than those of the next ones.
        rows = [*self._first, (where.removeprefix(f"{self._name} "), error)]
        self._first = sorted(rows, key=lambda bad: _number(bad[0]))[:_SHOWN]

    def finish(self, good: int) -> None:
        """Raise `UserError` where there was a bad row, showing the first few; `good` rows were none."""
        if not self.count:
            return
        if self.count == 1:
            ((_, error),) = self._first
            raise UserError(error.message, f"{error.hint} Or leave it out with --skip-bad.".strip())
        counts = f"{self.count:,} of {self.count + good:,} rows are bad, so that nothing was stored"
        head = f"{self._name}: {counts}; fix them, or leave them out with --skip-bad."
        lines = [f"  {place}: {_without_place(self._name, place, error)}" for place, error in self._first]
        more = [f"  and {self.count - _SHOWN:,} more"] if self.count > _SHOWN else []
        raise UserError("\n".join([head, *lines, *more]))

    def close(self) -> None:
        """There is nothing to clear up."""


class LeftOutRows:
    """Lists the bad rows of the file called `name` in the file `listing` and remembers them with the dataset.

    The list is JSON Lines. It appears when the import ends well and there was a bad row, and never takes the
    place of another file.
    """

    def __init__(self, session: Session, dataset_id: int, name: str, source: str, listing: Path) -> None:
        self._session, self._dataset_id = session, dataset_id
        self._name, self._source = name, source
        self._listing, self._partial = listing, listing.with_name(f"{listing.name}.partial")
        self._seen: Counter[bytes] = Counter()
        self._waiting: list[dict[str, Any]] = []
        self._listed = False
        self.count = 0

    def __call__(self, where: str, error: UserError, content: bytes) -> None:
        place = where.removeprefix(f"{self._name} ")
        row = {"dataset_id": self._dataset_id, "digest": self._digest(content), "source": self._source}
        self._waiting.append(row | {"place": place, "error": _without_place(self._name, place, error)})
        self.count += 1
        if len(self._waiting) >= _BATCH:
            self._flush()

    def finish(self, good: int) -> None:
        """Put the list in its place. Raises `UserError` where another one is there, and where no row is good."""
        if not self.count:
            return
        if not good:
            raise UserError(f"{self._name}: all of its {self.count:,} rows are bad.", "Check the kind of the file.")
        self._flush()
        try:
            if not self._listing.exists():
                os.replace(self._partial, self._listing)
                return
            same = _same(self._partial, self._listing)
        except OSError as fault:
            raise self._unwritable(fault) from None
        if not same:
            raise UserError(
                f"{self._listing}: there already, and not the list of the rows left out now.", _OTHER_LISTING
            )

    def close(self) -> None:
        """Remove a list that was not put in its place."""
        if self._listed:
            with suppress(OSError):
                self._partial.unlink()

    def _digest(self, content: bytes) -> str:
        """Of the content and of how often it stood in the file before: two equal bad rows are two."""
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
        try:
            with open(self._partial, "a" if self._listed else "w", encoding="utf-8") as file:
                self._listed = True
                file.writelines(_line(row) for row in self._waiting)
        except OSError as fault:
            raise self._unwritable(fault) from None
        self._waiting = []

    def _unwritable(self, fault: OSError) -> UserError:
        return UserError(f"{self._listing}: cannot be written ({fault.strerror}).", _OTHER_LISTING)


def _line(row: dict[str, Any]) -> str:
    unit, number = row["place"].split()
    return json.dumps({"file": row["source"], unit: int(number), "error": row["error"]}, ensure_ascii=False) + "\n"


def _same(one: Path, other: Path) -> bool:
    """Whether two lists name the same rows. Of what is wrong with one, an import that finds the good rows stored
    may tell otherwise than the first did."""
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
    """What is wrong with a row, without its place."""
    return f"{error.message.removeprefix(f'{name} {place}: ')} {error.hint}".strip()


# Traces held in memory at once.
# Called with the traces read so far and the part of the file read, from 0 to 1.
Progress = Callable[[int, float], None]


@dataclass(frozen=True)
class ImportSummary:
    """What an import did. `unchanged` traces were stored before, `repeated` ones stand twice in the file,
    `left_out` rows of it are bad; `total` is what the dataset now holds."""

    dataset: str
    kind: str
    added: int
    unchanged: int
    repeated: int
    total: int
    left_out: int = 0

    def __str__(self) -> str:
        left_out = f", {_counted(self.left_out, 'bad row')} left out" if self.left_out else ""
        if not self.added:
            return f"{self.dataset}: nothing new, {_counted(self.unchanged, 'trace')} already stored{left_out}."
        parts = [f"{_counted(self.added, 'trace')} added"]
        parts += [f"{self.unchanged:,} already stored"] if self.unchanged else []
        parts += [f"{self.repeated:,} repeated in the file"] if self.repeated else []
        return f"{self.dataset}: {', '.join(parts)}{left_out}; {self.total:,} in the dataset."


def import_file(
    store: Store,
    kind: str,
    path: str | Path,
    dataset: str | None = None,
    progress: Progress | None = None,
    skipped: str | Path | None = None,
) -> ImportSummary:
    """Store the traces of a file, in one transaction and a bounded amount of memory.

    Importing a file again changes nothing; rows new to the dataset are added after the others. A trace is the
    same where problem, steps and gold are (`Trace.digest`); what else the file says of it is kept as first
    stored.

    A bad row is one that is no trace of the kind, or has an id that stands for other content before. Given
    `skipped`, such rows are left out, listed in that file as JSON Lines, and remembered with the dataset; the file
    is not made where there are none, and one with other content is left alone.

    Raises `UserError`, with nothing stored, counting the bad rows where they are not to be skipped, and where the
    file holds no trace, looks like another kind, or cannot be read on, or the dataset is of another kind.
    """
    chosen, path = find_kind(kind), Path(path)
    name = (chosen.dataset or path.stem) if dataset is None else dataset
    check_name(name, "the name of the dataset")
    with open_input(path) as file, store.write() as session:
        source = _Source(file)
        writer = TraceWriter(session, name, chosen.name, _file_name(path))
        with closing(_bad_rows(session, writer.dataset_id, path, skipped)) as bad:
            located = read_traces(chosen, source, str(path), bad)
            while batch := list(islice(located, _BATCH)):
                writer.add(batch, bad)
                if progress:
                    progress(writer.read, source.fraction)
            if not writer.read and not bad.count:
                raise UserError(f"{path}: no trace found, the file is empty.", "Check the path.")
            writer.finish(_file_name(path), source.sha256)
            bad.finish(writer.read)
    counts = writer.added, writer.unchanged, writer.repeated, writer.total, bad.count
    return ImportSummary(name, chosen.name, *counts)


def _bad_rows(
    session: Session, dataset_id: int, path: Path, skipped: str | Path | None
) -> RefusedRows | LeftOutRows:
    if skipped is None:
        return RefusedRows(str(path))
    return LeftOutRows(session, dataset_id, str(path), _file_name(path), Path(skipped))


class _Source:
    """The lines of a file, hashed as they are read."""

    def __init__(self, file: IO[bytes]) -> None:
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
    """The name without bytes that are no text, which a file system allows and a database does not."""
    return os.fsencode(path.name).decode("utf-8", "replace")
