"""Importing a score file, a published one or our own: the judgments of an evaluator that need not run here."""

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.files.jsonl import open_input
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.judgment_record import FORMAT as RECORD
from stepsight.core.judgment_record import JudgmentRecord, Places, scores_of
from stepsight.core.label import Label
from stepsight.core.scores import Hindsight, Outputs, StepScores
from stepsight.core.trace import Trace
from stepsight.core.validation import validate
from stepsight.storage.database.schema import check_name
from stepsight.storage.database.store import Store
from stepsight.storage.importers.fields import describe, field
from stepsight.storage.importers.kind import Row, json_rows
from stepsight.storage.judgments.evaluators import StoredEvaluator, add_evaluator, amend_evaluator
from stepsight.storage.judgments.judgments import save_together
from stepsight.storage.traces.queries import (
    Dataset,
    StoredTrace,
    find_dataset,
    iterate_traces,
    list_datasets,
    list_ids,
)

_TOLERANCE = 1e-3
_ROUNDING = 1e-9
_WORDS = ("correctness_pred", "error_step_pred")
_VERDICTS = {"correct": 1.0, "absent": 1.0, "wrong": 0.0, "present": 0.0}
_OF_REDUNDANCY = ("absent", "present")
# A number of more digits is past the end of any solution, and Python refuses to read the longest.
_DIGITS = 9

Rows = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PublishedScores:
    """`id` is the row's, None if it has none. `outputs` says which of the others is present: `rows`, of shape (n,
    3), `solution`, or, for a verdict, its `word`, the `blamed` steps, counted from 1, and its `rationale`.

    A row that `stepsight score` wrote has its `evaluator` and `mode`, the `recorded` scores with their places, and
    the cost `spent`.
    """

    id: str | None
    outputs: Outputs
    rows: Rows | None = None
    solution: float | None = None
    word: str = ""
    blamed: tuple[int, ...] = ()
    rationale: str = ""
    evaluator: str | None = None
    mode: Mode | None = None
    recorded: tuple[Places, StepScores | Hindsight] | None = None
    spent: Usage | None = None

    @property
    def on_redundancy(self) -> bool:
        """True if it is a verdict on redundancy, readable or not."""
        return self.word.startswith(_OF_REDUNDANCY)

    def judgment(self, trace: Trace, mode: Mode, on_redundancy: bool = False) -> Judgment:
        """The judgment of `trace` from `scores`, in `mode` unless the row names one."""
        scores = self.scores(trace, on_redundancy)
        return Judgment(trace, self.mode or mode, scores, self.solution, self.rationale, self.spent)

    def scores(self, trace: Trace, on_redundancy: bool = False) -> StepScores | Hindsight:
        """A row per sub-step of `trace`; zeros for a missing one. `on_redundancy` says what verdicts are on, since
        an unreadable word does not.

        Raises `UserError` naming the trace if the counts differ.
        """
        count = len(trace.substeps)
        if self.recorded is not None:
            return scores_of(self.recorded, trace)
        if self.outputs == Outputs.SOLUTION:
            return StepScores(np.zeros((count, 3), np.float32))
        if self.outputs == Outputs.VERDICT:
            return StepScores(self._verdict(len(trace.steps), on_redundancy)[trace.owners])
        assert self.rows is not None
        if len(self.rows) != count:
            raise UserError(
                f"{len(self.rows)} scores for the {count} sub-steps of trace {trace.id!r}.",
                "Check that the file belongs to this dataset.",
            )
        return StepScores(self.rows)

    def _verdict(self, steps: int, on_redundancy: bool) -> Rows:
        rows = np.zeros((steps, len(Label)), np.float32)
        inside = [number - 1 for number in self.blamed if 1 <= number <= steps]
        if self.solution is None and not inside:
            return rows
        rows[:, Label.POS] = 1
        if on_redundancy:
            rows[inside] = np.eye(len(Label))[Label.NEU]
        elif self.word != "correct" and self.blamed and 1 <= self.blamed[0] <= steps:
            first = self.blamed[0] - 1
            rows[first] = np.eye(len(Label))[Label.NEG]
            rows[first + 1 :] = 0
        return rows


