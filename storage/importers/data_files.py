"""Reading all files of a dataset as one table, from a file, a part of a folder or a dataset on a hub.

Files numbered like `data/train-00000-of-00002.parquet`, or as Spark does, `part-00000-….parquet`, form one part,
called `data/train`, `train` or `part`. So do the files in folders such as `lang=en/level=3`, whose values are
columns of their rows, and those that `datasets` saved to disk, which are called like their folder. Rows are
numbered across all files of a part, as in `datasets`, but from 1.
"""

import hashlib
import os
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

from stepsight.core.errors import UserError
from stepsight.core.files.arrow import arrow_batches, is_arrow, parquet_batches
from stepsight.core.files.jsonl import open_input
from stepsight.core.files.text_lines import COMPRESSED, PARQUET, check_beginning, stem_of, without_suffix
from stepsight.core.files.whole_files import read_bytes
from stepsight.core.files.yaml_files import parse_yaml
from stepsight.storage.importers.column_mapping import ColumnMap, columns_kind
from stepsight.storage.importers.recognition import BEGINNING, Finding, find_reader, recognise
from stepsight.storage.importers.rows.kind import FileKind, OnBad, Rows
from stepsight.storage.importers.rows.tables import table_rows

SUFFIXES = (".parquet", ".arrow", ".jsonl", ".ndjson", ".json", ".csv", ".tsv")
# If the same file occurs twice, the first one is read.
_ENDINGS = (*SUFFIXES, *(suffix + compressed for suffix in SUFFIXES for compressed in COMPRESSED))
_STATE = "state.json"
_ABOUT = (_STATE, "dataset_dict.json", "dataset_info.json", "dataset_infos.json", "croissant.json")
# The names of numbered files without suffix, including what hubs used to add, and those of Spark's files.
_NUMBERED = re.compile(r"(.*?)[-_.]?(\d{1,9})([-_]of[-_])(\d{1,9})(?:-[0-9a-f]{8,64})?")
_DIGITS = re.compile(r"([0-9]{1,20})")
_OF_SPARK = re.compile(r"part-\d{5}(?:-.*)?")
_VALUE = re.compile(r"([^\W\d][\w.-]*)=(.*)")
_SUCCESS, _UNFINISHED = "_SUCCESS", "_temporary"
_LOGS = {"_delta_log": "Delta", ".hoodie": "Hudi"}
_DESCRIBING = re.compile(r"(?:README|LICEN[CS]E|CITATION|NOTICE)\b.*|_[^.]*", re.IGNORECASE)
_LEFT_BEHIND = ("__MACOSX", "__pycache__", _UNFINISHED)
# What `datasets` stores beside a saved dataset that was changed.
_CACHE = re.compile(r"cache-[0-9a-f]+\.arrow")
_NOT_FINISHED = f"There is no {_SUCCESS}: the job that wrote these files may not have ended."
_SHOWN = 12
# Hive's word for a missing value.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_CARD = "README.md"
_LARGEST_CARD = 1_000_000
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")


@dataclass(frozen=True)
class FolderPart:
    """The names of the files of a folder that are read as one table, in order, and sentences about them. `error` is
    the reason if they cannot be read; without files, it is the reason why the folder `name` cannot be."""

    name: str
    files: tuple[str, ...] = ()
    error: UserError | None = None
    notes: tuple[str, ...] = ()


