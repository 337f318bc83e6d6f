"""Reading all files of a dataset as one table, from a file, a folder or a dataset on a hub.

A folder can be one that `datasets` saved to disk as Arrow files, or one with data files as on a hub, such as
`data/train-00000-of-00002.parquet`. Files numbered in this way, or as Spark does, `part-00000-….parquet`, form one
part, called `data/train`, `train` or `part`. So do the files in folders such as `lang=en/level=3`, whose values are
columns of their rows. Rows are numbered across all files of a part, as in `datasets`, but from 1.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from stepsight.core.errors import UserError
from stepsight.core.files.arrow import arrow_batches, is_arrow, parquet_batches
from stepsight.core.files.jsonl import open_input
from stepsight.core.files.text_lines import COMPRESSED, PARQUET, check_beginning, stem_of, without_suffix
from stepsight.core.files.whole_files import read_bytes, read_json
from stepsight.core.files.yaml_files import parse_yaml
from stepsight.storage.importers.column_mapping import ColumnMap, columns_kind
from stepsight.storage.importers.recognition import BEGINNING, find_reader
from stepsight.storage.importers.rows.kind import FileKind, OnBad, Rows
from stepsight.storage.importers.rows.tables import table_rows

SUFFIXES = (".parquet", ".arrow", ".jsonl", ".ndjson", ".json", ".csv", ".tsv")
_ENDINGS = (*SUFFIXES, *(suffix + compressed for suffix in SUFFIXES for compressed in COMPRESSED))
_DICTIONARY, _STATE, _INFO = "dataset_dict.json", "state.json", "dataset_info.json"
_ABOUT = (_DICTIONARY, _STATE, _INFO, "dataset_infos.json", "croissant.json")
# The names of numbered files without their suffix, with what hubs once added, and those of the files of Spark.
_NUMBERED = re.compile(r"(.*?)[-_.]?(\d{1,9})([-_]of[-_])(\d{1,9})(?:-[0-9a-f]{8,64})?")
_DIGITS = re.compile(r"([0-9]{1,20})")
_OF_SPARK = re.compile(r"part-\d{5}(?:-.*)?")
_VALUE = re.compile(r"([^\W\d][\w.-]*)=(.*)")
# Hive's word for a missing value.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_SUCCESS, _UNFINISHED = "_SUCCESS", "_temporary"
_LOGS = {"_delta_log": "Delta", ".hoodie": "Hudi"}
_CARD = "README.md"
_DESCRIBING = re.compile(r"(?:README|LICEN[CS]E|CITATION|NOTICE)\b.*|_[^.]*", re.IGNORECASE)
_PLAIN = re.compile(r"[\w.-]{1,200}")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_SHOWN = 12
_LARGEST_CARD = 1_000_000
_LEFT_BEHIND = ("__MACOSX", "__pycache__", _UNFINISHED)


@dataclass(frozen=True)
class DataFile:
    """A data file and the name under which messages refer to it. `values` are columns of its rows that its folders
    name, unless the rows have them."""

    name: str
    path: Path
    values: Mapping[str, str | None] = field(default_factory=dict)


def _data_file(name: str, path: Path) -> DataFile:
    pairs = [match.groups() for folder in PurePosixPath(name).parts[:-1] if (match := _VALUE.fullmatch(folder))]
    return DataFile(name, path, {key: None if value == _NO_VALUE else unquote(value) for key, value in pairs})


class DataFiles:
    """The files of one dataset, as a source for `storage.traces.imports`.

    `name` is used in messages, and `file_name` is the name that the store records. `kind()` returns the matching
    file kind. `notes` are sentences about the folder. `expected` is the number of rows that a file in it says it
    has, with the name of that file.
    """

    def __init__(
        self,
        name: str,
        files: Sequence[DataFile],
        file_name: str = "",
        notes: Sequence[str] = (),
        expected: tuple[int, str] | None = None,
    ) -> None:
        self.name, self.file_name = name, file_name or PurePosixPath(name).name
        self._files = files
        self._sizes = [file.path.stat().st_size for file in files]
        self._read = 0
        self._digests: list[bytes] = []
        self._binary: set[str] = set()
        self._notes, self._expected, self._count = tuple(notes), expected, 0
        self._bad = 0

    def kind(self, columns: ColumnMap) -> FileKind:
        """Return a file kind that reads these files with the column mapping `columns`."""
        return self.of_kind(columns_kind(columns, self._rows, self._binary))

    def of_kind(self, kind: FileKind) -> FileKind:
        """Return a kind that reads these files, of which each row is one of `kind`."""

        def notes() -> tuple[str, ...]:
            expected, source = self._expected or (self._count, "")
            differs = f"{source} says that there are {expected:,} rows; {self._count:,} are there."
            return (*kind.notes(), *self._notes, *([differs] if expected != self._count else []))

        return replace(kind, reader=self._rows, notes=notes)

    def __iter__(self) -> Iterator[bytes]:
        # The kind opens the files itself, since some formats cannot be read line by line.
        return iter(())

    @property
    def is_joined(self) -> bool:
        """True if there are several files, or one whose folders have values for its rows."""
        return len(self._files) > 1 or bool(self._files[0].values)

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
        """The hash of the file or, of several files, that of their hashes."""
        joined = b"".join(self._digests)
        return joined.hex() if len(self._files) == 1 else hashlib.sha256(joined).hexdigest()

    def _rows(self, lines: Iterable[bytes], name: str, on_bad: OnBad | None = None, /) -> Rows:
        number = 0
        self._digests.clear()
        for file, size in zip(self._files, self._sizes, strict=True):
            with open(file.path, "rb") as content:
                self._digests.append(hashlib.file_digest(content, "sha256").digest())
            for where, row in self._rows_of(file, on_bad):
                number += 1
                row = {**file.values, **row} if file.values else row
                yield (where if len(self._files) == 1 else f"{name} row {number}"), row
            self._read += size
            self._count = number + self._bad

    def _rows_of(self, file: DataFile, on_bad: OnBad | None) -> Rows:
        with open_input(file.path) as content:
            beginning = content.read(BEGINNING)
        if is_arrow(beginning):
            return table_rows(arrow_batches(file.path), self.name, "Arrow", self._binary)
        if beginning.startswith(PARQUET):
            return table_rows(parquet_batches(file.path), self.name, "Parquet", self._binary)
        if not beginning.strip():
            raise UserError(f"{file.name}: the file is empty.", "Check the file.")
        check_beginning(beginning, file.name)
        return self._text_rows(file, beginning, on_bad)

    def _text_rows(self, file: DataFile, beginning: bytes, on_bad: OnBad | None) -> Rows:
        def note(where: str, error: UserError, content: bytes) -> None:
            assert on_bad is not None
            self._bad += 1
            on_bad(where, error if len(self._files) == 1 else error.at(file.name), content)

        with open_input(file.path) as lines:
            yield from find_reader(beginning)(lines, self.name, note if on_bad else None)


def is_hub_id(text: str) -> bool:
    """True if a text looks like the `OWNER/NAME` of a hub dataset rather than a file name."""
    return bool(_HUB_ID.fullmatch(text)) and not without_suffix(text).lower().endswith(SUFFIXES)


def find_data(path: Path, part: str = "") -> DataFiles:
    """Return the data at a path: a single file, or the files of one part of a folder.

    `part` may be empty if the folder has only one part. Raises `UserError` if the file or part does not exist, or
    if the folder has several parts and `part` names none, if a numbered file is missing, or if the folder says that
    its files are not all that count.
    """
    if not path.is_dir():
        with open_input(path):
            return DataFiles(str(path), [DataFile(path.name, path)])
    if (path / _DICTIONARY).is_file():
        return find_data(path / _saved_part(path, part))
    if (path / _STATE).is_file():
        return DataFiles(str(path), [DataFile(name, path / name) for name in _saved_files(path)])
    below = files_below(path)
    for folder, error in refused_folders(below).items():
        raise error.at(str(path / folder))
    names = choose_part(below, str(path), part)
    unread = shown_names(unread_files(below, names))
    return join_files(path, names, below, [f"Not read: {unread}."] if unread else [])


def join_files(path: Path, names: Sequence[str], below: Mapping[str, Path], notes: Sequence[str] = ()) -> DataFiles:
    """Return the named ones of the files `below` a folder as one dataset with these notes and those that the folder
    gives rise to."""
    spark = [name for name in names if _OF_SPARK.fullmatch(PurePosixPath(without_suffix(name)).stem)]
    if spark and not any(PurePosixPath(name).name == _SUCCESS for name in below):
        notes = (*notes, f"There is no {_SUCCESS}: the job that wrote these files may not have ended.")
    files = [_data_file(name, below[name]) for name in names]
    return DataFiles(str(path), files, notes=notes, expected=_expected_rows(path, part_of(names[0])))


def files_below(path: Path) -> dict[str, Path]:
    """Return all files below a folder by their names relative to it."""
    return {file.relative_to(path).as_posix(): file for file in sorted(path.rglob("*")) if file.is_file()}


def refused_folders(names: Iterable[str]) -> dict[str, UserError]:
    """Return the folders among those of the named files that are not read, with the reasons: tables whose log says
    which of their files count, and results of jobs that have not ended."""
    every = [PurePosixPath(name) for name in names]
    finished = {path.parent for path in every if path.name == _SUCCESS}
    refused: dict[str, UserError] = {}
    for path in every:
        for place, part in enumerate(path.parts[:-1]):
            folder = PurePosixPath(*path.parts[:place])
            if part in _LOGS:
                what = f"a table of {_LOGS[part]}, whose log says which of its files count."
                refused[str(folder)] = UserError(what, "Write its rows as Parquet.")
            elif part == _UNFINISHED and folder not in finished:
                what = f"{part} is there and {_SUCCESS} is not: the job that writes it has not ended."
                refused[str(folder)] = UserError(what, "Wait for it, or run it again.")
    return refused


def unread_files(below: Iterable[str], read: Iterable[str]) -> list[str]:
    """Return the names of the files that are neither among those that are `read`, nor of another part, nor hidden,
    nor about the data."""
    names, read = list(below), set(read)
    parts = {part_of(name) for name in read}
    others = {name for name in names if is_data(PurePosixPath(name)) and part_of(name) not in parts}
    return [
        name
        for name in names
        if name not in read | others and not is_hidden(path := PurePosixPath(name))
        if path.name not in _ABOUT and not _DESCRIBING.fullmatch(path.name)
    ]


def shown_names(names: Sequence[str]) -> str:
    """Return the first names of a list for a message, or "" if there are none."""
    more = f" and {len(names) - _SHOWN:,} others" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _expected_rows(root: Path, part: str) -> tuple[int, str] | None:
    """Return the number of rows that the next card of a dataset above a part of a folder, as hubs have it, says it
    has, and the name of the card. Returns None if it does not say so."""
    cards = [folder / _CARD for folder in (root / part, *(root / part).parents) if folder.is_relative_to(root)]
    card = next((choice for choice in cards if choice.is_file()), None)
    if card is None:
        return None
    try:
        _, head, _ = read_bytes(card, _LARGEST_CARD).decode("utf-8").split("---\n", 2)
        about = parse_yaml(head)["dataset_info"]
        splits = [
            (str(config.get("config_name", "")), str(split["name"]), split["num_examples"])
            for config in (about if isinstance(about, list) else [about])
            for split in config["splits"]
        ]
    except (OSError, ValueError, TypeError, KeyError, AttributeError, UserError):
        # A card is written by people, and says anything.
        return None
    *folders, name = part.split("/")
    fitting = [choice for choice in splits if choice[1] == name]
    if len(fitting) > 1:
        fitting = [choice for choice in fitting if choice[0] in folders]
    counts = {count for _, _, count in fitting if type(count) is int}
    return (counts.pop(), card.name) if len(counts) == 1 else None


def fetch_data(repo: str, revision: str = "", part: str = "") -> DataFiles:
    """Return the files of one part of a hub dataset, downloading the files that are not in the hub client's cache.

    The store records the files as `OWNER/NAME@COMMIT`. Raises `UserError` if the dataset, revision or part does not
    exist, if the hub refuses access or cannot be reached, or if the disk has no room for the files.
    """
    # Most datasets come from files, for which no hub's client is loaded.
    from stepsight.core.hubs.hub_download import fetch_dataset

    commit, files = fetch_dataset(repo, revision, lambda names: choose_part(names, repo, part))
    return DataFiles(repo, [_data_file(name, path) for name, path in files.items()], f"{repo}@{commit}")


def choose_part(names: Iterable[str], where: str, part: str = "") -> list[str]:
    """Return the file names of one part, in order. Raises `UserError` in the same cases as `find_data`."""
    names = list(names)
    parts = group_files(names)
    if not parts:
        unread = shown_names(unread_files(names, ()))
        message = f"no file of data; there are {unread}" if unread else "no file of data"
        raise UserError(f"{where}: {message}.", f"Expected files that end in {', '.join(SUFFIXES)}.")
    chosen = [key for key in parts if part in ("", key) or key.endswith(f"/{part}")]
    if len(chosen) == 1:
        kinds = parts[chosen[0]]
        files = next(kinds[ending] for ending in _ENDINGS if ending in kinds)
        check_numbered(files, where)
        return files
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
    return any(part.startswith(".") or part in _LEFT_BEHIND for part in path.parts)


def group_files(names: Iterable[str]) -> dict[str, dict[str, list[str]]]:
    """Return the names of the data files of each part, by their suffix and in order: number 2 before number 10."""
    parts: defaultdict[str, defaultdict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name in sorted(names, key=_with_numbers):
        path = PurePosixPath(without_suffix(name))
        if is_data(path):
            parts[part_of(name)][name.lower()[len(path.as_posix()) - len(path.suffix) :]].append(name)
    return {part: dict(kinds) for part, kinds in parts.items()}


def _with_numbers(name: str) -> list[str | int]:
    return [int(part) if place % 2 else part for place, part in enumerate(_DIGITS.split(name))]


def part_of(name: str) -> str:
    """Return the part to which a file belongs, by its name: `data/train` for `data/train-00000-of-00002.parquet`.
    Files in folders such as `lang=en` are one part, named after the folder that holds those, `.` at the top."""
    path = PurePosixPath(without_suffix(name))
    folders = path.parts[:-1]
    for place, folder in enumerate(folders):
        if _VALUE.fullmatch(folder):
            return "/".join(folders[:place]) or "."
    numbered = _NUMBERED.fullmatch(path.stem)
    stem = numbered[1] if numbered else "part" if _OF_SPARK.fullmatch(path.stem) else path.stem
    return "/".join((*folders, *([stem] if stem else []))) or "."


def check_numbered(names: Sequence[str], where: str) -> None:
    """Raise `UserError` if the numbered files of a part, such as `train-00000-of-00002`, are not all there, or come
    from several sets."""
    by_set: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    shown: dict[tuple[str, str], re.Match[str]] = {}
    for name in names:
        stem = PurePosixPath(without_suffix(name)).with_suffix("").as_posix()
        match = _NUMBERED.fullmatch(stem)
        if match:
            by_set[str(PurePosixPath(name).parent), match[4]].append(int(match[2]))
            shown[str(PurePosixPath(name).parent), match[4]] = match
    for (folder, total), numbers in by_set.items():
        match, count = shown[folder, total], int(total)
        # Most programs count from 0.
        first = 1 if 0 not in numbers and count in numbers else 0
        other = next((key for key in by_set if key[0] == folder and key[1] != total), None)
        if other or len(set(numbers)) < len(numbers) or max(numbers) - first >= count:
            raise UserError(
                f"{where}: {match[0]} is numbered otherwise than the files beside it.", "Keep one set of files."
            )
        missing = next((number for number in range(first, first + count) if number not in numbers), None)
        if missing is not None:
            name = f"{match[0][: match.start(2)]}{missing:0{len(match[2])}}{match[3]}{total}"
            more = count - len(numbers) - 1
            others = f", and {more:,} more" if more else ""
            raise UserError(f"{where}: {name} is missing{others}.", "Copy the whole folder.")


def _saved_part(path: Path, part: str) -> str:
    """Return the folder name of a part of a `DatasetDict` saved by `datasets`."""
    splits = read_json(path / _DICTIONARY).get("splits")
    if not isinstance(splits, list) or not splits or not all(_is_name(split) for split in splits):
        raise UserError(f"{path / _DICTIONARY}: no splits are named.", "Save the dataset again.")
    if part in splits or (len(splits) == 1 and not part):
        return part or str(splits[0])
    shown = ", ".join(splits[:_SHOWN])
    if part:
        raise UserError(f"{path} has no part {part!r:.60}.", f"It has {shown}.")
    raise UserError(f"{path} has {len(splits)} parts: {shown}.", "Name one of them (--part).")


def _saved_files(path: Path) -> list[str]:
    state: Mapping[str, Any] = read_json(path / _STATE)
    files = state.get("_data_files")
    named = files if isinstance(files, list) else []
    names: list[Any] = [entry.get("filename") for entry in named if isinstance(entry, dict)]
    if not names or not all(_is_name(name) for name in names):
        raise UserError(f"{path / _STATE}: no files are named.", "Save the dataset again.")
    missing = [name for name in names if not (path / name).is_file()]
    if missing:
        raise UserError(f"{path}: {missing[0]} is missing.", "Copy the whole folder.")
    return names


def _is_name(value: object) -> bool:
    return isinstance(value, str) and bool(_PLAIN.fullmatch(value)) and value.strip(".") != ""
