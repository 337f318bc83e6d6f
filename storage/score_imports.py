"""Importing a released score file: the judgments of an evaluator that need not run here."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy.orm import Session

from core.errors import UserError
from core.jsonl import open_input
from core.judgment import Judgment, Mode
from core.outputs import Outputs
from storage.evaluators import StoredEvaluator, add_evaluator, amend_evaluator
from storage.importers.kind import json_rows
from storage.judgments import save_together
from storage.names import check_name
from storage.queries import Dataset, StoredTrace, find_dataset, iterate_traces, list_ids
from storage.said import Said, parse_said
from storage.store import Store

FORMAT = "imported"
_NAMED = 5

Located = tuple[str, Said]


@dataclass(frozen=True)
class ScoreSummary:
    """What an import did: `matched` traces have a judgment; `rows_left` names the rows that no trace of the dataset
    answers to, `traces_left` the traces that no row does."""

    dataset: str
    evaluator: str
    outputs: Outputs
    matched: int
    by: str
    rows_left: tuple[str, ...]
    traces_left: tuple[str, ...]

    def __str__(self) -> str:
        traces = "1 trace" if self.matched == 1 else f"{self.matched:,} traces"
        parts = [f"{self.evaluator} on {self.dataset}: {traces}, matched by {self.by}"]
        for names, one, many in (
            (self.rows_left, "row of the file matches no trace", "rows of the file match no trace"),
            (self.traces_left, "trace has no scores", "traces have no scores"),
        ):
            if names:
                more = ", …" if len(names) > _NAMED else ""
                what = one if len(names) == 1 else many
                parts.append(f"{len(names):,} {what} ({', '.join(names[:_NAMED])}{more})")
        return "; ".join(parts) + "."


def import_scores(
    store: Store, dataset: str, path: str | Path, evaluator: str, mode: Mode = Mode.OFFLINE
) -> ScoreSummary:
    """Store what a score file says of a dataset's traces, all of it or nothing.

    Rows are matched by id where the file has ids of the dataset. A file without ids, or whose ids only count its
    rows, is matched by position otherwise, if it has as many rows as the dataset has traces. Importing a file again
    changes nothing.

    Raises `UserError` at a bad row, at a count of scores that is not that of the trace's sub-steps, where nothing
    matches, and where the evaluator of that name has other scores of this dataset.
    """
    check_name(evaluator, "the name of the evaluator")
    found, path = find_dataset(store, dataset), Path(path)
    rows, sha256 = _read(path)
    outputs = _outputs(rows)
    said, summary = _match(list_ids(store, found.id), rows, path, found, evaluator, outputs)
    on_redundancy = any(verdict.on_redundancy for _, verdict in rows)
    with store.write() as session:
        row = _register(session, evaluator, outputs, found.name, sha256, path)
        save_together(session, row.id, _judgments(iterate_traces(store, found.id), said, mode, on_redundancy))
        amend_evaluator(session, row.id, {"files": dict(row.info.get("files", {})) | {found.name: sha256}})
    return summary


def _read(path: Path) -> tuple[list[Located], str]:
    digest = hashlib.sha256()

    def lines() -> Iterator[bytes]:
        for line in file:
            digest.update(line)
            yield line

    rows = []
    with open_input(path) as file:
        for where, row in json_rows(lines(), str(path)):
            try:
                rows.append((where, parse_said(row)))
            except UserError as error:
                raise error.at(where) from None
    if not rows:
        raise UserError(f"{path}: no row found, the file is empty.", "Check the path.")
    return rows, digest.hexdigest()


def _outputs(rows: Sequence[Located]) -> Outputs:
    """The kind of all rows. Raises `UserError` at one of another kind, or with an id where the first has none."""
    (_, first), *_ = rows
    for where, said in rows:
        if said.outputs != first.outputs:
            raise UserError(
                f"{where}: a row of kind {said.outputs}, the first is of kind {first.outputs}.",
                "Use one kind per file.",
            )
        if (said.id is None) != (first.id is None):
            has = ("an id", "none") if first.id is None else ("no id", "one")
            raise UserError(f"{where}: {has[0]}, the first row has {has[1]}.", "Give every row an id, or none.")
    return first.outputs


def _match(
    ids: Sequence[str], rows: list[Located], path: Path, dataset: Dataset, evaluator: str, outputs: Outputs
) -> tuple[dict[str, Located], ScoreSummary]:
    """The row of each trace that has one, by the trace's id."""
    named, known = _by_id(rows), set(ids)
    if named.keys() & known:
        found = {id: named[id] for id in ids if id in named}
        rows_left = tuple(id for id in named if id not in known)
        traces_left = tuple(id for id in ids if id not in named)
        return found, ScoreSummary(dataset.name, evaluator, outputs, len(found), "id", rows_left, traces_left)
    if named and not _counting(rows):
        raise UserError(
            f"{path}: none of {len(rows):,} rows has an id of {dataset.name} (the first is {rows[0][1].id!r},"
            f" that of the first trace {ids[0]!r}).",
            "Check that the file belongs to this dataset.",
        )
    if len(rows) != len(ids):
        raise UserError(
            f"{path}: {len(rows):,} rows for the {len(ids):,} traces of {dataset.name}, and no ids to match by.",
            "Check that the file belongs to this dataset.",
        )
    found = dict(zip(ids, rows, strict=True))
    return found, ScoreSummary(dataset.name, evaluator, outputs, len(found), "position", (), ())


def _by_id(rows: list[Located]) -> dict[str, Located]:
    found: dict[str, Located] = {}
    for where, said in rows:
        if said.id is None:
            continue
        if said.id in found:
            raise UserError(f"{where}: the id {said.id!r} stands earlier in the file.", "Give each its own.")
        found[said.id] = where, said
    return found


def _counting(rows: list[Located]) -> bool:
    """Whether the ids are the numbers of the rows, from 0 or 1: then they say no more than the order does."""
    ids = [said.id for _, said in rows]
    return any(ids == [str(number + start) for number in range(len(ids))] for start in (0, 1))


def _judgments(
    traces: Iterator[StoredTrace], said: Mapping[str, Located], mode: Mode, on_redundancy: bool
) -> Iterator[Judgment]:
    for trace in traces:
        if trace.id not in said:
            continue
        where, found = said[trace.id]
        try:
            yield Judgment(trace, mode, found.scores(trace, on_redundancy), found.solution)
        except UserError as error:
            raise error.at(where) from None


def _register(
    session: Session, name: str, outputs: Outputs, dataset: str, sha256: str, path: Path
) -> StoredEvaluator:
    fixed = {"fingerprint": f"{FORMAT}:{name}", "format": FORMAT, "attention": "unknown"}
    row = add_evaluator(session, fixed | {"name": name, "info": {"outputs": outputs.value}})
    if row.outputs != outputs:
        raise UserError(
            f"{path}: scores of kind {outputs}, {name!r} has scores of kind {row.outputs}.",
            "Give another --evaluator.",
        )
    if row.info.get("files", {}).get(dataset, sha256) != sha256:
        raise UserError(f"{path}: {name!r} has other scores of {dataset}.", "Give another --evaluator.")
    return row