class DataFiles:
    """The files of one dataset, by their names relative to its folder, as a source for `storage.traces.imports`.

    `name` is used in messages, and `file_name` is the name that the store records. `kind()` returns the matching
    file kind. `notes` are sentences about the folder. `expected` is the number of rows that a file in it says it
    has, with the name of that file.
    """

    def __init__(
        self,
        name: str,
        files: Mapping[str, Path],
        file_name: str = "",
        notes: Sequence[str] = (),
        expected: tuple[int, str] | None = None,
        sha256: str | None = None,
    ) -> None:
        # Databases accept only text.
        plain_name = os.fsencode(PurePosixPath(name).name).decode("utf-8", "replace")
        self.name, self.file_name = name, file_name or plain_name
        self._files = files
        self._sizes = [path.stat().st_size for path in files.values()]
        self._read = 0
        self._digests: list[bytes] = []
        self._binary: set[str] = set()
        self._notes, self._expected, self._count = tuple(notes), expected, 0
        self._bad, self._sha256 = 0, sha256

    def kind(self, content: ColumnMap | FileKind) -> FileKind:
        """Return a file kind that reads these files with a column mapping, or whose rows are of another kind."""
        kind = columns_kind(content, self._rows, self._binary) if isinstance(content, ColumnMap) else content

        def notes() -> tuple[str, ...]:
            expected, source = self._expected or (self._count, "")
            differs = f"{source} says that there are {expected:,} rows; {self._count:,} are there."
            return (*kind.notes(), *self._notes, *([differs] if expected != self._count else []))

        return replace(kind, reader=self._rows, notes=notes)

    def recognise(self, name: str) -> Finding:
        """Recognise what the files contain. Raises `UserError`, calling them `name`, if they cannot be imported or
        their first rows cannot be read."""
        with open_input(next(iter(self._files.values()))) as content:
            beginning = content.read(BEGINNING)
            content.seek(0)
            sha256 = hashlib.file_digest(content, "sha256").hexdigest()
        return recognise(beginning, (), name, sha256 if len(self._files) == 1 else "", reader=self._rows)

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
        """The hash of the file or, of several files, that of their hashes, unless the index of them has one."""
        if self._sha256 is not None:
            return self._sha256
        joined = b"".join(self._digests)
        return joined.hex() if len(self._files) == 1 else hashlib.sha256(joined).hexdigest()

    def _rows(self, lines: Iterable[bytes], name: str, on_bad: OnBad | None = None, /) -> Rows:
        self._digests.clear()
        self._read = self._bad = number = 0
        for (file, path), size in zip(self._files.items(), self._sizes, strict=True):
            with open(path, "rb") as content:
                self._digests.append(hashlib.file_digest(content, "sha256").digest())
            pairs = [match.groups() for folder in Path(file).parts[:-1] if (match := _VALUE.fullmatch(folder))]
            values = {key: None if value == _NO_VALUE else unquote(value) for key, value in pairs}
            for where, row in self._rows_of(file, path, name, on_bad):
                number += 1
                row = {**values, **row} if values else row
                yield (where if len(self._files) == 1 else f"{name} row {number}"), row
            self._read += size
            self._count = number + self._bad

    def _rows_of(self, file: str, path: Path, name: str, on_bad: OnBad | None) -> Rows:
        def note(where: str, error: UserError, content: bytes) -> None:
            assert on_bad is not None
            self._bad += 1
            on_bad(where, error if len(self._files) == 1 else error.at(file), content)

        with open_input(path) as lines:
            beginning = lines.read(BEGINNING)
            lines.seek(0)
            if is_arrow(beginning):
                yield from table_rows(arrow_batches(path), name, "Arrow", self._binary)
            elif beginning.startswith(PARQUET):
                yield from table_rows(parquet_batches(path), name, "Parquet", self._binary)
            else:
                check_beginning(beginning, file)
                yield from find_reader(beginning)(lines, name, note if on_bad else None)


def is_hub_id(text: str) -> bool:
    """True if a text looks like the `OWNER/NAME` of a hub dataset rather than a file name."""
    return bool(_HUB_ID.fullmatch(text)) and not without_suffix(text).lower().endswith(SUFFIXES)


def find_data(path: Path, part: str = "") -> DataFiles:
    """Return the data at a path: a single file, or the files of one part of a folder.

    `part` may be empty if the folder has only one part. Raises `UserError` if the file does not exist, and in the
    same cases as `choose_part`.
    """
    if not path.is_dir():
        with open_input(path):
            return DataFiles(str(path), {path.name: path})
    return part_files(path, choose_part(files_below(path), str(path), part))


def part_files(path: Path, part: FolderPart) -> DataFiles:
    """Return the files of a part of a folder, with the notes that they give rise to."""
    files = {name: path / name for name in part.files}
    return DataFiles(str(path), files, notes=part.notes, expected=_expected_rows(path, part.name))


