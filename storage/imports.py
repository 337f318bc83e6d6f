"""Importing a file of traces into the store: all of it or nothing."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from sqlalchemy.orm import Session

from core.errors import UserError
from core.jsonl import open_input
from storage.bad_rows import LeftOutRows, RefusedRows
from storage.importers import find_kind, read_traces
from storage.names import check_name
from storage.store import Store
from storage.writer import TraceWriter

# Traces held in memory at once.
_BATCH = 500
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
