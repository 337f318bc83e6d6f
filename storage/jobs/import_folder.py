"""Importing a file or a folder: first all traces, then evaluators' scores of them."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from stepsight.core.errors import UserError
from stepsight.core.files.text_lines import stem_of, without_suffix
from stepsight.storage.database.store import Store
from stepsight.storage.importers import KINDS, find_kind
from stepsight.storage.importers.column_mapping import NAME as COLUMNS
from stepsight.storage.importers.data_files import (
    SUFFIXES,
    DataFiles,
    FolderPart,
    files_below,
    find_data,
    is_hidden,
    list_parts,
    part_files,
    unread_files,
)
from stepsight.storage.importers.inspect_logs import LOG
from stepsight.storage.importers.label_guesses import doubtful
from stepsight.storage.importers.recognition import Finding, Holds
from stepsight.storage.judgments.score_files import import_scores, matching_datasets
from stepsight.storage.traces.imports import import_table

# Files that hold tables, or other data in a form that is not supported, as their content shows.
_REFUSED = (
    ".xlsx", ".xlsm", ".xlsb", ".xls", ".ods", ".numbers",
    ".zip", ".7z", ".rar", ".tar", ".tgz", ".bz2", ".xz",
)  # fmt: skip


@dataclass(frozen=True)
class InspectedFile:
    """A file, or the files of a part of a folder as one, with either the recognised content or the error that
    prevents the import. `path` is that of the file, or the folder and the name of the part."""

    path: Path
    data: DataFiles | None = None
    finding: Finding | None = None
    error: UserError | None = None


def find_files(path: Path) -> tuple[list[InspectedFile], str]:
    """Inspect a file, or every file with a known extension in a folder and its subfolders, and list score files
    last. Numbered files, and those in folders such as `lang=en`, are read as one (see `importers.data_files`). Also
    return the names of the files that are left out, other than hidden ones and those that describe the data.

    If several files would become the same dataset, each gets its own dataset, named after the file. Raises
    `UserError` if there is no file to import.
    """
    if not path.is_dir():
        return [_inspect_file(path)], ""
    below = files_below(path)
    parts = list_parts(below)
    suffixes = (LOG, *_REFUSED)
    others = [name for name in below if name.lower().endswith(suffixes) and not is_hidden(PurePosixPath(name))]
    unread = unread_files(below, {*others, *(name for part in parts for name in part.files)})
    files = [file for part in parts for file in _inspect_part(path, part)]
    files = sorted([*files, *(_inspect_file(path / name) for name in others)], key=lambda file: file.path)
    if not files:
        there_are = f"; there are {unread}" if unread else ""
        expected = f"Expected files that end in {', '.join((*SUFFIXES, LOG))}."
        raise UserError(f"{path}: no file to import{there_are}.", expected)
    return sorted(_rename_equal(files, path), key=lambda file: _holds(file) == Holds.SCORES), unread


def _holds(file: InspectedFile) -> Holds | None:
    return file.finding.holds if file.finding else None


def _inspect_part(root: Path, part: FolderPart) -> list[InspectedFile]:
    path = root / part.name
    if part.error:
        return [InspectedFile(path, error=part.error.at(path.name))]
    # Other parts have the name of their only file.
    is_joined = [str(PurePosixPath(without_suffix(name)).with_suffix("")) for name in part.files] != [part.name]
    if is_joined and _holds(file := _inspect(path, part_files(root, part))) in (None, Holds.TRACES):
        return [file]
    return [_inspect_file(root / name) for name in part.files]


def _inspect_file(path: Path) -> InspectedFile:
    try:
        return _inspect(path, find_data(path))
    except UserError as error:
        return InspectedFile(path, error=error)


def _inspect(path: Path, data: DataFiles) -> InspectedFile:
    """Recognise what a file or part contains, or why it cannot be imported."""
    name = path.absolute().name
    try:
        finding = data.recognise(name)
    except UserError as error:
        return InspectedFile(path, error=error)
    refusal, columns = None, finding.columns
    if finding.holds == Holds.LABELS:
        hint = "Put them into a campaign: stepsight import labels FILE --campaign NAME --dataset NAME"
        refusal = UserError(f"{name}: human labels, from {finding.kind}.", hint)
    elif finding.kind == COLUMNS and columns and finding.doubts:
        refusal = doubtful(finding.doubts, columns, name)
    elif finding.kind == COLUMNS and not (columns and columns.problem and columns.steps):
        unnamed = "Name its columns: stepsight import any FILE --fields problem=NAME,steps=NAME"
        refusal = UserError(f"{name}: a table with unknown column names.", unnamed)
    return InspectedFile(path, error=refusal) if refusal else InspectedFile(path, data, finding)


def import_inspected(store: Store, file: InspectedFile, listings: Path | None = None) -> str:
    """Import a file according to its content and return a sentence that describes the outcome.

    If `listings` is a folder, bad rows are left out and listed in a file in that folder. Raises `UserError` and
    stores nothing if the file cannot be imported.
    """
    if file.error is not None:
        raise file.error
    assert file.finding is not None
    assert file.data is not None
    finding, path = file.finding, file.path
    if finding.holds == Holds.SCORES:
        return str(import_scores(store, finding.dataset or _dataset_of(store, path), path, finding.evaluator))
    listing = listings / f"{finding.dataset}.skipped.jsonl" if listings else None
    columns = finding.columns if finding.kind == COLUMNS else None
    summary = import_table(store, columns or find_kind(finding.kind), file.data, finding.dataset, skipped=listing)
    return " ".join((f"{summary} Read with {columns.as_fields}.", *finding.notes)) if columns else str(summary)


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


def _rename_equal(files: Sequence[InspectedFile], root: Path) -> Iterator[InspectedFile]:
    """Rename the datasets of files that would otherwise become the same dataset. A renamed dataset gets the name of
    its file, or the path of the file if several files have the same name."""
    named = [_with_name(file, stem_of(file.path.absolute())) for file in files]
    paths = (file.path.relative_to(root) for file in files)
    names = ("-".join((*path.parts[:-1], stem_of(path))) for path in paths)
    placed = [_with_name(file, name) for file, name in zip(files, names, strict=True)]
    plain, by_name = (Counter(map(_dataset, group)) for group in (files, named))
    for file, other, last in zip(files, named, placed, strict=True):
        is_alone = plain[_dataset(file)] == 1 or not _dataset(file)
        yield file if is_alone else other if by_name[_dataset(other)] == 1 else last


def _with_name(file: InspectedFile, name: str) -> InspectedFile:
    finding = file.finding
    if finding is None or finding.holds != Holds.TRACES:
        return file
    dataset = KINDS[finding.kind].dataset if finding.kind in KINDS else None
    return replace(file, finding=replace(finding, dataset=f"{dataset}-{name}" if dataset else name))


def _dataset(file: InspectedFile) -> str:
    finding = file.finding
    return finding.dataset if finding and finding.holds == Holds.TRACES else ""
