"""Importing a file or a folder: first all traces, then evaluators' scores of them."""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from stepsight.core.errors import UserError
from stepsight.core.files.jsonl import open_input
from stepsight.core.files.text_lines import stem_of
from stepsight.core.gone import as_file
from stepsight.storage.database.store import Store
from stepsight.storage.importers import KINDS, find_kind
from stepsight.storage.importers.column_mapping import NAME as COLUMNS
from stepsight.storage.importers.data_files import (
    SUFFIXES,
    DataFiles,
    check_numbered,
    files_below,
    find_data,
    group_files,
    is_data,
    is_hidden,
    is_saved,
    join_files,
    refused_folders,
    shown_names,
    unread_files,
)
from stepsight.storage.importers.doubts import doubtful
from stepsight.storage.importers.inspect_logs import LOG
from stepsight.storage.importers.recognition import BEGINNING, Finding, Holds, recognise
from stepsight.storage.judgments.score_files import import_scores, matching_datasets
from stepsight.storage.traces.imports import import_file, import_table

# Files that hold tables or others in a form that is not read, which their content tells.
_REFUSED = (
    ".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers",
    ".zip", ".7z", ".rar", ".tar", ".tgz", ".bz2", ".xz",
)  # fmt: skip


@dataclass(frozen=True)
class Found:
    """A file, or the files of a part in a folder, with either the recognised content or the error that prevents the
    import. `data` is set for files that are read as one; `path` is then the folder and the name of the part."""

    path: Path
    finding: Finding | None = None
    error: UserError | None = None
    data: DataFiles | None = None


def find_files(path: Path) -> list[Found]:
    """Inspect a file, or every file with a known extension in a folder and its subfolders, and list score files
    last. Numbered files, and those in folders such as `lang=en`, are read as one (see `importers.data_files`).

    If several files would become the same dataset, each gets its own dataset, named after the file. Raises
    `UserError` if there is no file to import.
    """
    if not path.is_dir():
        return [inspect_file(path)]
    names = f"Expected files that end in {', '.join((*SUFFIXES, LOG))}."
    every = sorted(_in_folder(path), key=lambda file: file.path)
    if not every:
        unread = list_unread(path)
        message = f"no file to import; there are {unread}" if unread else "no file to import"
        raise UserError(f"{path}: {message}.", names)
    return sorted(
        _apart(every, path), key=lambda file: file.finding is not None and file.finding.holds == Holds.SCORES
    )


def list_unread(path: Path) -> str:
    """Return the names of the files in a folder that `find_files` leaves out, other than hidden ones and those
    that describe the data."""
    below = files_below(path)
    return shown_names(unread_files(below, [name for name in below if _is_read(PurePosixPath(name))]))


def _in_folder(root: Path) -> Iterator[Found]:
    folders = [path for path in (root, *root.rglob("*")) if path.is_dir() and is_saved(path)]
    refused = {root / name: error for name, error in refused_folders(files_below(root)).items()}
    whole = [
        path for path in (*folders, *refused) if not any(other in path.parents for other in (*folders, *refused))
    ]
    yield from (
        Found(path, error=refused[path].at(path.name)) if path in refused else inspect_file(path) for path in whole
    )
    below = {
        name: file
        for name, file in files_below(root).items()
        if not any(folder in file.parents for folder in whole)
    }
    for part, kinds in group_files(below).items():
        for names in kinds.values():
            yield from _of_part(root, part, names, below)
    others = (name for name in below if not is_data(PurePosixPath(name)) and _is_read(PurePosixPath(name)))
    yield from (inspect_file(below[name]) for name in others)


def _of_part(root: Path, part: str, names: Sequence[str], below: Mapping[str, Path]) -> Iterator[Found]:
    path = root / part
    try:
        check_numbered(names, root.name)
    except UserError as error:
        yield Found(path, error=error)
        return
    first = inspect_file(below[names[0]])
    data = join_files(root, names, below)
    if not data.is_joined or (first.finding and first.finding.holds != Holds.TRACES):
        yield from (first, *(inspect_file(below[name]) for name in names[1:]))
    elif first.finding is None:
        yield replace(first, path=path)
    else:
        # A dataset named after the file is named after the part.
        dataset, stem = first.finding.dataset, stem_of(first.path)
        named = dataset.removesuffix(stem) + path.absolute().name if dataset.endswith(stem) else dataset
        yield Found(path, replace(first.finding, dataset=named), data=data)


