"""Reading labels by people from a file: all of it or nothing."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.jsonl import open_input, read_rows
from stepsight.core.trace import Trace
from stepsight.storage.database.labelling_schema import CampaignRow
from stepsight.storage.database.schema import DatasetRow, TraceRow, check_name
from stepsight.storage.database.store import Store
from stepsight.storage.importers import guess_kind, prm800k
from stepsight.storage.importers.fields import describe, field, located, text
from stepsight.storage.importers.kind import Row
from stepsight.storage.labelling.files.answer_file import (
    ImportedAnnotation,
    ImportedTrace,
    parse_annotation,
    parse_trace,
)
from stepsight.storage.labelling.files.import_answers import AnnotationImporter
from stepsight.storage.labelling.files.import_events import EventImporter
from stepsight.storage.people.users import User
from stepsight.storage.traces.queries import StoredTrace, load_traces, traces

_BAD_PROBLEM = "bad_problem"
_WHOLE = "pre_generated_steps"


def read(
    session: Session, rows: Iterator[tuple[str, Row]], dataset: str, annotator: str | None
) -> Iterator[tuple[str, ImportedTrace]]:
    """The answers of rows, to the traces of a dataset with the same problem and steps.

    Labels that end at an error leave the later steps unlabelled. Raises `UserError` where no trace fits a row, or
    several do.
    """
    index = _Index(session, dataset)
    for where, row in rows:
        labelled = prm800k.parse(row, where)
        with located(where):
            trace = index.find(labelled)
            annotation = _answer(row, labelled, len(trace.steps), annotator)
        yield where, ImportedTrace(dataset, trace.id, trace.digest, "ordered", (annotation,))


class _Index:
    """Finds a dataset's traces by their problem, of which a digest is kept in memory."""

    def __init__(self, session: Session, dataset: str) -> None:
        self._session, self._dataset = session, dataset
        self._ids: defaultdict[bytes, list[int]] = defaultdict(list)
        found = select(TraceRow.id, TraceRow.problem).join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
        wanted = found.where(DatasetRow.name == dataset).order_by(TraceRow.position)
        for id, problem in session.execute(wanted, execution_options={"yield_per": 1000}):
            self._ids[_digest(problem)].append(id)

    def find(self, labelled: Trace) -> StoredTrace:
        ids = self._ids.get(_digest(labelled.problem), [])
        same = load_traces(self._session, traces().where(TraceRow.id.in_(ids)).order_by(TraceRow.position))
        fitting = [trace for trace in same if _fits(labelled, trace)]
        # Of solutions that begin alike, the one that ends where the labels do.
        whole = [trace for trace in fitting if len(trace.steps) == len(labelled.steps)]
        found = whole if len(fitting) > 1 and len(whole) == 1 else fitting
        if not found:
            raise UserError(
                f"the dataset {self._dataset!r} has no trace with this problem and these steps.",
                "Import the traces first, or name another dataset with --dataset.",
            )
        if len(found) > 1:
            named = ", ".join(trace.id for trace in found[:3])
            raise UserError(f"the row fits {len(found)} traces of {self._dataset!r}: {named}.")
        return found[0]


def _fits(labelled: Trace, trace: Trace) -> bool:
    texts, whole = _texts(trace), labelled.meta.get(_WHOLE)
    return texts[: len(labelled.steps)] == _texts(labelled) and (not whole or list(whole) == texts)


def _texts(trace: Trace) -> list[str]:
    return [step.text for step in trace.steps]


def _answer(row: Row, labelled: Trace, steps: int, annotator: str | None) -> ImportedAnnotation:
    given: Sequence[str | None] = [None if label is None else label.text for label in labelled.labels]
    labels, nothing = [*given, *[None] * (steps - len(given))], [None] * steps
    time = labelled.meta.get("total_time")
    said = {
        "annotator": annotator or field(row, "labeler"),
        "view": "whole",
        "labels": labels,
        "first": labels,
        "errors": nothing,
        "comments": nothing,
        "corrections": nothing,
        "flag": "bad problem" if labelled.meta.get("finish_reason") == _BAD_PROBLEM else None,
        "exposed": [],
        "guideline": 1,
        "submitted": _moment(field(row, "timestamp")),
        "seconds": time / 1000 if isinstance(time, int | float) and time > 0 else 0.0,
    }
    return parse_annotation(said, steps)


def _moment(found: object) -> str:
    """The moment of a row, which PRM800K gives without a time zone."""
    try:
        moment = datetime.fromisoformat(str(found))
    except ValueError:
        raise UserError(f"the timestamp is {describe(found)}, expected a date and time.") from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).isoformat()


