"""What the gold of a dataset tells, which is what can be proposed in its place."""

import sys

from sqlalchemy import ColumnElement, select

from core.label import LABEL_NAMES, Label
from core.patch import VALID
from storage.memory import memory_of
from storage.schema import DatasetRow, StepRow, TraceRow
from storage.store import Store

Sayable = tuple[str | None, ...]

RATED: Sayable = (*LABEL_NAMES, None)
OF_VALIDITY: Sayable = (Label.NEG.text, VALID, None)


def sayable(store: Store, dataset_id: int) -> Sayable:
    """What can stand as gold of a step.

    A benchmark that only names first errors (MR-MATH-invalid, ProcessBench) says of a step that it is wrong or
    valid. One step of it that says neu or pos would be the only one that the three classes, or redundant errors,
    are measured on; so neither can be proposed there. Where steps are rated (PRM800K, MR-MATH-redundant), or
    nothing is said yet, the three labels can.
    """
    with store.read() as session:
        revision = session.scalar(select(DatasetRow.revision).where(DatasetRow.id == dataset_id))
    key = ("sayable", dataset_id)
    return memory_of(store).get(key, revision, lambda: _read(store, dataset_id), sys.getsizeof)


def _read(store: Store, dataset_id: int) -> Sayable:
    if _has(store, dataset_id, StepRow.label != Label.NEG.value):
        return RATED
    return OF_VALIDITY if _has(store, dataset_id, StepRow.valid.is_not(None)) else RATED


def _has(store: Store, dataset_id: int, condition: ColumnElement[bool]) -> bool:
    """Whether a step of the dataset meets a condition."""
    found = select(StepRow.trace_id).join(TraceRow, TraceRow.id == StepRow.trace_id)
    with store.read() as session:
        return session.scalar(found.where(TraceRow.dataset_id == dataset_id, condition).limit(1)) is not None