def inspect_file(path: Path) -> Found:
    """Recognise what a file contains, or why it cannot be imported."""
    if path.is_dir():
        hint = "Name its columns: stepsight import any FOLDER --fields problem=NAME,steps=NAME"
        return Found(path, error=UserError(f"{path.name}: a folder that datasets saved.", hint))
    try:
        with open_input(path) as file:
            beginning = file.read(BEGINNING)
            file.seek(0)
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            finding = recognise(beginning, file, path.name, sha256)
    except UserError as error:
        return Found(path, error=error)
    if finding.holds == Holds.LABELS:
        hint = "Put them into a campaign: stepsight import labels FILE --campaign NAME --dataset NAME"
        return Found(path, error=UserError(f"{path.name}: labels by people, from {finding.kind}.", hint))
    if finding.kind == COLUMNS and finding.columns and finding.doubts:
        return Found(path, error=doubtful(finding.doubts, finding.columns, path.name))
    if finding.kind == COLUMNS and not (finding.columns and finding.columns.problem and finding.columns.steps):
        unnamed = "Name its columns: stepsight import any FILE --fields problem=NAME,steps=NAME"
        hint = as_file(finding.names) or unnamed
        return Found(path, error=UserError(f"{path.name}: a table with unknown column names.", hint))
    return Found(path, finding)


def _is_read(path: PurePosixPath) -> bool:
    return is_data(path) or (path.suffix.lower() in (LOG, *_REFUSED) and not is_hidden(path))


def import_found(store: Store, file: Found, listings: Path | None = None) -> str:
    """Import a file according to its content and return a sentence that describes the outcome.

    If `listings` is a folder, bad rows are left out and listed in a file in that folder. Raises `UserError` and
    stores nothing if the file cannot be imported.
    """
    if file.error is not None:
        raise file.error
    assert file.finding is not None
    finding, path = file.finding, file.path
    if finding.holds == Holds.SCORES:
        return str(import_scores(store, finding.dataset or _dataset_of(store, path), path, finding.evaluator))
    listing = listings / f"{finding.dataset}.skipped.jsonl" if listings else None
    if file.data is not None and finding.kind != COLUMNS:
        return str(import_table(store, find_kind(finding.kind), file.data, finding.dataset, skipped=listing))
    if finding.columns is not None and finding.kind == COLUMNS:
        data = file.data or find_data(path)
        summary = import_table(store, finding.columns, data, finding.dataset, skipped=listing)
        return " ".join((f"{summary} Read with {finding.columns.as_fields}.", *finding.notes))
    return str(import_file(store, finding.kind, path, finding.dataset, skipped=listing))


def _dataset_of(store: Store, path: Path) -> str:
    """Return the name of the dataset whose traces match the ids and numbers of scores in a score file. Raises
    `UserError` unless exactly one dataset matches."""
    names = matching_datasets(store, path)
    if len(names) == 1:
        return names[0]
    hint = "Name it: stepsight import-scores DATASET FILE --evaluator NAME"
    if not names:
        raise UserError(f"{path.name}: scores that fit no dataset of the store.", hint)
    raise UserError(f"{path.name}: scores that fit {', '.join(names)}.", hint)


def _apart(files: Sequence[Found], root: Path) -> Iterator[Found]:
    """Rename the datasets of files that would otherwise become the same dataset. A renamed dataset gets the name of
    its file, or the path of the file if several files have the same name."""
    named = [_with_name(file, stem_of(file.path.absolute())) for file in files]
    paths = (file.path.relative_to(root) for file in files)
    names = ("-".join((*path.parts[:-1], stem_of(path))) for path in paths)
    placed = [_with_name(file, name) for file, name in zip(files, names, strict=True)]
    plain, by_name = (Counter(map(_dataset, some)) for some in (files, named))
    for file, other, last in zip(files, named, placed, strict=True):
        is_alone = plain[_dataset(file)] == 1 or not _dataset(file)
        yield file if is_alone else other if by_name[_dataset(other)] == 1 else last


def _with_name(file: Found, name: str) -> Found:
    finding = file.finding
    if finding is None or finding.holds != Holds.TRACES:
        return file
    dataset = KINDS[finding.kind].dataset if finding.kind in KINDS else None
    return replace(file, finding=replace(finding, dataset=f"{dataset}-{name}" if dataset else name))


def _dataset(file: Found) -> str:
    finding = file.finding
    return finding.dataset if finding and finding.holds == Holds.TRACES else ""