def _digest(problem: str) -> bytes:
    return hashlib.sha256(problem.encode("utf-8", "surrogatepass")).digest()[:16]


Located = Iterator[tuple[str, Row]]


@dataclass(frozen=True)
class LabelImport:
    """What an import did to a campaign: so many events, answers or decisions `added`, and `known` before."""

    campaign: str
    what: str
    added: int
    known: int

    def __str__(self) -> str:
        if not self.added:
            return f"{self.campaign}: nothing new, {self.known:,} {self.what} already stored."
        known = f", {self.known:,} already stored" if self.known else ""
        return f"{self.campaign}: {self.added:,} {self.what} added{known}."


def import_labels(
    store: Store,
    path: str | Path,
    user: User,
    *,
    campaign: str | None = None,
    dataset: str | None = None,
    annotator: str | None = None,
) -> LabelImport:
    """Store what a file says that people said: one that `export_labels` wrote as `events` or `jsonl`, or rows of
    PRM800K as labels of one annotator. Importing it again adds nothing.

    The traces must be in the store, with the text and gold that was labelled. `campaign` is made where there is
    none, by `user`; without it the name is the file's. People who are missing are made without a password. Rows of
    PRM800K need a `campaign`; their traces are those of `dataset`, or of the campaign's, with that problem and
    those steps, and their labels are `annotator`'s, or each row's labeler's.

    Raises `UserError` with the line, and nothing is stored, at what is no row of these kinds, a trace that is not
    there or is another one, and labels that the campaign has otherwise.
    """
    if campaign is not None:
        check_name(campaign, "the name of the campaign")
    with open_input(path) as file, store.write() as session:
        rows: Located = ((f"{path} line {number}", row) for number, row in read_rows(file, str(path)))
        first = next(rows, None)
        if first is None:
            raise UserError(f"{path}: no row found, the file is empty.", "Check the path.")
        rows = chain([first], rows)
        if "format" in first[1]:
            return _import_events(session, rows, campaign)
        if "answers" in first[1]:
            return _import_answers(store, session, rows, user, campaign)
        if guess_kind(first[1]) == "prm800k":
            traces = _prm800k(session, rows, str(path), campaign, dataset, annotator)
            return _add(AnnotationImporter(store, session, campaign or "", user), traces)
        raise _not_labels(first[1], first[0])


def _import_events(session: Session, rows: Located, campaign: str | None) -> LabelImport:
    reader = EventImporter(session, rows, campaign)
    reader.read()
    added = 0 if reader.known else reader.events
    return LabelImport(reader.name, "events", added, reader.events - added)


def _import_answers(store: Store, session: Session, rows: Located, user: User, campaign: str | None) -> LabelImport:
    where, first = next(rows)
    with located(where):
        theirs = check_name(text(first, "campaign"), "the name of the campaign")
    traces = ((where, _given(where, row, theirs)) for where, row in chain([(where, first)], rows))
    return _add(AnnotationImporter(store, session, campaign or theirs, user), traces)


def _given(where: str, row: Row, campaign: str) -> ImportedTrace:
    with located(where):
        if row.get("campaign") != campaign:
            raise UserError(
                f"the campaign is {describe(row.get('campaign'))}, that of the first row {campaign!r}.",
                "Import one campaign at a time.",
            )
        return parse_trace(row)


def _prm800k(
    session: Session, rows: Located, path: str, campaign: str | None, dataset: str | None, annotator: str | None
) -> Iterator[tuple[str, ImportedTrace]]:
    if campaign is None:
        raise UserError(f"{path}: rows of PRM800K name no campaign.", "Give one with --campaign.")
    if dataset is None:
        found = select(DatasetRow.name).join(CampaignRow, CampaignRow.dataset_id == DatasetRow.id)
        dataset = session.scalar(found.where(CampaignRow.name == campaign))
    if dataset is None:
        raise UserError(
            f"{path}: rows of PRM800K do not name their traces, and there is no campaign {campaign!r}.",
            "Name the dataset with --dataset.",
        )
    return read(session, rows, dataset, annotator)


def _add(writer: AnnotationImporter, traces: Iterator[tuple[str, ImportedTrace]]) -> LabelImport:
    for where, given in traces:
        with located(where):
            writer.add(given)
    writer.finish()
    return LabelImport(writer.name, "answers and decisions", writer.annotations + writer.decisions, writer.known)


def _not_labels(row: Row, where: str) -> UserError:
    kind = guess_kind(row)
    if "annotators" in row or kind is None:
        return UserError(f"{where}: no labels by people.", "Expected what stepsight export labels wrote.")
    return UserError(
        f"{where}: the row looks like {kind}, which are traces, not labels by people.",
        f"Import it as a dataset: stepsight import {kind} FILE",
    )
