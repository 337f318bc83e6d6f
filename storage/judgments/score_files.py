"""Importing score files as judgments. The evaluator that gave the scores does not have to run in StepSight."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError, counted, located
from stepsight.core.evaluator_summary import CAUSAL, OWN_READING, split_reading
from stepsight.core.evidence import LeaveOneOut
from stepsight.core.files.jsonl import open_input
from stepsight.core.files.text_lines import unpacked
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Outputs
from stepsight.storage.database.schema import EvaluatorRow, JudgedRow, check_name
from stepsight.storage.database.store import Store
from stepsight.storage.importers.catalogue import find_file
from stepsight.storage.importers.rows.kind import json_rows
from stepsight.storage.judgments.evaluators import StoredEvaluator, add_evaluator, amend_evaluator
from stepsight.storage.judgments.judgments import save_together
from stepsight.storage.judgments.left_outs import add_left_out
from stepsight.storage.judgments.published_scores import PublishedScores, merged, parse_scores, score_rows
from stepsight.storage.traces.queries import (
    Dataset,
    StoredTrace,
    find_dataset,
    iterate_named,
    list_datasets,
    list_ids,
)

FORMAT = "imported"
UNKNOWN = "unknown"
"""The attention of an evaluator that is only known by its scores."""
# Scores that differ by less count as the same: in half precision they depend a little on the rest of a batch.
_STILL = 0.01
_NAMED = 5
# Recorded as a property of an evaluator once a later step has changed the score of an earlier one.
_CHANGES = "changes_earlier"

Located = tuple[str, PublishedScores]


@dataclass(frozen=True)
class ScoreSummary:
    """The outcome of importing a score file.

    `matched` is the number of traces that got a judgment. `by` says how they were matched: by "id" or "position".
    `rows_left` lists the rows that match no trace, and `traces_left` the traces that match no row.
    """

    dataset: str
    evaluator: str
    outputs: Outputs
    matched: int
    by: str
    rows_left: tuple[str, ...]
    traces_left: tuple[str, ...]

    def __str__(self) -> str:
        parts = [f"{self.evaluator} on {self.dataset}: {counted(self.matched, 'trace')}, matched by {self.by}"]
        for names, singular, plural in (
            (self.rows_left, "row of the file matches no trace", "rows of the file match no trace"),
            (self.traces_left, "trace has no scores", "traces have no scores"),
        ):
            if names:
                more = ", …" if len(names) > _NAMED else ""
                what = singular if len(names) == 1 else plural
                parts.append(f"{len(names):,} {what} ({', '.join(names[:_NAMED])}{more})")
        return "; ".join(parts) + "."


def import_scores(
    store: Store, dataset: str, path: str | Path, evaluator: str | None = None, mode: Mode = Mode.OFFLINE
) -> ScoreSummary:
    """Store all scores in a file as judgments of a dataset's traces by `evaluator`.

    A file written by `stepsight score` names its own evaluator and mode, in which case `evaluator` only renames the
    evaluator. The hash of a published file identifies its evaluator.

    Rows are matched to traces by id if the file contains ids of the dataset. If it has no ids, or its ids merely
    number the rows, rows are matched by position, provided that there are as many rows as traces. Importing the
    same file again changes nothing.

    Raises `UserError` and stores nothing if a row is bad, if the number of scores in a row differs from the number
    of sub-steps of its trace, if no row matches a trace, or if the evaluator with this name already has different
    scores for this dataset.
    """
    with open_input(path) as file:
        return import_score_lines(store, dataset, file, str(path), evaluator, mode)


def import_score_lines(
    store: Store, dataset: str, lines: Iterable[bytes], name: str, evaluator: str | None, mode: Mode = Mode.OFFLINE
) -> ScoreSummary:
    """Like `import_scores`, but from the lines of a file. `name` is the file name for messages."""
    target = find_dataset(store, dataset)
    rows, sha256 = read_scores(lines, name)
    if evaluator is None:
        _, published = find_file(sha256) or (None, None)
        evaluator = rows[0][1].evaluator or (published.evaluator if published else None)
    if evaluator is None:
        raise UserError(f"{name}: the file does not name its evaluator.", "Name it (--evaluator).")
    check_name(evaluator, "the name of the evaluator")
    outputs = outputs_of(rows)
    matches, summary = _match(list_ids(store, target.id), rows, name, target, evaluator, outputs)
    on_redundancy = any(verdict.on_redundancy for _, verdict in rows)
    # Files of judgment records are complete; others may add to the stored scores.
    is_addition = any(scores.left_out and scores.recorded is None for _, scores in rows)
    with store.write(bulk=True) as session:
        row = _register(session, evaluator, outputs, name)
        if not is_addition:
            is_there = session.get(JudgedRow, (target.id, row.id)) is not None
            if is_there and row.info.get("files", {}).get(target.name, sha256) != sha256:
                raise UserError(
                    f"{name}: {row.name!r} already has different scores for {target.name}.",
                    "Give another name (--evaluator).",
                )
            amend_evaluator(session, row.id, {"files": dict(row.info.get("files", {})) | {target.name: sha256}})
        seen = _AttentionSeen()
        _save_left_out(session, row, store, target.id, matches, seen)
        judgments = _judgments(iterate_named(store, target.id, matches), matches, mode, on_redundancy)
        save_together(session, row.id, map(seen.noted, judgments))
        _save_attention(session, row, seen)
    return summary


def matching_datasets(store: Store, path: str | Path) -> list[str]:
    """Return the names of the datasets that a score file may belong to. These are the datasets in which every row
    of the file has a trace with as many sub-steps as the row has scores. Raises `UserError` if a row is bad."""
    with open_input(path) as file:
        return datasets_of(store, read_scores(file, str(path))[0])


def datasets_of(store: Store, rows: list[Located], count: int = 0) -> list[str]:
    """Like `matching_datasets`, but for rows that have already been parsed. If they are the first rows of a file,
    `count` is the number of all of its rows."""
    datasets = (dataset for dataset in list_datasets(store) if count <= dataset.traces)
    return [dataset.name for dataset in datasets if _fits(store, dataset, rows)]


def _fits(store: Store, dataset: Dataset, rows: list[Located]) -> bool:
    if len(rows) > dataset.traces:
        return False
    try:
        outputs = outputs_of(rows)
        matches, summary = _match(list_ids(store, dataset.id), rows, "the file", dataset, "", outputs)
        for trace in iterate_named(store, dataset.id, matches):
            matches[trace.id][1].scores(trace)
    except UserError:
        return False
    return not summary.rows_left


def read_scores(
    lines: Iterable[bytes], name: str, see: Callable[[Any], object] = lambda row: None
) -> tuple[list[Located], str]:
    """Parse a score file and return its (where, row) pairs and its SHA-256, that of the unpacked content if it is
    compressed. `name` is the file name for messages. `see` is called with the JSON of each row.

    Raises `UserError` if a row is bad or the file has no rows.
    """
    digest = hashlib.sha256()

    def hashed() -> Iterator[bytes]:
        for line in unpacked(lines, name):
            digest.update(line)
            yield line

    rows: list[Located] = []
    left_out: dict[str | None, int] = {}
    all_scores = ((where, scores_row) for where, row in json_rows(hashed(), name) for scores_row in score_rows(row))
    for where, row in all_scores:
        see(row)
        with located(where):
            scores = parse_scores(row)
            if scores.left_out and scores.id in left_out:
                place = left_out[scores.id]
                rows[place] = rows[place][0], merged(rows[place][1], scores)
                continue
        if scores.left_out:
            left_out[scores.id] = len(rows)
        rows.append((where, scores))
    if not rows:
        raise UserError(f"{name}: no row found, the file is empty.", "Check the path.")
    return rows, digest.hexdigest()


def outputs_of(rows: Sequence[Located]) -> Outputs:
    """Return the kind of scores that all rows have. Raises `UserError` if the rows differ in their kind of scores
    or their evaluator, or if only some of them have an id or a left-out step."""
    (_, first), *_ = rows
    for where, row in rows:
        if row.outputs != first.outputs:
            raise UserError(
                f"{where}: a row of kind {row.outputs}, but the first is of kind {first.outputs}.",
                "Use one kind per file.",
            )
        if row.evaluator != first.evaluator:
            raise UserError(
                f"{where}: a row of {row.evaluator}, but the first is of {first.evaluator}.",
                "Use one evaluator per file.",
            )
        if row.recorded is None and bool(row.left_out) != bool(first.left_out):
            raise UserError(f"{where}: some rows leave a step out, others do not.", "Use one kind per file.")
        if (row.id is None) != (first.id is None):
            has = ("an id", "none") if first.id is None else ("no id", "one")
            raise UserError(f"{where}: {has[0]}, but the first row has {has[1]}.", "Give every row an id, or none.")
    return first.outputs


def _match(
    ids: Sequence[str], rows: list[Located], path: str, dataset: Dataset, evaluator: str, outputs: Outputs
) -> tuple[dict[str, Located], ScoreSummary]:
    named, existing = _rows_by_id(rows), set(ids)
    if named.keys() & existing:
        matches = {id: named[id] for id in ids if id in named}
        rows_left = tuple(id for id in named if id not in existing)
        traces_left = tuple(id for id in ids if id not in named)
        return matches, ScoreSummary(dataset.name, evaluator, outputs, len(matches), "id", rows_left, traces_left)
    # Ids that merely number the rows from 0 or 1 say no more than their order.
    numbers = [[str(number + start) for number in range(len(rows))] for start in (0, 1)]
    if named and [row.id for _, row in rows] not in numbers:
        raise UserError(
            f"{path}: none of {len(rows):,} rows has an id of {dataset.name} (the first is {rows[0][1].id!r},"
            f" that of the first trace {ids[0]!r}).",
            "Check that the file belongs to this dataset.",
        )
    if len(rows) != len(ids):
        raise UserError(
            f"{path}: {counted(len(rows), 'row')} for the {counted(len(ids), 'trace')} of {dataset.name}, and no "
            "ids to match by.",
            "Check that the file belongs to this dataset.",
        )
    matches = dict(zip(ids, rows, strict=True))
    return matches, ScoreSummary(dataset.name, evaluator, outputs, len(matches), "position", (), ())


def _rows_by_id(rows: list[Located]) -> dict[str, Located]:
    named: dict[str, Located] = {}
    for where, row in rows:
        if row.id is None:
            continue
        if row.id in named:
            raise UserError(f"{where}: the id {row.id!r} is used earlier in the file.", "Give each its own.")
        named[row.id] = where, row
    return named


def _judgments(
    traces: Iterator[StoredTrace], matches: Mapping[str, Located], mode: Mode, on_redundancy: bool
) -> Iterator[Judgment]:
    for trace in traces:
        where, row = matches[trace.id]
        with located(where):
            yield row.judgment(trace, mode, on_redundancy)


@dataclass
class _AttentionSeen:
    """An evaluator's attention, as its scores reveal it. `changes` is True if a later step changes the score of an
    earlier one, and `stays` if leaving out a step changes none."""

    changes: bool = False
    stays: bool = False

    def note_left_out(self, scores: LeaveOneOut) -> None:
        whole = scores.whole.probs
        still = all(np.allclose(whole[:step], others[:step], atol=_STILL) for step, others in scores.rows().items())
        self.changes |= not still
        # Nothing comes before the first step.
        self.stays |= still and any(scores.known)

    def noted(self, judgment: Judgment) -> Judgment:
        if judgment.hindsight is not None:
            self.changes |= bool(np.abs(judgment.hindsight.retroactive).max() > _STILL)
        return judgment


def _save_left_out(
    session: Session,
    evaluator: StoredEvaluator,
    store: Store,
    dataset_id: int,
    matches: Mapping[str, Located],
    seen: _AttentionSeen,
) -> None:
    named = {id for id, (_, row) in matches.items() if row.left_out}
    for trace in iterate_named(store, dataset_id, named) if named else ():
        where, row = matches[trace.id]
        with located(where):
            scores = row.leave_one_out(trace)
            add_left_out(session, evaluator.id, trace, scores)
            seen.note_left_out(scores)


def _save_attention(session: Session, evaluator: StoredEvaluator, seen: _AttentionSeen) -> None:
    """Record the evaluator as causal if, in this file and all earlier ones, leaving out a step changes no score of
    an earlier step, and no later step changes a score in a hindsight judgment. A single change is remembered, so
    the order of the files does not matter."""
    if seen.changes:
        amend_evaluator(session, evaluator.id, {_CHANGES: True})
        if evaluator.attention == CAUSAL:
            session.get_one(EvaluatorRow, evaluator.id).attention = UNKNOWN
    elif evaluator.attention == UNKNOWN and seen.stays and not evaluator.info.get(_CHANGES):
        session.get_one(EvaluatorRow, evaluator.id).attention = CAUSAL


def _register(session: Session, name: str, outputs: Outputs, path: str) -> StoredEvaluator:
    fixed = {"fingerprint": f"{FORMAT}:{name}", "format": FORMAT, "attention": UNKNOWN}
    # Two files for the same evaluator add to each other's scores, so one must wait for the other.
    _, reading = split_reading(name)
    more = {} if reading == OWN_READING else {"reading": asdict(reading)}
    row = add_evaluator(session, fixed | {"name": name, "info": more | {"outputs": outputs.value}}, lock=True)
    if row.outputs != outputs:
        raise UserError(
            f"{path}: scores of kind {outputs}, but {name!r} has scores of kind {row.outputs}.",
            "Give another name (--evaluator).",
        )
    return row
