"""Importing a file or a folder: first all traces, then evaluators' scores of them."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from stepsight.core.errors import UserError
from stepsight.core.files.jsonl import open_input
from stepsight.core.files.text_lines import stem_of
from stepsight.storage.database.store import Store
from stepsight.storage.importers import KINDS
from stepsight.storage.importers.agents.inspect_logs import LOG
from stepsight.storage.importers.column_mapping import NAME as COLUMNS
from stepsight.storage.importers.data_files import SUFFIXES, find_data, is_data, is_hidden, is_saved
from stepsight.storage.importers.doubts import doubtful
from stepsight.storage.importers.recognition import BEGINNING, Finding, Holds, recognise
from stepsight.storage.judgments.score_files import import_scores, matching_datasets
from stepsight.storage.traces.imports import import_file, import_table


@dataclass(frozen=True)
class Found:
    """A file with either its recognised content or the error that prevents its import."""

    path: Path
    finding: Finding | None = None
    error: UserError | None = None


def find_files(path: Path) -> list[Found]:
    """Inspect a file, or every file with a known extension in a folder and its subfolders, and list score files
    last.

    If several files would become the same dataset, each gets its own dataset, named after the file. Raises
    `UserError` if there is no file to import.
    """
    if path.is_dir():
        folders = [one for one in (path, *path.rglob("*")) if one.is_dir() and is_saved(one)]
        saved = [one for one in folders if not any(other in one.parents for other in folders)]
        files = sorted(one for one in path.rglob("*") if _is_read(_below(one, path)) and one.is_file())
        paths = [*saved, *(one for one in files if not any(folder in one.parents for folder in saved))]
    else:
        paths = [path]
    if not paths:
        raise UserError(f"{path}: no file to import.", f"Expected files that end in {', '.join((*SUFFIXES, LOG))}.")
    found = _apart([inspect_file(one) for one in paths], path if path.is_dir() else path.parent)
    return sorted(found, key=lambda one: one.finding is not None and one.finding.holds == Holds.SCORES)


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
    columns = finding.columns
    if finding.kind == COLUMNS and columns and finding.doubts:
        return Found(path, error=doubtful(finding.doubts, columns, path.name))
    if finding.kind == COLUMNS and not (columns and columns.problem and columns.steps):
        hint = "Name its columns: stepsight import any FILE --fields problem=NAME,steps=NAME"
        return Found(path, error=UserError(f"{path.name}: a table with unknown column names.", hint))
    return Found(path, finding)


def _is_read(path: PurePosixPath) -> bool:
    return is_data(path) or (path.suffix.lower() == LOG and not is_hidden(path))


def _below(path: Path, root: Path) -> PurePosixPath:
    return PurePosixPath(path.relative_to(root).as_posix())


def import_found(store: Store, found: Found, listings: Path | None = None) -> str:
    """Import a file according to its content and return a sentence that describes the outcome.

    If `listings` is a folder, bad rows are left out and listed in a file in that folder. Raises `UserError` and
    stores nothing if the file cannot be imported.
    """
    if found.error is not None:
        raise found.error
    assert found.finding is not None
    finding, path = found.finding, found.path
    if finding.holds == Holds.SCORES:
        return str(import_scores(store, finding.dataset or _dataset_of(store, path), path, finding.evaluator))
    listing = listings / f"{finding.dataset}.skipped.jsonl" if listings else None
    if finding.columns is not None and finding.kind == COLUMNS:
        summary = import_table(store, finding.columns, find_data(path), finding.dataset, skipped=listing)
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


def _apart(files: list[Found], root: Path) -> Iterator[Found]:
    """Rename the datasets of files that would otherwise become the same dataset. A renamed dataset gets the name of
    its file, or the path of the file if several files have the same name."""
    named = [_with_name(one, stem_of(one.path)) for one in files]
    paths = (one.path.relative_to(root) for one in files)
    by_path = [
        _with_name(one, "-".join((*path.parts[:-1], stem_of(path)))) for one, path in zip(files, paths, strict=True)
    ]
    plain, by_name = _datasets(files), _datasets(named)
    for one, other, last in zip(files, named, by_path, strict=True):
        is_alone = plain[_dataset(one)] == 1 or not _dataset(one)
        yield one if is_alone else other if by_name[_dataset(other)] == 1 else last


def _with_name(found: Found, name: str) -> Found:
    finding = found.finding
    if finding is None or finding.holds != Holds.TRACES:
        return found
    dataset = KINDS[finding.kind].dataset if finding.kind in KINDS else None
    return replace(found, finding=replace(finding, dataset=f"{dataset}-{name}" if dataset else name))


def _datasets(files: list[Found]) -> Counter[str]:
    return Counter(_dataset(one) for one in files)


def _dataset(found: Found) -> str:
    """Return the dataset name that a trace file gets on import, or "" for any other file."""
    finding = found.finding
    return finding.dataset if finding and finding.holds == Holds.TRACES else ""