def parse_scores(row: Row) -> PublishedScores:
    """A row in any of the forms. Raises `UserError` with what was found and what was expected."""
    if row.get("format") == RECORD:
        return _recorded(validate(JudgmentRecord, row, "the row"))
    identifier = row.get("id", row.get("uuid"))
    if isinstance(identifier, bool) or not isinstance(identifier, str | int | None):
        raise UserError(f"the field 'id' is {describe(identifier)}, expected text or a whole number.")
    name = None if identifier is None else str(identifier)
    words = next((held for held in (row, *row.values()) if isinstance(held, dict) and _WORDS[0] in held), None)
    if words is not None:
        return _words(words, name)
    scores = field(row, "scores")
    if isinstance(scores, int | float) and not isinstance(scores, bool):
        return PublishedScores(name, Outputs.SOLUTION, solution=_number(scores, "the score"))
    if not isinstance(scores, list) or not scores:
        raise UserError(f"the field 'scores' is {describe(scores)}.", "Expected a number, or a list of them.")
    if isinstance(scores[0], list):
        rows = np.array([_triple(values, number) for number, values in enumerate(scores, 1)], np.float32)
        return PublishedScores(name, Outputs.THREE_WAY, rows=rows)
    values = np.array([_share(value, f"score {number}") for number, value in enumerate(scores, 1)])
    return PublishedScores(name, Outputs.VALIDITY, rows=validity_rows(values))


def _recorded(record: JudgmentRecord) -> PublishedScores:
    return PublishedScores(
        record.id,
        record.outputs,
        solution=record.solution_score,
        rationale=record.rationale or "",
        evaluator=record.evaluator,
        mode=record.mode,
        recorded=record.scores(),
        spent=record.spent,
    )


def validity_rows(values: NDArray[Any]) -> Rows:
    """Rows of neg, neu, pos whose validity is `values`, without redundancy."""
    return np.stack([1 - values, np.zeros_like(values), values], axis=1).astype(np.float32)


def _words(row: Row, name: str | None) -> PublishedScores:
    words = [field(row, key) for key in _WORDS]
    for key, value in zip(_WORDS, words, strict=True):
        if not isinstance(value, str):
            raise UserError(f"the field {key!r} is {describe(value)}, expected text.")
    word, steps = words[0].lower(), tuple(int(number[:_DIGITS]) for number in re.findall(r"[0-9]+", words[1]))
    rationale = row.get("response")
    if not isinstance(rationale, str | None):
        raise UserError(f"the field 'response' is {describe(rationale)}, expected text.")
    return PublishedScores(name, Outputs.VERDICT, None, _VERDICTS.get(word), word, steps, (rationale or "").strip())


def _triple(values: object, number: int) -> list[float]:
    if not isinstance(values, list) or len(values) != len(Label):
        raise UserError(f"the scores of step {number} are {describe(values)}.", "Expected three numbers.")
    numbers = [_share(value, f"a score of step {number}") for value in values]
    if abs(sum(numbers) - 1) > _TOLERANCE + _ROUNDING:
        raise UserError(f"the scores of step {number} sum to {sum(numbers):.4f}.", "Expected 1, within 0.001.")
    return numbers


def _share(value: object, what: str) -> float:
    number = _number(value, what)
    if not -_TOLERANCE <= number <= 1 + _TOLERANCE:
        raise UserError(f"{what} is {number:g}, expected a probability from 0 to 1.")
    return number


def _number(value: object, what: str) -> float:
    try:
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            return float(value)
    except OverflowError:
        pass
    raise UserError(f"{what} is {describe(value)}, expected a finite number.")


FORMAT = "imported"
_NAMED = 5

Located = tuple[str, PublishedScores]


@dataclass(frozen=True)
class ScoreSummary:
    """The outcome of an import: `matched` traces have a judgment; `rows_left` names the rows without a trace in the
    dataset, `traces_left` the traces without a row."""

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
    store: Store, dataset: str, path: str | Path, evaluator: str | None = None, mode: Mode = Mode.OFFLINE
) -> ScoreSummary:
    """Store the scores of a dataset's traces from a file, all or nothing, as the judgments of `evaluator`. A file
    that `stepsight score` wrote names its evaluator and its mode; `evaluator` then renames it.

    Rows are matched by id if the file has ids of the dataset. A file without ids, or whose ids only number its
    rows, is otherwise matched by position, if it has as many rows as the dataset has traces. Importing a file again
    changes nothing.

    Raises `UserError` at a bad row, at a number of scores that differs from the trace's sub-steps, if nothing
    matches, and if the evaluator of that name has other scores of this dataset.
    """
    with open_input(path) as file:
        return import_score_lines(store, dataset, file, str(path), evaluator, mode)


def import_score_lines(
    store: Store, dataset: str, lines: Iterable[bytes], name: str, evaluator: str | None, mode: Mode = Mode.OFFLINE
) -> ScoreSummary:
    """As `import_scores`, from the lines of a file called `name`."""
    target = find_dataset(store, dataset)
    rows, sha256 = read_scores(lines, name)
    evaluator = rows[0][1].evaluator if evaluator is None else evaluator
    if evaluator is None:
        raise UserError(f"{name}: the file does not name its evaluator.", "Give --evaluator.")
    check_name(evaluator, "the name of the evaluator")
    outputs = outputs_of(rows)
    matches, summary = _match(list_ids(store, target.id), rows, name, target, evaluator, outputs)
    on_redundancy = any(verdict.on_redundancy for _, verdict in rows)
    with store.write() as session:
        row = _register(session, evaluator, outputs, target.name, sha256, name)
        save_together(session, row.id, _judgments(iterate_traces(store, target.id), matches, mode, on_redundancy))
        amend_evaluator(session, row.id, {"files": dict(row.info.get("files", {})) | {target.name: sha256}})
    return summary


