"""Deleting an evaluator's scores on a dataset."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, delete, or_, select
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.storage.database.labelling_schema import CampaignRow
from stepsight.storage.database.schema import (
    CalibrationRow,
    DatasetRow,
    DeletedRow,
    EvaluatorRow,
    JudgedRow,
    JudgmentRow,
    LeftOutScoresRow,
    TriangleRow,
    in_range,
)
from stepsight.storage.database.store import ConflictError, NotFoundError, Store
from stepsight.storage.people.changes import Changeable, Dependents, count, counted, was_deleted
from stepsight.storage.traces.dataset_changes import ChangeableDataset, evaluators_on, find_busy, rename_file


class Scored(NamedTuple):
    """A dataset and an evaluator that has scored traces of it."""

    dataset: DatasetRow
    evaluator: EvaluatorRow

    def of(self, table: Any) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
        """Return the conditions for the rows of a table that belong to the dataset and the evaluator."""
        return table.dataset_id == self.dataset.id, table.evaluator_id == self.evaluator.id


@dataclass(frozen=True)
class ChangeableScores(Changeable[Scored]):
    """The scores on a dataset of the evaluator with the id `evaluator` or, if that is 0, of the evaluator whose
    name or fingerprint is `called`. The evaluator itself and its scores elsewhere stay, as do thresholds that were
    chosen with these scores.

    They are not deleted while a job of the evaluator works on the dataset, or an open campaign shows them.
    """

    dataset: str
    evaluator: int
    called: str = ""

    kind = "scores"

    def find(self, session: Session, *, lock: bool = False) -> Scored:
        dataset = ChangeableDataset(self.dataset).find(session, lock=lock)
        row = EvaluatorRow
        chosen = or_(row.name == self.called, row.fingerprint == self.called)
        if self.evaluator or not self.called:
            chosen = row.id == in_range(self.evaluator)
        rows = session.scalars(select(row).where(chosen, row.id.in_(evaluators_on(session, dataset.id)))).all()
        if len(rows) > 1:
            raise UserError(
                f"{len(rows)} evaluators are called {self.called!r:.80}.", "Give the fingerprint instead."
            )
        if not rows:
            raise NotFoundError(
                f"{self.dataset}: no scores of this evaluator.", "They may have been deleted meanwhile."
            )
        return Scored(dataset, rows[0])

    def dependents(self, session: Session, row: Scored) -> Dependents:
        counts = {
            mode: count(session, *row.of(JudgmentRow), ~JudgmentRow.derived, JudgmentRow.mode == mode.value)
            for mode in (Mode.OFFLINE, Mode.ONLINE)
        }
        # The ends of a hindsight judgment are no judgments of their own.
        counts[Mode.HINDSIGHT] = count(session, *row.of(TriangleRow))
        judgments, modes = sum(counts.values()), sorted(mode.value for mode, number in counts.items() if number)
        left_out = count(session, *row.of(LeftOutScoresRow))
        lines = {
            f"{counted(judgments, 'judgment')}, {' and '.join(modes)}": judgments,
            f"the scores of {counted(left_out, 'trace')} without each of their steps": left_out,
        }
        return Dependents(
            _name(row.evaluator.name, row.dataset.name),
            {"judgments": judgments, "scores without a step": left_out},
            tuple(line for line, is_there in lines.items() if is_there),
            kept="Thresholds that were chosen by these scores stay in force."
            if count(session, *row.of(CalibrationRow))
            else "",
            obstacle=find_busy(session, row.dataset, row.evaluator.fingerprint) or _shown(session, row),
        )

    def remove(self, session: Session, row: Scored) -> None:
        for table in (LeftOutScoresRow, JudgmentRow, TriangleRow, JudgedRow):
            session.execute(delete(table).where(*row.of(table)))
        rename_file(row.evaluator, row.dataset.name)
        session.merge(DeletedRow(name=_name(row.evaluator.name, row.dataset.name)))
        # The evaluator's own revision begins anew once it scores the dataset again.
        row.dataset.revision += 1


def scores_were_deleted(store: Store, evaluator: str, dataset: str) -> bool:
    """True if the scores of an evaluator of this name on a dataset have ever been deleted."""
    return was_deleted(store, _name(evaluator, dataset))


def _name(evaluator: str, dataset: str) -> str:
    return f"{evaluator} on {dataset}"


def _shown(session: Session, row: Scored) -> ConflictError | None:
    shows = CampaignRow.evaluator_id == row.evaluator.id, CampaignRow.closed.is_(None)
    names = session.scalars(
        select(CampaignRow.name).where(*shows, CampaignRow.dataset_id == row.dataset.id).order_by(CampaignRow.name)
    ).all()
    if not names:
        return None
    return ConflictError(f"People see them in {', '.join(names)}.", "Close the campaign first.")
