"""Adding traces to datasets."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain, islice
from typing import Any, NamedTuple

from sqlalchemy import func, insert, select, text
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace, check_text
from stepsight.storage.database.schema import ID_LENGTH, DatasetRow, StepRow, SubstepRow, TraceRow, check_name
from stepsight.storage.database.store import Store, insert_once
from stepsight.storage.importers.rows.kind import OnBad
from stepsight.storage.traces.queries import StoredTrace, find_trace
from stepsight.storage.traces.search import index_texts

Located = tuple[str, Trace]
Values = dict[str, Any]
Gold = tuple[int | None, bool | None, float | None]

LONGEST = 10_000_000
"""The largest number of characters in a trace, including its metadata."""

# The number of step rows inserted at once; a long trace has many.
_ROWS = 10_000
# The number of characters that a step or sub-step takes in addition to its text.
_OF_STEP = 50
# NUL as JSON spells it, but not an escaped backslash before "u0000".
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


class TraceRows(NamedTuple):
    """The rows that store a trace, built before any lock is taken. `where` is its place in the file, `trace` has
    the values of its row by column, `gold` the label, validity and share of each step, and `substeps` the
    texts of each step. Equal gold values share one object, because a long trace repeats them often."""

    where: str
    trace: Values
    gold: list[Gold]
    substeps: list[tuple[str, ...]]

    @property
    def id(self) -> str:
        return str(self.trace["external_id"])

    @property
    def digest(self) -> str:
        return str(self.trace["digest"])

    @property
    def texts(self) -> list[str]:
        """The problem and all sub-steps."""
        return [self.trace["problem"], *chain.from_iterable(self.substeps)]


class TraceWriter:
    """Appends traces to one dataset within a transaction.

    The dataset is created if it does not exist, and locked until the transaction ends. `added` counts new traces,
    `unchanged` traces stored by an earlier transaction, and `repeated` traces already added in this one. Raises
    `UserError` if the dataset is of a different kind.
    """

    def __init__(self, session: Session, dataset: str, kind: str, source: str) -> None:
        self._session = session
        self._dataset = dataset
        self.dataset_id = _open_dataset(session, dataset, kind, source)
        newest = select(func.max(TraceRow.position)).where(TraceRow.dataset_id == self.dataset_id)
        last = session.scalar(newest)
        self._start = self._next = 0 if last is None else last + 1
        self._refresh_at = 1000
        self.unchanged = self.repeated = 0

    @property
    def added(self) -> int:
        return self._next - self._start

    @property
    def read(self) -> int:
        return self.added + self.unchanged + self.repeated

    @property
    def total(self) -> int:
        """The number of traces now in the dataset."""
        return self._next

    def add(self, batch: Iterable[Located]) -> None:
        """Add the new traces of a batch. Each trace comes with the place of its row, such as `file.jsonl line 3`.
        Raises `UserError` if the content of a trace cannot be stored, or if its id already belongs to different
        content."""
        self.add_rows(rows_of(batch))

    def add_rows(self, batch: Iterable[TraceRows], on_bad: OnBad | None = None) -> None:
        """Like `add`, for traces that are already rows. Those whose id belongs to different content are passed to
        `on_bad`, and the other traces are added. Without `on_bad`, they raise `UserError`."""
        batch = list(batch)
        statement = select(TraceRow.external_id, TraceRow.digest, TraceRow.position).where(
            TraceRow.dataset_id == self.dataset_id, TraceRow.external_id.in_([rows.id for rows in batch])
        )
        stored = {row.external_id: (row.digest, row.position) for row in self._session.execute(statement)}
        new = []
        for rows in batch:
            if rows.id not in stored:
                stored[rows.id] = rows.digest, self._next
                new.append(rows)
                rows.trace.update(dataset_id=self.dataset_id, position=self._next)
                self._next += 1
                continue
            try:
                self._recognise(*stored[rows.id], rows)
            except UserError as error:
                _refuse(error, on_bad, rows.where, rows.id, rows.digest)
        if new:
            self._insert(new)

    def finish(self, source: str, sha256: str) -> None:
        """If any traces were added, record the source file and its hash in the dataset."""
        if self.added:
            row = self._session.get_one(DatasetRow, self.dataset_id)
            row.source, row.sha256 = source, sha256
            row.revision += 1
            self._refresh()

    def _recognise(self, digest: str, position: int, rows: TraceRows) -> None:
        is_new = position >= self._start
        if digest == rows.digest:
            self.repeated += is_new
            self.unchanged += not is_new
        elif is_new:
            raise UserError(
                f"{rows.where}: the id {rows.id!r} is used earlier in the file with different content.",
                "Give every trace an id of its own.",
            )
        else:
            raise UserError(
                f"{rows.where}: the dataset {self._dataset!r} holds trace {rows.id!r} with different content.",
                "Give the changed trace another id, or import the file as another dataset.",
            )

    def _insert(self, new: list[TraceRows]) -> None:
        returning = insert(TraceRow).returning(TraceRow.id, sort_by_parameter_order=True)
        values = [rows.trace for rows in new]
        ids = self._session.scalars(returning, values, execution_options=_ONE_STATEMENT).all()
        stored = list(zip(ids, new, strict=True))
        for model, parts in ((StepRow, _step_values), (SubstepRow, _substep_values)):
            all_rows = chain.from_iterable(parts(id, rows) for id, rows in stored)
            while chunk := list(islice(all_rows, _ROWS)):
                self._session.execute(insert(model), chunk, execution_options=_ONE_STATEMENT)
        index_texts(self._session, [(id, rows.texts) for id, rows in stored])
        if self.added >= self._refresh_at:
            self._refresh()
            self._refresh_at *= 4

    def _refresh(self) -> None:
        """Update PostgreSQL's statistics on the size of the tables.

        PostgreSQL notices the growth by itself, but only some time after the transaction. Until then it would scan
        whole tables instead of using an index.
        """
        if self._session.get_bind().dialect.name == "postgresql":
            for model in (TraceRow, StepRow, SubstepRow):
                self._session.execute(text(f"ANALYZE {model.__tablename__}"))


# Otherwise rows would be grouped by which of their values are None, with a statement for each group.
_ONE_STATEMENT = {"render_nulls": True}


def _open_dataset(session: Session, name: str, kind: str, source: str) -> int:
    values = {"name": name, "kind": kind, "source": source, "sha256": ""}
    insert_once(session, DatasetRow, [values], "name")
    # Judgments of the dataset may be stored meanwhile: they refer to its key, which this lock does not cover.
    locked = select(DatasetRow.id, DatasetRow.kind).with_for_update(key_share=True)
    statement = locked.where(DatasetRow.name == name)
    dataset_id, stored_kind = session.execute(statement).one()
    if stored_kind != kind:
        raise UserError(
            f"The dataset {name!r} is of kind {stored_kind}, but the file is imported as {kind}.",
            "Give the dataset another name.",
        )
    return int(dataset_id)


def rows_of(batch: Iterable[Located], on_bad: OnBad | None = None) -> Iterator[TraceRows]:
    """Yield the rows of each trace of a batch. A trace that is too long, or whose content no database can store, is
    passed to `on_bad`. Without `on_bad`, it raises `UserError`."""
    for where, trace in batch:
        # A text to which it refers several times is stored that many times.
        steps = _OF_STEP * (len(trace.steps) + len(trace.substeps)) + sum(map(len, trace.substeps))
        size = len(trace.problem) + steps + _characters(trace.meta)
        try:
            if size > LONGEST:
                raise UserError(
                    f"{where}: the trace takes {size:,} characters with its metadata.",
                    f"Up to {LONGEST:,} can be stored.",
                )
            _check(where, trace)
        except UserError as error:
            _refuse(error, on_bad, where, trace.id, trace.digest if size <= LONGEST else f"{size}")
        else:
            equal: dict[Gold, Gold] = {}
            labels = (None if step.label is None else int(step.label) for step in trace.steps)
            golds = [(label, step.valid, step.share) for label, step in zip(labels, trace.steps, strict=True)]
            gold = [equal.setdefault(values, values) for values in golds]
            yield TraceRows(where, _trace_values(trace), gold, [step.substeps for step in trace.steps])


def _characters(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(_characters(key) + _characters(item) for key, item in value.items())
    return sum(map(_characters, value)) if isinstance(value, list | tuple) else 8


def _refuse(error: UserError, on_bad: OnBad | None, where: str, id: str, digest: str) -> None:
    if on_bad is None:
        raise error
    on_bad(where, error, f"{id} {digest}".encode("utf-8", "surrogatepass"))


def _check(where: str, trace: Trace) -> None:
    try:
        check_text(trace.id, "the id")
        if len(trace.id) > ID_LENGTH:
            raise UserError(f"the id has {len(trace.id):,} characters.", f"Use at most {ID_LENGTH}.")
        written = json.dumps(trace.meta, ensure_ascii=False)
        written.encode()
        # PostgreSQL would store it, and then fail wherever the field is read.
        if _NUL.search(written):
            raise UserError("a text contains a NUL byte.", "Remove it.")
    except UserError as error:
        raise error.at(where) from None
    except UnicodeEncodeError:
        raise UserError(f"{where}: a text contains an unpaired surrogate.", "Save the text as UTF-8.") from None
    except RecursionError:
        raise UserError(f"{where}: the row is nested too deep.", "Check the kind of the file.") from None


def _without_nan(value: Any) -> Any:
    """Return a value with null in place of NaN and infinite numbers, which JSON does not have."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _trace_values(trace: Trace) -> Values:
    return {
        "external_id": trace.id,
        "problem": trace.problem,
        "digest": trace.digest,
        "text_digest": trace.text_digest,
        "n_steps": len(trace.steps),
        "n_substeps": len(trace.substeps),
        "first_error": trace.first_error,
        "has_gold": trace.has_gold,
        "n_redundant": trace.n_redundant,
        "meta": _without_nan(dict(trace.meta)),
    }


