"""Renaming, archiving and deleting datasets.

A dataset is deleted in two parts. `delete_dataset` withdraws it in one short transaction, after which nothing finds
it and its name is free. `remove_withdrawn` then removes its rows a few hundred at a time, so that neither readers
nor other writers wait for long, however large the dataset is; it can be interrupted and continued by any process.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_hex

from sqlalchemy import ColumnElement, delete, func, or_, select, tuple_, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from stepsight.storage.database.jobs_schema import JobRow
from stepsight.storage.database.labelling_schema import CampaignRow, DisputeRow, ItemRow
from stepsight.storage.database.people_schema import ViewRow
from stepsight.storage.database.schema import (
    NAME_LENGTH,
    CalibrationRow,
    DatasetRow,
    DeletionRow,
    EvaluatorRow,
    JudgedRow,
    JudgmentRow,
    LeftOutScoresRow,
    TraceRow,
    check_name,
    now,
)
from stepsight.storage.database.store import ConflictError, NotFoundError, Store
from stepsight.storage.people.users import User, local_user

# The traces that are removed in one transaction, and the seconds that others have for theirs before the next one.
_BATCH = 200
_PAUSE = 0.02


@dataclass(frozen=True)
class Dependents:
    """What hangs on a dataset: how many traces and judgments it has, and the names of the rest.

    `left_out` is the number of traces that were scored without each of their steps. `working` describes the jobs
    that read or change the dataset now, and `jobs` is the number of those that have ended.
    """

    traces: int
    judgments: int
    left_out: int
    evaluators: tuple[str, ...]
    views: tuple[str, ...]
    jobs: int
    working: tuple[str, ...]
    campaigns: tuple[str, ...]
    disputes: int
    archived: bool

    @property
    def counts(self) -> dict[str, int]:
        """The numbers of what is deleted with the dataset, as they are recorded."""
        return {"traces": self.traces, "judgments": self.judgments, "scores without a step": self.left_out,
                "views": len(self.views), "jobs": self.jobs}  # fmt: skip

    @property
    def lines(self) -> list[str]:
        """A line for each kind of thing that is deleted with the dataset, such as `2 saved views: first,
        second`."""
        judgments = f"{_counted(self.judgments, 'judgment')} by {_counted(len(self.evaluators), 'evaluator')}"
        left_out = f"the scores of {_counted(self.left_out, 'trace')} without each of their steps"
        lines = {
            _counted(self.traces, "trace"): True,
            f"{judgments}: {', '.join(self.evaluators)}": self.evaluators,
            left_out: self.left_out,
            f"{_counted(len(self.views), 'saved view')}: {', '.join(self.views)}": self.views,
            f"{_counted(self.jobs, 'job')} that ended": self.jobs,
        }
        return [line for line, is_there in lines.items() if is_there]

    @property
    def obstacle(self) -> ConflictError | None:
        """The reason for which the dataset cannot be deleted now, or None."""
        if self.working:
            return _busy(self.working)
        if self.campaigns:
            names = ", ".join(self.campaigns)
            return ConflictError(f"People label it in {names}, and their labels are kept.", "Archive it instead.")
        if self.disputes:
            stated = "A dispute" if self.disputes == 1 else f"{self.disputes:,} disputes"
            return ConflictError(f"{stated} of its gold labels would be lost.", "Archive it instead.")
        return None


def read_dependents(store: Store, name: str) -> Dependents:
    """Count and name what hangs on a dataset. Raises `NotFoundError` if there is no dataset of this name."""
    with store.read() as session:
        return _dependents(session, _get(session, name))


def rename_dataset(store: Store, name: str, new: str) -> None:
    """Rename a dataset, and with it the dataset of saved views.

    Raises `NotFoundError` if it does not exist, `UserError` if the new name is invalid, and `ConflictError` if it
    is taken or a job is working on the dataset.
    """
    check_name(new, "the name of the dataset")
    with store.write() as session:
        row = _get(session, name, lock=True)
        if new == name:
            return
        if session.scalar(select(DatasetRow.id).where(DatasetRow.name == new)) is not None:
            raise _taken(new)
        if working := _working(session, row):
            raise _busy(working)
        row.name = new
        try:
            session.flush()
        except IntegrityError:
            raise _taken(new) from None
        session.execute(update(ViewRow).where(ViewRow.dataset == name).values(dataset=new))
        session.execute(update(CalibrationRow).where(CalibrationRow.dataset_id == row.id).values(dataset=new))


def archive_dataset(store: Store, name: str, archived: bool = True) -> None:
    """Archive a dataset, so that lists and choices leave it out, or list it again. Everything that names it still
    finds it. Raises `NotFoundError` if it does not exist."""
    with store.write() as session:
        _get(session, name, lock=True).archived = now() if archived else None


def delete_dataset(store: Store, name: str, user: User | None = None) -> Dependents:
    """Delete a dataset with its traces, judgments, ended jobs and saved views, record that `user`, by default the
    local one, did so, and return what was deleted. The rows of its traces stay until `remove_withdrawn` removes
    them.

    Raises `NotFoundError` if it does not exist, as when somebody else has just deleted it. Raises `ConflictError`
    if a job is working on it, or if people's labels or disputes belong to it.
    """
    user = user or local_user(store)
    with store.write() as session:
        row = _get(session, name, lock=True)
        dependents = _dependents(session, row)
        if dependents.obstacle:
            raise dependents.obstacle
        session.add(DeletionRow(kind="dataset", name=name, person=user.name, counts=dependents.counts))
        session.execute(delete(ViewRow).where(ViewRow.dataset == name))
        session.execute(delete(JobRow).where(JobRow.dataset_id == row.id))
        session.execute(delete(JudgedRow).where(JudgedRow.dataset_id == row.id))
        row.name, row.withdrawn = f"{name[: NAME_LENGTH - 40]} deleted {token_hex(8)}", now()
    return dependents


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


def _get(session: Session, name: str, *, lock: bool = False) -> DatasetRow:
    wanted = select(DatasetRow).where(DatasetRow.name == name, DatasetRow.withdrawn.is_(None))
    row = session.scalars(wanted.with_for_update() if lock else wanted).one_or_none()
    if row is None:
        raise NotFoundError(f"There is no dataset {name!r:.80}.", "It may have been deleted or renamed meanwhile.")
    return row


def _dependents(session: Session, row: DatasetRow) -> Dependents:
    def count(*conditions: ColumnElement[bool]) -> int:
        return session.scalar(select(func.count()).where(*conditions)) or 0

    judged = select(EvaluatorRow.id, EvaluatorRow.name).join(JudgedRow, JudgedRow.evaluator_id == EvaluatorRow.id)
    evaluators = session.execute(judged.where(JudgedRow.dataset_id == row.id).order_by(EvaluatorRow.name)).all()
    ids = [one.id for one in evaluators]
    views = session.scalars(select(ViewRow.name).where(ViewRow.dataset == row.name).order_by(ViewRow.name))
    # A campaign may draw hidden gold items from another dataset.
    items = select(ItemRow.campaign_id).join(TraceRow, TraceRow.id == ItemRow.trace_id)
    uses = or_(CampaignRow.dataset_id == row.id, CampaignRow.id.in_(items.where(TraceRow.dataset_id == row.id)))
    campaigns = select(CampaignRow.name).where(uses).order_by(CampaignRow.name)
    working = _working(session, row)
    return Dependents(
        traces=count(TraceRow.dataset_id == row.id),
        # With the evaluators, whose index then serves.
        judgments=count(JudgmentRow.dataset_id == row.id, JudgmentRow.evaluator_id.in_(ids)),
        left_out=count(LeftOutScoresRow.dataset_id == row.id),
        evaluators=tuple(one.name for one in evaluators),
        views=tuple(views),
        jobs=count(JobRow.dataset_id == row.id),
        working=working,
        campaigns=tuple(session.scalars(campaigns)),
        disputes=count(DisputeRow.trace_id == TraceRow.id, TraceRow.dataset_id == row.id),
        archived=row.archived is not None,
    )


def _working(session: Session, row: DatasetRow) -> tuple[str, ...]:
    """Describe the active jobs that read the dataset or add to it."""
    active = select(JobRow).where(JobRow.state.in_(("queued", "running"))).order_by(JobRow.id)
    return tuple(
        job.evaluator or job.subject
        for job in session.scalars(active)
        if job.dataset_id == row.id or row.name in map((job.request or {}).get, ("dataset", "benchmark"))
    )


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _busy(working: tuple[str, ...]) -> ConflictError:
    return ConflictError(f"A job is working on it: {', '.join(working)}.", "Cancel the job or let it finish.")


def _taken(name: str) -> ConflictError:
    return ConflictError(f"There is a dataset {name!r:.80}.", "Choose another name.")
