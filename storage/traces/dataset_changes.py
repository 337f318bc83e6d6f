"""Renaming, archiving and deleting datasets.

A dataset is deleted in two parts. `ChangeableDataset.delete` withdraws it in one short transaction, after which
nothing finds it and its name is free. `remove_withdrawn` then removes its rows a few hundred at a time, so that
neither readers nor other writers wait for long, however large the dataset is. Any process can continue it.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_hex

from sqlalchemy import delete, exists, or_, select, tuple_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from stepsight.storage.database.jobs_schema import JobRow
from stepsight.storage.database.labelling_schema import CampaignRow, DisputeRow, ItemRow
from stepsight.storage.database.schema import (
    NAME_LENGTH,
    CalibrationRow,
    DatasetRow,
    EvaluatorRow,
    JudgedRow,
    JudgmentRow,
    LeftOutScoresRow,
    TraceRow,
    now,
)
from stepsight.storage.database.store import ConflictError, NotFoundError, Store
from stepsight.storage.database.stress_schema import StressScoresRow
from stepsight.storage.people.changes import Changeable, Dependents, count, counted, name_taken

# The traces that are removed in one transaction, and the seconds that others have for theirs before the next one.
_BATCH = 200
_PAUSE = 0.02


@dataclass(frozen=True)
class ChangeableDataset(Changeable[DatasetRow]):
    """A dataset, which is deleted with its traces, judgments and ended jobs. The rows of its traces
    stay until `remove_withdrawn` removes them.

    It is not deleted while a job is working on it, nor if campaigns or disputes belong to it, and it is not renamed
    while a job is working on it.
    """

    name: str

    kind = "dataset"
    renames = archives = True

    def find(self, session: Session, *, lock: bool = False) -> DatasetRow:
        wanted = select(DatasetRow).where(DatasetRow.name == self.name, DatasetRow.withdrawn.is_(None))
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
            # With the evaluators, whose index then serves.
            "judgments": count(session, JudgmentRow.dataset_id == row.id, JudgmentRow.evaluator_id.in_(evaluators)),
            "scores without a step": count(session, LeftOutScoresRow.dataset_id == row.id),
            "scores of stress tests": count(session, StressScoresRow.dataset_id == row.id),
            "jobs": count(session, JobRow.dataset_id == row.id),
        }
        judgments, left_out = counts["judgments"], counts["scores without a step"]
        stressed = counts["scores of stress tests"]
        of_evaluators = counted(len(evaluators), "evaluator", sorted(evaluators.values()))
        lines = {
            counted(counts["traces"], "trace"): True,
            f"{counted(judgments, 'judgment')} by {of_evaluators}": judgments,
            f"the scores of {counted(left_out, 'trace')} without each of their steps": left_out,
            f"stress tests with {counted(stressed, 'score')}": stressed,
            f"{counted(counts['jobs'], 'job')} that ended": counts["jobs"],
        }
        shown = tuple(line for line, is_there in lines.items() if is_there)
        return Dependents(
            row.name,
            counts,
            shown,
            obstacle=_obstacle(session, row),
            archived=row.archived is not None,
            scored=evaluators,
        )

    def remove(self, session: Session, row: DatasetRow) -> None:
        session.execute(delete(JobRow).where(JobRow.dataset_id == row.id))
        session.execute(delete(JudgedRow).where(JudgedRow.dataset_id == row.id))
        for evaluator in session.scalars(select(EvaluatorRow)):
            rename_file(evaluator, row.name)
        row.name, row.withdrawn = f"{row.name[: NAME_LENGTH - 40]} deleted {token_hex(8)}", now()

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


def remove_withdrawn(store: Store, go_on: Callable[[], bool] = lambda: True) -> None:
    """Remove the rows of deleted datasets, a batch at a time, until none is left or `go_on` returns False.

    Raises `ConflictError` if something has come to refer to a deleted dataset since.
    """
    withdrawn = select(DatasetRow.id).where(DatasetRow.withdrawn.is_not(None)).order_by(DatasetRow.id).limit(1)
    while go_on():
        with store.read() as session:
            dataset_id = session.scalar(withdrawn)
        if dataset_id is None:
            return
        try:
            with store.write() as session:
                _remove_some(session, dataset_id)
        except IntegrityError:
            raise ConflictError(f"Something refers to the deleted dataset {dataset_id}.", "Report this.") from None
        time.sleep(_PAUSE)


def _remove_some(session: Session, dataset_id: int) -> None:
    """Remove a batch of the dataset's rows, or the dataset itself once it has no traces."""
    # First, since they have no index on the trace alone, by which the database would look for each deleted one.
    key = (LeftOutScoresRow.evaluator_id, LeftOutScoresRow.trace_id, LeftOutScoresRow.gap)
    scores = select(*key).where(LeftOutScoresRow.dataset_id == dataset_id).limit(_BATCH)
    if rows := session.execute(scores).all():
        session.execute(delete(LeftOutScoresRow).where(tuple_(*key).in_(rows)))
        return
    mine = select(TraceRow.id).where(TraceRow.dataset_id == dataset_id).order_by(TraceRow.id).limit(_BATCH)
    # Another process may be removing other ones.
    if ids := session.scalars(mine.with_for_update(skip_locked=True)).all():
        session.execute(delete(TraceRow).where(TraceRow.id.in_(ids)))
    else:
        session.execute(delete(DatasetRow).where(DatasetRow.id == dataset_id))


def evaluators_on(session: Session, dataset_id: int) -> dict[int, str]:
    """Return the names of the evaluators that have judged or stress-tested traces of a dataset, by id and in the
    order of names."""
    of = [table.evaluator_id == EvaluatorRow.id for table in (JudgedRow, StressScoresRow)]
    on = [table.dataset_id == dataset_id for table in (JudgedRow, StressScoresRow)]
    there = or_(*(exists().where(*both) for both in zip(of, on, strict=True)))
    rows = session.execute(select(EvaluatorRow.id, EvaluatorRow.name).where(there).order_by(EvaluatorRow.name))
    return {row.id: row.name for row in rows}


def find_busy(session: Session, row: DatasetRow, fingerprint: str | None = None) -> ConflictError | None:
    """Return the error that names the active jobs that read the dataset or add to it, or None if there is none.
    With a `fingerprint`, judging jobs of other evaluators do not count."""
    active = select(JobRow).where(JobRow.state.in_(("queued", "running"))).order_by(JobRow.id)
    working = [
        job.evaluator or job.subject
        for job in session.scalars(active)
        if job.dataset_id == row.id or row.name in map((job.request or {}).get, ("dataset", "benchmark"))
        if fingerprint is None or job.fingerprint in (None, fingerprint)
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
        return ConflictError(
            f"People label it in {', '.join(campaigns)}.", "Delete the campaign first, or archive the dataset."
        )
    if disputes:
        stated = "A dispute" if disputes == 1 else f"{disputes:,} disputes"
        return ConflictError(f"{stated} of its gold labels would be lost.", "Archive it instead.")
    return None
