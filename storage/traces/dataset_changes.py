"""Renaming and deleting datasets."""

from dataclasses import dataclass

from sqlalchemy import delete, exists, or_, select, update
from sqlalchemy.orm import Session

from stepsight.storage.database.jobs_schema import ACTIVE, Job
from stepsight.storage.database.labelling_schema import CampaignRow, DisputeRow, ItemRow
from stepsight.storage.database.schema import (
    CalibrationRow,
    DatasetRow,
    DeletedRow,
    EvaluatorRow,
    JudgedRow,
    JudgmentRow,
    LeftOutScoresRow,
    TraceRow,
    TriangleRow,
)
from stepsight.storage.database.store import ConflictError, NotFoundError
from stepsight.storage.people.changes import Changeable, Dependents, count, counted, name_taken


@dataclass(frozen=True)
class ChangeableDataset(Changeable[DatasetRow]):
    """A dataset, which is deleted with its traces, judgments and ended jobs.

    It is not deleted while a job is working on it, nor if campaigns or disputes belong to it, and it is not renamed
    while a job is working on it.
    """

    name: str

    kind = "dataset"
    renames = True

    def find(self, session: Session, *, lock: bool = False) -> DatasetRow:
        wanted = select(DatasetRow).where(DatasetRow.name == self.name)
        row = session.scalars(wanted.with_for_update() if lock else wanted).one_or_none()
        if row is None:
            raise NotFoundError(
                f"There is no dataset {self.name!r:.80}.", "It may have been deleted or renamed meanwhile."
            )
        return row

    def dependents(self, session: Session, row: DatasetRow) -> Dependents:
        evaluators = evaluators_on(session, row.id)
        counts = {
            "traces": count(session, TraceRow.dataset_id == row.id),
            # With the evaluators, whose index then serves. The ends of a hindsight judgment are no judgments of
            # their own.
            "judgments": sum(
                count(session, table.dataset_id == row.id, table.evaluator_id.in_(evaluators), *conditions)
                for table, conditions in ((JudgmentRow, (~JudgmentRow.derived,)), (TriangleRow, ()))
            ),
            "scores without a step": count(session, LeftOutScoresRow.dataset_id == row.id),
            "jobs": count(session, Job.dataset_id == row.id),
        }
        judgments, left_out = counts["judgments"], counts["scores without a step"]
        of_evaluators = counted(len(evaluators), "evaluator", sorted(evaluators.values()))
        lines = {
            counted(counts["traces"], "trace"): True,
            f"{counted(judgments, 'judgment')} by {of_evaluators}": judgments,
            f"the scores of {counted(left_out, 'trace')} without each of their steps": left_out,
            f"{counted(counts['jobs'], 'job')} that ended": counts["jobs"],
        }
        shown = tuple(line for line, is_there in lines.items() if is_there)
        return Dependents(
            row.name,
            counts,
            shown,
            obstacle=_obstacle(session, row),
            scored=evaluators,
        )

    def remove(self, session: Session, row: DatasetRow) -> None:
        for evaluator in session.scalars(select(EvaluatorRow)):
            rename_file(evaluator, row.name)
        session.merge(DeletedRow(name=row.name))
        # First, since they have no index on the trace alone, by which the database would look for each deleted one.
        session.execute(delete(LeftOutScoresRow).where(LeftOutScoresRow.dataset_id == row.id))
        session.execute(delete(TraceRow).where(TraceRow.dataset_id == row.id))
        session.execute(delete(DatasetRow).where(DatasetRow.id == row.id))

    def check_rename(self, session: Session, row: DatasetRow, new: str) -> None:
        if session.scalar(select(DatasetRow.id).where(DatasetRow.name == new)) is not None:
            raise name_taken(self.kind, new)
        if busy := find_busy(session, row):
            raise busy

    def was_renamed(self, session: Session, row: DatasetRow, old: str) -> None:
        session.execute(update(CalibrationRow).where(CalibrationRow.dataset_id == row.id).values(dataset=row.name))
        for evaluator in session.scalars(select(EvaluatorRow)):
            rename_file(evaluator, old, row.name)


def rename_file(evaluator: EvaluatorRow, dataset: str, new: str = "") -> None:
    """Record the file of an evaluator's scores on a dataset under the dataset's new name, or forget it."""
    files = dict(evaluator.info.get("files", {}))
    sha256 = files.pop(dataset, None)
    files.pop(new, None)
    if sha256 is not None and new:
        files[new] = sha256
    if files != evaluator.info.get("files", {}):
        evaluator.info = evaluator.info | {"files": files}


def evaluators_on(session: Session, dataset_id: int) -> dict[int, str]:
    """Return the names of the evaluators that have judged traces of a dataset, by id and in the order of names."""
    has_judged = exists().where(JudgedRow.evaluator_id == EvaluatorRow.id, JudgedRow.dataset_id == dataset_id)
    rows = session.execute(select(EvaluatorRow.id, EvaluatorRow.name).where(has_judged).order_by(EvaluatorRow.name))
    return {row.id: row.name for row in rows}


def find_busy(session: Session, row: DatasetRow, fingerprint: str | None = None) -> ConflictError | None:
    """Return the error that names the active jobs that read the dataset or add to it, or None if there is none.
    With a `fingerprint`, judging jobs of other evaluators do not count."""
    active = select(Job).where(Job.state.in_(ACTIVE)).order_by(Job.id)
    working = [
        job.evaluator or job.subject
        for job in session.scalars(active)
        if job.dataset_id == row.id or row.name in map(job.request.get, ("dataset", "benchmark"))
        if fingerprint is None or job.fingerprint in ("", fingerprint)
    ]
    return busy(working)


def busy(working: list[str]) -> ConflictError | None:
    """Return the error for a change to something that jobs are working on, or None if there are no such jobs."""
    if not working:
        return None
    return ConflictError(f"A job is working on it: {', '.join(working)}.", "Cancel the job or let it finish.")


def _obstacle(session: Session, row: DatasetRow) -> ConflictError | None:
    # A campaign may draw hidden gold items from another dataset.
    items = select(ItemRow.campaign_id).join(TraceRow, TraceRow.id == ItemRow.trace_id)
    uses = or_(CampaignRow.dataset_id == row.id, CampaignRow.id.in_(items.where(TraceRow.dataset_id == row.id)))
    campaigns = session.scalars(select(CampaignRow.name).where(uses).order_by(CampaignRow.name)).all()
    disputes = count(session, DisputeRow.trace_id == TraceRow.id, TraceRow.dataset_id == row.id)
    if working := find_busy(session, row):
        return working
    if campaigns:
        return ConflictError(f"People label it in {', '.join(campaigns)}.", "Delete the campaign first.")
    if disputes:
        stated = "A dispute" if disputes == 1 else f"{disputes:,} disputes"
        return ConflictError(f"{stated} of its gold labels would be lost.", "Keep the dataset.")
    return None
