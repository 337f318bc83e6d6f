"""The basis of a dataset's figures: numbers that change whenever what the figures are computed from does."""

from sqlalchemy import func, select

from storage.schema import CalibrationRow, DatasetRow, JudgedRow
from storage.store import Store

Basis = tuple[int, ...]


def find_basis(store: Store, dataset_id: int) -> Basis:
    """Of a dataset the revisions of its traces and of each evaluator's judgments, and the newest calibration."""
    traces = select(DatasetRow.revision).where(DatasetRow.id == dataset_id)
    judged = (
        select(JudgedRow.evaluator_id, JudgedRow.revision)
        .where(JudgedRow.dataset_id == dataset_id)
        .order_by(JudgedRow.evaluator_id)
    )
    newest = select(func.max(CalibrationRow.id))
    with store.read() as session:
        head = (session.scalar(traces) or 0, session.scalar(newest) or 0)
        return (*head, *(number for row in session.execute(judged) for number in row))