def files_below(path: Path) -> list[str]:
    """Return the names of all files below a folder, relative to it."""
    return [file.relative_to(path).as_posix() for file in sorted(path.rglob("*")) if file.is_file()]


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
        # A card is written by people, and may say anything.
        return None
    *folders, name = part.split("/")
    fitting = [choice for choice in splits if choice[1] == name]
    if len(fitting) > 1:
        fitting = [choice for choice in fitting if choice[0] in folders]
    counts = {count for _, _, count in fitting if type(count) is int}
    return (counts.pop(), card.name) if len(counts) == 1 else None


def fetch_data(repo: str, revision: str = "", part: str = "") -> DataFiles:
    """Return the files of one part of a hub dataset, downloading the files that are not in the hub client's cache.

    The store records the files as `OWNER/NAME@COMMIT`. Raises `UserError` if the dataset or revision does not
    exist, if the hub refuses access or cannot be reached, if the disk has no room for the files, and in the same
    cases as `choose_part`.
    """
    # Most datasets come from files, for which the hub's client is not loaded.
    from stepsight.core.hubs.hub_download import fetch_dataset

    commit, files = fetch_dataset(repo, revision, lambda names: choose_part(names, repo, part).files)
    return DataFiles(repo, files, f"{repo}@{commit}")