def _step_values(trace_id: int, rows: TraceRows) -> Iterator[Values]:
    names = ("label", "valid", "share")
    for position, gold in enumerate(rows.gold):
        yield {"trace_id": trace_id, "position": position} | dict(zip(names, gold, strict=True))


def _substep_values(trace_id: int, rows: TraceRows) -> Iterator[Values]:
    for step, texts in enumerate(rows.substeps):
        for position, written in enumerate(texts):
            yield {"trace_id": trace_id, "step": step, "position": position, "text": written}


SAVED = "saved"
"""The default name of a dataset of saved traces, and the kind of every such dataset."""
_ID_LENGTH = 16


def save_trace(store: Store, trace: Trace, dataset: str = SAVED) -> tuple[StoredTrace, bool]:
    """Store a trace under an id derived from its content, so that saving the same trace again changes nothing.

    Returns the stored trace, and True if its dataset did not contain it before. Raises `UserError` if the dataset
    name is invalid, or if it belongs to an imported dataset, whose metrics would change.
    """
    check_name(dataset, "the name of the dataset")
    named = replace(trace, id=trace.digest[:_ID_LENGTH])
    with store.write() as session:
        kind = session.scalar(select(DatasetRow.kind).where(DatasetRow.name == dataset))
        if kind not in (None, SAVED):
            raise UserError(
                f"The dataset {dataset!r} holds imported traces (kind {kind}).",
                f"Save under another name, such as {SAVED}.",
            )
        writer = TraceWriter(session, dataset, SAVED, "")
        writer.add([("the trace", named)])
        is_new = bool(writer.added)
    return find_trace(store, dataset, named.id), is_new
