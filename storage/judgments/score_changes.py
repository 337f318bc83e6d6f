"""Deleting an evaluator's scores on a dataset."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.orm import Session

from stepsight.storage.database.labelling_schema import CampaignRow
from stepsight.storage.database.schema import (
    CalibrationRow,
    DatasetRow,
    EvaluatorRow,
    JudgedRow,
    JudgmentRow,
    LeftOutScoresRow,
)
from stepsight.storage.database.store import ConflictError, NotFoundError, Store
from stepsight.storage.people.changes import Changeable, Dependents, count, counted
from stepsight.storage.traces.dataset_changes import ChangeableDataset, evaluators_on, find_busy


class Scored(NamedTuple):
    """A dataset and an evaluator that has scored traces of it."""

    dataset: DatasetRow
    evaluator: EvaluatorRow

    def of(self, table: Any) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
        """Return the conditions for the rows of a table that belong to the two."""
        return table.dataset_id == self.dataset.id, table.evaluator_id == self.evaluator.id


@dataclass(frozen=True)
class ChangeableScores(Changeable[Scored]):
    """The scores that the evaluator with the id `evaluator` has given on a dataset. The evaluator itself and what
    it has scored elsewhere stay, as do thresholds that were chosen by these scores.

    They are not deleted while a job of the evaluator works on the dataset, or an open campaign shows them.
    """

    dataset: str
    evaluator: int

    kind = "scores"

    def find(self, session: Session, *, lock: bool = False) -> Scored:
        dataset = ChangeableDataset(self.dataset).find(session, lock=lock)
        if self.evaluator not in evaluators_on(session, dataset.id):
            raise NotFoundError(
                f"{self.dataset}: no scores of this evaluator.", "They may have been deleted meanwhile."
            )
        return Scored(dataset, session.get_one(EvaluatorRow, self.evaluator))

    def dependents(self, session: Session, row: Scored) -> Dependents:
        modes = select(JudgmentRow.mode).where(*row.of(JudgmentRow)).distinct().order_by(JudgmentRow.mode)
        judgments = count(session, *row.of(JudgmentRow))
        left_out = count(session, *row.of(LeftOutScoresRow))
        lines = {
            f"{counted(judgments, 'judgment')}, {' and '.join(session.scalars(modes))}": judgments,
            f"the scores of {counted(left_out, 'trace')} without each of their steps": left_out,
        }
        return Dependents(
            name_of_scores(row.evaluator.name, row.dataset.name),
            {"judgments": judgments, "scores without a step": left_out},
            tuple(line for line, is_there in lines.items() if is_there),
            kept="Thresholds that were chosen by these scores stay in force."
            if count(session, *row.of(CalibrationRow))
            else "",
            obstacle=find_busy(session, row.dataset, row.evaluator.fingerprint) or _shown(session, row),
        )

    def remove(self, session: Session, row: Scored) -> None:
        for table in (LeftOutScoresRow, JudgmentRow, JudgedRow):
            session.execute(delete(table).where(*row.of(table)))
        # The evaluator's own revision begins anew once it scores the dataset again.
        row.dataset.revision += 1


def name_of_scores(evaluator: str, dataset: str) -> str:
    """Return the name of an evaluator's scores on a dataset in the record of deletions."""
    return f"{evaluator} on {dataset}"


def list_scored(store: Store, dataset: str) -> dict[int, str]:
    """Return the names of the evaluators with scores on a dataset, by id and in the order of names. Raises
    `NotFoundError` if the dataset does not exist."""
    with store.read() as session:
        return evaluators_on(session, ChangeableDataset(dataset).find(session).id)


def _shown(session: Session, row: Scored) -> ConflictError | None:
    shows = CampaignRow.evaluator_id == row.evaluator.id, CampaignRow.closed.is_(None)
    names = session.scalars(
        select(CampaignRow.name).where(*shows, CampaignRow.dataset_id == row.dataset.id).order_by(CampaignRow.name)
    ).all()
    if not names:
        return None
    return ConflictError(f"People see them in {', '.join(names)}.", "Close the campaign first.")
