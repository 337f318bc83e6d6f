"""Reading all files of a dataset as one table, from a file, a folder or a dataset on a hub.

A folder can be one that `datasets` saved to disk as Arrow files, or one with data files as on a hub, such as
`data/train-00000-of-00002.parquet`. Files numbered in this way form one part, called `data/train` or `train`. Rows
are numbered across all files of a part, as in `datasets`, but from 1.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.arrow import arrow_batches, is_arrow, parquet_batches
from stepsight.core.files.json_values import read_json
from stepsight.core.files.jsonl import open_input
from stepsight.core.files.text_lines import COMPRESSED, PARQUET, check_beginning, stem_of, without_suffix
from stepsight.storage.importers.column_mapping import ColumnMap, columns_kind
from stepsight.storage.importers.recognition import BEGINNING, find_reader
from stepsight.storage.importers.rows.kind import FileKind, OnBad, Rows
from stepsight.storage.importers.rows.tables import table_rows

SUFFIXES = (".parquet", ".arrow", ".jsonl", ".ndjson", ".json", ".csv")
_ENDINGS = (*SUFFIXES, *(suffix + compressed for suffix in SUFFIXES for compressed in COMPRESSED))
_DICTIONARY, _STATE, _INFO = "dataset_dict.json", "state.json", "dataset_info.json"
_ABOUT = (_DICTIONARY, _STATE, _INFO, "dataset_infos.json", "croissant.json")
_NUMBERED = re.compile(r"-\d{5}-of-\d{5}$")
_PLAIN = re.compile(r"[\w.-]{1,200}")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_SHOWN = 12
_LEFT_BEHIND = ("__MACOSX", "__pycache__")


@dataclass(frozen=True)
class DataFile:
    """A data file and the name under which messages refer to it."""

    name: str
    path: Path


class DataFiles:
    """The files of one dataset, as a source for `storage.traces.imports`.

    `name` is used in messages, and `file_name` is the name that the store records. `kind()` returns the matching
    file kind.
    """

    def __init__(self, name: str, files: Sequence[DataFile], file_name: str = "") -> None:
        self.name, self.file_name = name, file_name or PurePosixPath(name).name
        self._files = files
        self._sizes = [file.path.stat().st_size for file in files]
        self._read = 0
        self._hash = hashlib.sha256()
        self._binary: set[str] = set()

    def kind(self, columns: ColumnMap) -> FileKind:
        """Return a file kind that reads these files with the column mapping `columns`."""
        return columns_kind(columns, self._rows, self._binary)

    def __iter__(self) -> Iterator[bytes]:
        # The kind opens the files itself, since some formats cannot be read line by line.
        return iter(())

    @property
    def stem(self) -> str:
        """The name of the file or folder without its suffix."""
        return stem_of(Path(self.name).resolve())

    @property
    def size(self) -> int:
        return sum(self._sizes)

    @property
    def fraction(self) -> float:
        return self._read / max(1, self.size)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def _rows(self, lines: Iterable[bytes], name: str, on_bad: OnBad | None = None, /) -> Rows:
        number = 0
        for file, size in zip(self._files, self._sizes, strict=True):
            with open(file.path, "rb") as content:
                self._hash.update(hashlib.file_digest(content, "sha256").digest())
            for where, row in self._rows_of(file, on_bad):
                number += 1
                yield (where if len(self._files) == 1 else f"{name} row {number}"), row
            self._read += size

    def _rows_of(self, file: DataFile, on_bad: OnBad | None) -> Rows:
        beginning = _beginning(file.path)
        if is_arrow(beginning):
            return table_rows(arrow_batches(file.path), self.name, "Arrow", self._binary)
        if beginning.startswith(PARQUET):
            return table_rows(parquet_batches(file.path), self.name, "Parquet", self._binary)
        if not beginning.strip():
            raise UserError(f"{file.name}: the file is empty.", "Check the file.")
        check_beginning(beginning, file.name)
        return self._text_rows(file, beginning, on_bad)

    def _text_rows(self, file: DataFile, beginning: bytes, on_bad: OnBad | None) -> Rows:
        def told(where: str, error: UserError, content: bytes) -> None:
            assert on_bad is not None
            on_bad(where, error if len(self._files) == 1 else error.at(file.name), content)

        with open_input(file.path) as lines:
            yield from find_reader(beginning)(lines, self.name, told if on_bad else None)


def is_hub_id(text: str) -> bool:
    """True if a text looks like the `OWNER/NAME` of a hub dataset rather than a file name."""
    return bool(_HUB_ID.fullmatch(text)) and not without_suffix(text).lower().endswith(SUFFIXES)


def find_data(path: Path, part: str = "") -> DataFiles:
    """Return the data at a path: a single file, or the files of one part of a folder.

    `part` may be empty if the folder has only one part. Raises `UserError` if the file or part does not exist, or
    if the folder has several parts and `part` names none.
    """
    if not path.is_dir():
        with open_input(path):
            return DataFiles(str(path), [DataFile(path.name, path)])
    if (path / _DICTIONARY).is_file():
        return find_data(path / _saved_part(path, part))
    if (path / _STATE).is_file():
        return DataFiles(str(path), [DataFile(name, path / name) for name in _saved_files(path)])
    below = {one.relative_to(path).as_posix(): one for one in path.rglob("*") if one.is_file()}
    names = choose_part(below, str(path), part)
    return DataFiles(str(path), [DataFile(name, below[name]) for name in names])


def fetch_data(repo: str, revision: str = "", part: str = "") -> DataFiles:
    """Return the files of one part of a hub dataset, downloading the files that are not in the hub client's cache.

    The store records the files as `OWNER/NAME@COMMIT`. Raises `UserError` if the dataset, revision or part does not
    exist, if the hub refuses access or cannot be reached, or if the disk has no room for the files.
    """
    # Most datasets come from files, for which no hub's client is loaded.
    from stepsight.core.hubs.hub_download import fetch_dataset

    commit, files = fetch_dataset(repo, revision, lambda names: choose_part(names, repo, part))
    return DataFiles(repo, [DataFile(name, path) for name, path in files.items()], f"{repo}@{commit}")


def choose_part(names: Iterable[str], where: str, part: str = "") -> list[str]:
    """Return the file names of one part, in order. Raises `UserError` in the same cases as `find_data`."""
    parts = _parts(names)
    if not parts:
        raise UserError(f"{where}: no file of data.", f"Expected files that end in {', '.join(SUFFIXES)}.")
    chosen = [key for key in parts if part in ("", key) or key.endswith(f"/{part}")]
    if len(chosen) == 1:
        return parts[chosen[0]]
    shown = ", ".join(list(parts)[:_SHOWN]) + (", …" if len(parts) > _SHOWN else "")
    if not chosen:
        raise UserError(f"{where} has no part {part!r:.60}.", f"It has {shown}.")
    raise UserError(f"{where} has {len(parts)} parts: {shown}.", "Name one of them (--part).")


def is_saved(folder: Path) -> bool:
    """True if a folder is a dataset, or a dictionary of datasets, that `datasets` saved to disk."""
    is_one = (folder / _STATE).is_file() and (folder / _INFO).is_file()
    return is_one or (folder / _DICTIONARY).is_file()


def is_data(path: PurePosixPath) -> bool:
    """True if a file, given relative to the folder that is imported, has a suffix of data, compressed or not, and
    is neither hidden nor a description of the data."""
    suffix = PurePosixPath(without_suffix(path.name)).suffix.lower()
    return suffix in SUFFIXES and path.name not in _ABOUT and not is_hidden(path)


def is_hidden(path: PurePosixPath) -> bool:
    """True if a file, given relative to the folder that is imported, is hidden or in a folder that is, such as the
    leftovers of notebooks, hub clients and archives."""
    return any(one.startswith(".") or one in _LEFT_BEHIND for one in path.parts)


def _parts(names: Iterable[str]) -> dict[str, list[str]]:
    """Return the file names of each part. If a part exists in several formats, only the preferred format is
    included."""
    found: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in sorted(names):
        path = PurePosixPath(without_suffix(name))
        if is_data(path):
            key = _NUMBERED.sub("", path.with_suffix("").as_posix())
            found[key][name.lower()[len(path.as_posix()) - len(path.suffix) :]].append(name)
    return {key: next(kinds[ending] for ending in _ENDINGS if ending in kinds) for key, kinds in found.items()}


def _saved_part(path: Path, part: str) -> str:
    """Return the folder name of a part of a `DatasetDict` saved by `datasets`."""
    splits = read_json(path / _DICTIONARY).get("splits")
    if not isinstance(splits, list) or not splits or not all(_is_name(one) for one in splits):
        raise UserError(f"{path / _DICTIONARY}: no splits are named.", "Save the dataset again.")
    if part in splits or (len(splits) == 1 and not part):
        return part or str(splits[0])
    shown = ", ".join(splits[:_SHOWN])
    if part:
        raise UserError(f"{path} has no part {part!r:.60}.", f"It has {shown}.")
    raise UserError(f"{path} has {len(splits)} parts: {shown}.", "Name one of them (--part).")


def _saved_files(path: Path) -> list[str]:
    """Return the names of the Arrow files of a saved dataset, in order."""
    state: Mapping[str, Any] = read_json(path / _STATE)
    files = state.get("_data_files")
    named = files if isinstance(files, list) else []
    names: list[Any] = [one.get("filename") for one in named if isinstance(one, dict)]
    if not names or not all(_is_name(name) for name in names):
        raise UserError(f"{path / _STATE}: no files are named.", "Save the dataset again.")
    missing = [name for name in names if not (path / name).is_file()]
    if missing:
        raise UserError(f"{path}: {missing[0]} is missing.", "Copy the whole folder.")
    return names


def _is_name(value: object) -> bool:
    """True if a value is a plain file or folder name without a path."""
    return isinstance(value, str) and bool(_PLAIN.fullmatch(value)) and value.strip(".") != ""


def _beginning(path: Path) -> bytes:
    with open_input(path) as file:
        return file.read(BEGINNING)
