"""Recognising what a file contains: traces of a known kind, scores, or a table whose columns must be mapped by the
user."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from functools import partial
from itertools import islice
from pathlib import PurePath
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.text_lines import PARQUET, check_beginning, first_sign, is_log, stem_of
from stepsight.core.judgment_record import FORMAT as RECORD
from stepsight.storage.importers import KINDS, THINKING, find_kind, guess_kind, inspect_logs
from stepsight.storage.importers.catalogue import find_file, published_files
from stepsight.storage.importers.column_mapping import NAME as COLUMNS
from stepsight.storage.importers.column_mapping import ColumnMap, column_names, columns_kind, find_value
from stepsight.storage.importers.guesses import guess_columns
from stepsight.storage.importers.label_guesses import Doubt, Guess, steps_in, with_label_form
from stepsight.storage.importers.rows.kind import (
    FileKind,
    Row,
    RowReader,
    check_label_fields,
    json_rows,
    label_source,
)
from stepsight.storage.importers.rows.tables import csv_rows, parquet_rows

BEGINNING = 1 << 18
"""The number of bytes by which a file's container is recognised: at least a block of zstd."""

# The number of rows by which a file is recognised.
_FIRST = 20
# A file with this many bad rows among them is rejected.
_MOST_BAD = 500
_JSON = ("{", "[")
_WORDS = "correctness_pred"
_IMPORTS = "Expected JSON Lines, a JSON array, CSV or Parquet."
_SUFFIXES = re.compile(r"_(?:perturbed_)?eval_results$|_scores$|_results$", re.IGNORECASE)


class Holds(StrEnum):
    TRACES = "traces"
    SCORES = "scores"
    LABELS = "labels"


@dataclass(frozen=True)
class Finding:
    """The recognised content of a file.

    `holds` says whether the file contains traces, scores or human labels. `kind` is the kind of a trace file, or
    the `LabelSource` of labels. For a file that is read as a table, `names` are its column names, `columns` is a
    guess at their meaning, `notes` are sentences about it, and `doubts` are what a person has to decide about it.
    `dataset` and `evaluator` are suggested names, or empty. `known` is True if the hash of the file is in the
    catalogue.
    """

    holds: Holds
    kind: str
    dataset: str
    evaluator: str = ""
    names: tuple[str, ...] = ()
    columns: ColumnMap | None = None
    known: bool = False
    notes: tuple[str, ...] = ()
    doubts: tuple[Doubt, ...] = ()


def find_reader(content: bytes, binary: set[str] | None = None) -> RowReader:
    """Return the function that reads the rows of a file, compressed or not, chosen by the file's first bytes.

    It adds the names of binary columns, which are left out, to `binary`.
    """
    if is_log(content):
        return inspect_logs.log_rows
    if content.startswith(PARQUET):
        return partial(parquet_rows, binary=binary)
    return json_rows if first_sign(content) in _JSON else csv_rows


def recognise(
    beginning: bytes,
    lines: Iterable[bytes],
    name: str,
    sha256: str = "",
    chosen: ColumnMap | None = None,
    reader: RowReader | None = None,
) -> Finding:
    """Recognise what a file contains: by its hash if the catalogue lists it, and otherwise by its first rows.

    `beginning` holds the first bytes of the file and `lines` all of its lines, unless `reader` reads the rows from
    elsewhere. `chosen` are the columns that a person chose in place of a guess; if their labels have no form, it is
    inferred from the values. Raises `UserError` if the file cannot be imported or its first rows cannot be read.
    """
    if not beginning.strip():
        raise UserError(f"{name}: the file is empty.", "Check the file.")
    if reader is None:
        check_beginning(beginning, name)
        reader = find_reader(beginning)
    rows = _first_rows(reader, lines, name)
    of_json = is_log(beginning) or first_sign(beginning) in _JSON
    finding = _recognise_rows(rows, name, of_json=of_json)
    if chosen is not None:
        finding = _with_chosen(finding, chosen, rows)
    published = find_file(sha256)
    if published is None:
        return finding
    benchmark, score = published
    return replace(
        finding,
        holds=Holds.SCORES if score else Holds.TRACES,
        kind="" if score else benchmark.kind,
        dataset=benchmark.dataset,
        evaluator=score.evaluator if score else "",
        known=True,
    )


