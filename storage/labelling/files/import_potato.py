"""Importing the process rewards of Potato as annotations of stored traces (see `formats.potato`)."""

from collections.abc import Iterator
from typing import Any

from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.storage.database.schema import DatasetRow, TraceRow
from stepsight.storage.importers.rows.fields import describe, field, listed, located, whole
from stepsight.storage.importers.rows.kind import Row
from stepsight.storage.labelling.files.formats.potato import FIRST_ERROR, REWARDS
from stepsight.storage.labelling.files.import_tools import NO_MOMENT, answer_of, imported_trace
from stepsight.storage.labelling.files.rows import ImportedTrace
from stepsight.storage.traces.queries import StoredTrace, load_traces, traces

_LABELS = {reward: label for label, reward in REWARDS.items()}


def read_potato(
    session: Session, rows: Iterator[tuple[str, Row]], dataset: str, annotator: str | None
) -> Iterator[tuple[str, ImportedTrace]]:
    """Yield the annotation in each row, assigned to the trace in `dataset` with the id of the row's instance.

    Steps after a first error stay unlabelled, and so do those with a reward by a model that nobody verified. 0 is
    neutral if the file also has null. Raises `UserError` if it has none, since 0 may then stand for a step that is
    not marked, or if a row fits no trace.
    """
    every = list(rows)
    has_null = any(step.get("reward", 0) is None for _, row in every for step in _steps(row))
    for where, row in every:
        with located(where):
            trace = _find(session, dataset, str(field(row, "instance_id")))
            labels = _labels(row, trace, has_null)
            who = annotator or row.get("annotator")
            given = [answer_of(who, labels, NO_MOMENT, None)] if any(labels) else []
            yield where, imported_trace(dataset, trace, given)


def _find(session: Session, dataset: str, id: str) -> StoredTrace:
    found = load_traces(session, traces().where(DatasetRow.name == dataset, TraceRow.external_id == id))
    if not found:
        raise UserError(
            f"the dataset {dataset!r} has no trace {id!r:.60}.",
            "Give Potato the ids of the traces as its ids of items, or name another dataset (--dataset).",
        )
    return found[0]


def _labels(row: Row, trace: StoredTrace, has_null: bool) -> list[str | None]:
    labels: list[str | None] = [None] * len(trace.steps)
    ends_at_error = row.get("mode") == FIRST_ERROR
    for number, step in enumerate(_steps(row)):
        last = len(labels) - 1
        place = whole(step.get("index", number), 0, last, "the index of a step", f"0 to {last}")
        reward = step.get("reward")
        if reward is None or (step.get("source") == "ai" and not step.get("verified")):
            continue
        if isinstance(reward, bool) or reward not in _LABELS:
            raise UserError(f"the reward of step {place + 1} is {describe(reward)}.", "Expected 1, 0, -1 or null.")
        if reward == 0 and not ends_at_error and not has_null:
            raise UserError(
                f"the reward of step {place + 1} is 0, which may be neutral or not marked.",
                "Write null for a step that is not marked. Once a step of the file has null, 0 is neutral.",
            )
        labels[place] = None if reward == 0 and ends_at_error else _LABELS[reward]
    if ends_at_error and "neg" in labels:
        error = labels.index("neg")
        labels[error + 1 :] = [None] * (len(labels) - error - 1)
    return labels


def _steps(row: Row) -> list[dict[str, Any]]:
    return [step for step in listed(row, "steps") if isinstance(step, dict)]
