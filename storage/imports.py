"""Importing a file of traces into the store: all of it or nothing."""

import hashlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from core.errors import UserError
from core.jsonl import open_input
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
    `total` is what the dataset now holds."""

    dataset: str
    kind: str
    added: int
    unchanged: int
    repeated: int
    total: int

    def __str__(self) -> str:
        if not self.added:
            return f"{self.dataset}: nothing new, {_traces(self.unchanged)} already stored."
        parts = [f"{_traces(self.added)} added"]
        parts += [f"{self.unchanged:,} already stored"] if self.unchanged else []
        parts += [f"{self.repeated:,} repeated in the file"] if self.repeated else []
        return f"{self.dataset}: {', '.join(parts)}; {self.total:,} in the dataset."


def import_file(
    store: Store,
    kind: str,
    path: str | Path,
    dataset: str | None = None,
    progress: Progress | None = None,
) -> ImportSummary:
    """Store the traces of a file, in one transaction and a bounded amount of memory.

    Importing a file again changes nothing; rows new to the dataset are added after the others. A trace is the
    same where problem, steps and gold are (`Trace.digest`); what else the file says of it is kept as first
    stored.

    Raises `UserError`, with nothing stored, at the first bad row, at an id with other content than before,
    where the file holds no trace, or where the dataset is of another kind.
    """
    chosen, path = find_kind(kind), Path(path)
    name = (chosen.dataset or path.stem) if dataset is None else dataset
    check_name(name, "the name of the dataset")
    with open_input(path) as file, store.write() as session:
        source = _Source(file)
        writer = TraceWriter(session, name, chosen.name, _file_name(path))
        located = read_traces(chosen, source, str(path))
        while batch := list(islice(located, _BATCH)):
            writer.add(batch)
            if progress:
                progress(writer.read, source.fraction)
        if not writer.read:
            raise UserError(f"{path}: no trace found, the file is empty.", "Check the path.")
        writer.finish(_file_name(path), source.sha256)
    return ImportSummary(name, chosen.name, writer.added, writer.unchanged, writer.repeated, writer.total)


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


def _traces(count: int) -> str:
    return f"{count:,} trace" if count == 1 else f"{count:,} traces"


def _file_name(path: Path) -> str:
    """The name without bytes that are no text, which a file system allows and a database does not."""
    return os.fsencode(path.name).decode("utf-8", "replace")