def _with_chosen(finding: Finding, chosen: ColumnMap, rows: Sequence[Row]) -> Finding:
    """Return a finding with columns that a person chose. In doubt are those that have to be chosen and are not."""
    notes: tuple[str, ...] = ()
    if chosen.labels and not chosen.labels_as:
        chosen, notes = with_label_form(chosen, rows)
    missing = [name for name in ("problem", "steps") if not getattr(chosen, name)]
    doubts = tuple(doubt for doubt in finding.doubts if doubt.about in missing)
    return replace(finding, columns=chosen, notes=notes, doubts=doubts)


def kind_of(finding_kind: str, columns: ColumnMap | None, beginning: bytes) -> FileKind:
    """Return a file kind for reading the file. `finding_kind` is the kind that was recognised, and `beginning`
    holds the first bytes of the file. Kinds other than tables use only the treatment of thoughts in `columns`.

    Raises `UserError` if the file is a table and `columns` is None.
    """
    if finding_kind != COLUMNS:
        return find_kind(finding_kind, columns.thoughts if columns and finding_kind in THINKING else "")
    if columns is None:
        raise UserError("The columns are not named.", "Choose those of the problem and the steps.")
    binary: set[str] = set()
    return columns_kind(columns, find_reader(beginning, binary), binary)


def _first_rows(reader: RowReader, lines: Iterable[bytes], name: str) -> list[Row]:
    first: UserError | None = None
    bad = 0

    def note(where: str, error: UserError, content: bytes) -> None:
        nonlocal first, bad
        first, bad = first or error, bad + 1
        if bad > _MOST_BAD:
            raise first

    rows = [row for _, row in islice(reader(lines, name, note), _FIRST)]
    if not rows:
        raise first or UserError(f"{name}: no row found.", _IMPORTS)
    return rows


def _recognise_rows(rows: Sequence[Row], name: str, *, of_json: bool) -> Finding:
    stem = stem_of(PurePath(name))
    names = tuple(column_names(rows))
    guess = guess_columns(names, rows)
    columns = guess.columns
    of_table: dict[str, Any] = {
        "names": names,
        "columns": columns,
        "notes": guess.notes,
        "doubts": guess.doubts,
    }
    check_label_fields(rows[0], name)
    source = label_source(rows[0]) if of_json else None
    if source is not None:
        places = (*map(rows[0].get, ("data", "metadata", "campaign")), rows[0])
        named = (about["dataset"] for about in places if isinstance(about, dict) and "dataset" in about)
        return Finding(Holds.LABELS, source, next((name for name in named if isinstance(name, str)), ""))
    # A table has the field names of a kind only by chance, and never its lists.
    kind = guess_kind(rows[0]) if of_json else None
    if kind is not None and KINDS[kind].gives_way(rows, asdict(columns)):
        kind = None
    if kind is not None:
        dataset = KINDS[kind].dataset or stem
        # For example a part for training and a part for testing.
        in_parts = (part := stem.removeprefix(dataset).strip("-_")) and len(published_files(kind)) > 1
        return Finding(Holds.TRACES, kind, f"{dataset}-{part}" if in_parts else dataset, **of_table)
    if of_json and rows[0].get("format") == RECORD:
        return Finding(Holds.SCORES, "", "", str(rows[0].get("evaluator", stem)))
    if of_json and _is_scores(rows[0], guess):
        return Finding(Holds.SCORES, "", "", _SUFFIXES.sub("", stem) or stem)
    return Finding(Holds.TRACES, COLUMNS, stem, **of_table)


def _is_scores(row: Row, guess: Guess) -> bool:
    """True if a row holds scores. Beside a problem and solutions, which files of evaluations have, these must be as
    many as the solution has steps."""
    if any(isinstance(value, dict) and _WORDS in value for value in (row, *row.values())):
        return True
    columns = guess.columns
    if not columns.problem or not (columns.steps or guess.doubts):
        score_fields = {name for kind in KINDS.values() for name in kind.score_fields}
        return not {"scores", *score_fields}.isdisjoint(row)
    steps = steps_in(find_value(row, columns.steps)) if columns.steps else None
    return steps is not None and isinstance(scores := row.get("scores"), list) and len(scores) == len(steps)