def list_parts(names: Iterable[str]) -> list[FolderPart]:
    """Return the parts of a folder with files of these names, in order. Files with the same name and different
    suffixes are separate parts, the preferred suffix first."""
    paths = {name: PurePosixPath(without_suffix(name)) for name in sorted(names, key=_with_numbers)}
    refused = _find_refused_folders(paths.values())
    saved = {path.parent for path in paths.values() if path.name == _STATE}
    groups: defaultdict[str, defaultdict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
    for name, path in paths.items():
        if is_data(path) and refused.keys().isdisjoint(path.parents):
            ending = name.lower()[len(path.as_posix()) - len(path.suffix) :]
            groups[_part_of(path, saved)][_ENDINGS.index(ending)].append(name)
    is_finished = any(path.name == _SUCCESS for path in paths.values())
    parts = [FolderPart(str(folder), error=error) for folder, error in refused.items()]
    for part, by_ending in groups.items():
        for _, files in sorted(by_ending.items()):
            of_spark = any(_OF_SPARK.fullmatch(paths[name].stem) for name in files)
            notes = () if is_finished or not of_spark else (_NOT_FINISHED,)
            parts.append(FolderPart(part, tuple(files), _numbering_error(files), notes))
    return parts


def choose_part(names: Iterable[str], where: str, part: str = "") -> FolderPart:
    """Return a part of the folder or hub dataset `where`, with a note on the files that are not read. `part` may be
    empty if there is only one.

    Raises `UserError` if there is no such part, if there are several and `part` names none, if a numbered file is
    missing, or if the folder says that its files are not all that count.
    """
    names = list(names)
    parts = list_parts(names)
    for refused in parts:
        if refused.error and not refused.files:
            raise refused.error.at(str(PurePosixPath(where, refused.name)))
    chosen = [choice for choice in parts if part in ("", choice.name) or choice.name.endswith(f"/{part}")]
    part_names = list(dict.fromkeys(choice.name for choice in parts))
    if not part_names:
        unread = unread_files(names)
        others = f"; there are {unread}" if unread else ""
        raise UserError(f"{where}: no data file{others}.", f"Expected files that end in {', '.join(SUFFIXES)}.")
    shown = ", ".join(part_names[:_SHOWN]) + (", …" if len(part_names) > _SHOWN else "")
    if not chosen:
        raise UserError(f"{where} has no part {part!r:.60}.", f"It has {shown}.")
    if len({choice.name for choice in chosen}) > 1:
        raise UserError(f"{where} has {len(part_names)} parts: {shown}.", "Name one of them (--part).")
    first = chosen[0]
    if first.error:
        raise first.error.at(where)
    unread = unread_files(names, {name for other in parts if other not in chosen[1:] for name in other.files})
    return replace(first, notes=(*([f"Not read: {unread}."] if unread else ()), *first.notes))


def unread_files(names: Iterable[str], read: Collection[str] = ()) -> str:
    """Return the first names of the files that are neither among those that are `read`, nor hidden, nor about the
    data, or "" if there are none."""
    unread = [
        name
        for name in names
        if name not in read and not is_hidden(path := PurePosixPath(name))
        if path.name not in _ABOUT and not _DESCRIBING.fullmatch(path.name)
    ]
    rest = f" and {len(unread) - _SHOWN:,} others" if len(unread) > _SHOWN else ""
    return ", ".join(unread[:_SHOWN]) + rest


def is_data(path: PurePosixPath) -> bool:
    """True if a file, given relative to the folder that is imported and without a compression suffix, has the
    suffix of a data file, and is neither hidden nor a description of the data."""
    return path.suffix.lower() in SUFFIXES and path.name not in _ABOUT and not is_hidden(path)


def is_hidden(path: PurePosixPath) -> bool:
    """True if a file, given relative to the folder that is imported, is hidden or in a folder that is, such as the
    leftovers of notebooks, hub clients and archives."""
    left_behind = any(part.startswith(".") or part in _LEFT_BEHIND for part in path.parts)
    return left_behind or _CACHE.fullmatch(path.name) is not None


def _find_refused_folders(paths: Collection[PurePosixPath]) -> dict[PurePosixPath, UserError]:
    """Return the folders of these files that are not read, with the reasons: tables whose log says which of their
    files count, and results of jobs that have not ended."""
    finished = {path.parent for path in paths if path.name == _SUCCESS}
    refused: dict[PurePosixPath, UserError] = {}
    for path in paths:
        for inner in path.parents:
            folder, name = inner.parent, inner.name
            if name in _LOGS:
                what = f"a table of {_LOGS[name]}, whose log says which of its files count."
                refused[folder] = UserError(what, "Write its rows as Parquet.")
            elif name == _UNFINISHED and folder not in finished:
                what = f"{name} is there and {_SUCCESS} is not: the job that writes it has not ended."
                refused[folder] = UserError(what, "Wait for it, or run it again.")
    return {folder: error for folder, error in refused.items() if refused.keys().isdisjoint(folder.parents)}


def _with_numbers(name: str) -> list[str | int]:
    return [int(part) if place % 2 else part for place, part in enumerate(_DIGITS.split(name))]


def _part_of(path: PurePosixPath, saved: Collection[PurePosixPath]) -> str:
    """Return the part to which a file belongs: `data/train` for `data/train-00000-of-00002`. Files in folders such
    as `lang=en` are one part, named after the folder that holds those, `.` at the top, and so are those in the
    folders of `saved` datasets."""
    folders = path.parts[:-1]
    for place, folder in enumerate(folders):
        if _VALUE.fullmatch(folder):
            return "/".join(folders[:place]) or "."
    if path.parent in saved:
        return str(path.parent)
    numbered = _NUMBERED.fullmatch(path.stem)
    stem = numbered[1] if numbered else "part" if _OF_SPARK.fullmatch(path.stem) else path.stem
    return "/".join((*folders, *([stem] if stem else []))) or "."


def _numbering_error(names: Sequence[str]) -> UserError | None:
    """Return what is wrong if the numbered files of a part, such as `train-00000-of-00002`, are incomplete, or come
    from several sets."""
    sets: defaultdict[tuple[str, str], list[re.Match[str]]] = defaultdict(list)
    for name in names:
        path = PurePosixPath(without_suffix(name)).with_suffix("")
        if match := _NUMBERED.fullmatch(path.as_posix()):
            sets[str(path.parent), match[4]].append(match)
    for (folder, total), matches in sets.items():
        match, numbers, count = matches[-1], {int(match[2]) for match in matches}, int(total)
        # Most programs count from 0.
        first = 1 if 0 not in numbers and count in numbers else 0
        other = any(key != (folder, total) and key[0] == folder for key in sets)
        if other or len(numbers) < len(matches) or max(numbers) - first >= count:
            message = f"{match[0]} is numbered otherwise than the files beside it."
            return UserError(message, "Keep one set of files.")
        missing = next((number for number in range(first, first + count) if number not in numbers), None)
        if missing is not None:
            name = f"{match[0][: match.start(2)]}{missing:0{len(match[2])}}{match[3]}{total}"
            rest = f", and {count - len(numbers) - 1:,} more" if count - len(numbers) > 1 else ""
            return UserError(f"{name} is missing{rest}.", "Copy the whole folder.")
    return None