def matching_datasets(store: Store, path: str | Path) -> list[str]:
    """The datasets of the store that a score file may belong to: every row has a trace with as many sub-steps as it
    has scores. Raises `UserError` at a bad row."""
    with open_input(path) as file:
        return datasets_of(store, read_scores(file, str(path))[0])


def datasets_of(store: Store, rows: list[Located]) -> list[str]:
    """As `matching_datasets`, for rows that have been read already."""
    return [dataset.name for dataset in list_datasets(store) if _fits(store, dataset, rows)]


def _fits(store: Store, dataset: Dataset, rows: list[Located]) -> bool:
    if len(rows) > dataset.traces:
        return False
    try:
        outputs = outputs_of(rows)
        matches, summary = _match(list_ids(store, dataset.id), rows, "the file", dataset, "", outputs)
        for trace in iterate_traces(store, dataset.id):
            if trace.id in matches:
                matches[trace.id][1].scores(trace)
    except UserError:
        return False
    return not summary.rows_left


def read_scores(lines: Iterable[bytes], name: str) -> tuple[list[Located], str]:
    """The rows of a score file called `name`, each with its place, and the SHA-256 of all. Raises `UserError` at a
    bad row, and if there is none."""
    digest = hashlib.sha256()

    def hashed() -> Iterator[bytes]:
        for line in lines:
            digest.update(line)
            yield line

    rows = []
    for where, row in json_rows(hashed(), name):
        try:
            rows.append((where, parse_scores(row)))
        except UserError as error:
            raise error.at(where) from None
    if not rows:
        raise UserError(f"{name}: no row found, the file is empty.", "Check the path.")
    return rows, digest.hexdigest()


def outputs_of(rows: Sequence[Located]) -> Outputs:
    """The kind of all rows. Raises `UserError` at one of another kind or evaluator, or with an id if the first has
    none."""
    (_, first), *_ = rows
    for where, row in rows:
        if row.outputs != first.outputs:
            raise UserError(
                f"{where}: a row of kind {row.outputs}, the first is of kind {first.outputs}.",
                "Use one kind per file.",
            )
        if row.evaluator != first.evaluator:
            raise UserError(
                f"{where}: a row of {row.evaluator}, the first is of {first.evaluator}.",
                "Use one evaluator per file.",
            )
        if (row.id is None) != (first.id is None):
            has = ("an id", "none") if first.id is None else ("no id", "one")
            raise UserError(f"{where}: {has[0]}, the first row has {has[1]}.", "Give every row an id, or none.")
    return first.outputs


def _match(
    ids: Sequence[str], rows: list[Located], path: str, dataset: Dataset, evaluator: str, outputs: Outputs
) -> tuple[dict[str, Located], ScoreSummary]:
    """The row of each matched trace, by the trace's id."""
    named, existing = _by_id(rows), set(ids)
    if named.keys() & existing:
        matches = {id: named[id] for id in ids if id in named}
        rows_left = tuple(id for id in named if id not in existing)
        traces_left = tuple(id for id in ids if id not in named)
        return matches, ScoreSummary(dataset.name, evaluator, outputs, len(matches), "id", rows_left, traces_left)
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
    matches = dict(zip(ids, rows, strict=True))
    return matches, ScoreSummary(dataset.name, evaluator, outputs, len(matches), "position", (), ())


def _by_id(rows: list[Located]) -> dict[str, Located]:
    named: dict[str, Located] = {}
    for where, row in rows:
        if row.id is None:
            continue
        if row.id in named:
            raise UserError(f"{where}: the id {row.id!r} stands earlier in the file.", "Give each its own.")
        named[row.id] = where, row
    return named


def _counting(rows: list[Located]) -> bool:
    """True if the ids are the numbers of the rows, from 0 or 1, and so say no more than the order does."""
    ids = [row.id for _, row in rows]
    return any(ids == [str(number + start) for number in range(len(ids))] for start in (0, 1))


def _judgments(
    traces: Iterator[StoredTrace], matches: Mapping[str, Located], mode: Mode, on_redundancy: bool
) -> Iterator[Judgment]:
    for trace in traces:
        if trace.id not in matches:
            continue
        where, row = matches[trace.id]
        try:
            yield row.judgment(trace, mode, on_redundancy)
        except UserError as error:
            raise error.at(where) from None


def _register(
    session: Session, name: str, outputs: Outputs, dataset: str, sha256: str, path: str
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
