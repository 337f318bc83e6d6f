"""Background jobs: judging a dataset, importing, or fetching an evaluator.

A separate worker process runs a job and renews its claim by sending heartbeats. If the heartbeats stop, the next
worker takes the job over, and the first worker, should it recover, finds that it has lost the job. Judgments that
are already in the store are not repeated.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from weakref import WeakKeyDictionary

from sqlalchemy import Select, Update, case, func, or_, select, update
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.storage.database.jobs_schema import JobRow
from stepsight.storage.database.schema import DatasetRow, TraceRow, check_name, in_range, now
from stepsight.storage.database.store import NotFoundError, Store

LEASE = timedelta(seconds=30)
"""The time without a heartbeat after which a job is free."""

# For each store, the functions to call after a job was queued.
_LISTENERS: WeakKeyDictionary[Store, list[Callable[[], None]]] = WeakKeyDictionary()
# The number of workers in a row that may end over a job without progress.
_ATTEMPTS = 3
# The lock for queueing an import or a fetch: any number, as long as every process uses the same.
_REQUESTS = 5_749_207_319
_COLUMNS = (
    "id", "task", "subject", "request", "dataset_id", "evaluator", "spec", "fingerprint", "mode", "state", "total",
    "began", "done", "left_out", "reason", "worker", "created", "started", "heartbeat", "finished",
)  # fmt: skip


class Task(StrEnum):
    JUDGE = "judge"
    IMPORT = "import"
    FETCH = "fetch"


class State(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_active(self) -> bool:
        return self in ACTIVE


ACTIVE = (State.QUEUED, State.RUNNING)


@dataclass(frozen=True)
class Job:
    """A job and its progress.

    For a judging job, `evaluator` is a name to show to users, and `spec` is the shipped name or the folder from
    which a worker loads the evaluator. `mode` is the mode to judge in. `total` counts the traces to judge, and
    `done` those already judged, of which `began` were done before the current worker took the job. `left_out`
    counts the traces that are too long for the evaluator. `reason` says why the job failed, or why the first such
    trace was left out.

    For an import or a fetch, `subject` describes the job to users and `request` describes it to the worker.
    `total`, `began` and `done` are in bytes, and `left_out` counts rows. `reason` may also be the outcome in words.
    `dataset` is empty until the dataset exists.
    """

    id: int
    task: Task
    subject: str
    request: Mapping[str, Any]
    dataset_id: int | None
    dataset: str
    evaluator: str
    spec: str
    fingerprint: str
    mode: Mode | None
    state: State
    total: int
    began: int
    done: int
    left_out: int
    reason: str
    worker: str | None
    created: datetime
    started: datetime | None
    heartbeat: datetime | None
    finished: datetime | None

    @property
    def progress(self) -> float:
        """The fraction of the work that is done, from 0 to 1. A dataset without traces counts as done."""
        if self.task != Task.JUDGE:
            return 1.0 if self.state == State.DONE else min(1.0, self.done / self.total) if self.total else 0.0
        return min(1.0, (self.done + self.left_out) / self.total) if self.total else 1.0

    @property
    def rate(self) -> float | None:
        """Traces or bytes per second since the worker took the job, or None if that is not yet known."""
        if self.state != State.RUNNING or self.started is None or self.heartbeat is None:
            return None
        seconds = (self.heartbeat - self.started).total_seconds()
        return (self.done - self.began) / seconds if seconds > 0 and self.done > self.began else None

    @property
    def seconds_left(self) -> float | None:
        """The estimated remaining time in seconds at the current rate, or None if it is unknown."""
        passed = self.done + (self.left_out if self.task == Task.JUDGE else 0)
        return max(0, self.total - passed) / self.rate if self.rate else None


@contextmanager
def on_queued(store: Store, call: Callable[[], None]) -> Iterator[None]:
    """During the `with` block, call `call` after every job that this process queues, in the thread that queues the
    job."""
    listeners = _LISTENERS.setdefault(store, [])
    listeners.append(call)
    try:
        yield
    finally:
        listeners.remove(call)


@contextmanager
def _queueing(store: Store) -> Iterator[Session]:
    """Open a session for queueing a job and notify the `on_queued` listeners after it commits."""
    with store.write() as session:
        yield session
    for call in tuple(_LISTENERS.get(store, ())):
        call()


def start_job(
    store: Store,
    dataset_id: int,
    *,
    evaluator: str,
    spec: str,
    fingerprint: str,
    mode: Mode | str,
) -> Job:
    """Queue a judging job and return it. If a job for the same work is already queued or running, return that job.

    Raises `NotFoundError` if the dataset does not exist, and `UserError` if the evaluator's name cannot be stored.
    """
    mode = Mode(mode)
    check_name(evaluator, "the name of the evaluator")
    with _queueing(store) as session:
        _lock_dataset(session, dataset_id)
        row = session.scalars(_same(dataset_id, fingerprint, mode)).one_or_none()
        if row is None:
            total = session.scalar(select(func.count()).where(TraceRow.dataset_id == dataset_id)) or 0
            row = JobRow(dataset_id=dataset_id, evaluator=evaluator, spec=spec, fingerprint=fingerprint,
                         mode=mode.value, state=State.QUEUED.value, total=total)  # fmt: skip
            session.add(row)
            session.flush()
        return _get(session, row.id)


def start_request(store: Store, task: Task, subject: str, request: Mapping[str, Any], total: int = 0) -> Job:
    """Queue an import or a fetch and return it. If a job with the same request is already queued or running, return
    that job. `total` is the number of bytes to transfer."""
    with _queueing(store) as session:
        _lock_requests(session)
        same = select(JobRow).where(JobRow.task == task.value, JobRow.state.in_(ACTIVE))
        row = next((row for row in session.scalars(same) if row.request == request), None)
        if row is None:
            row = JobRow(task=task.value, subject=subject, request=dict(request), state=State.QUEUED.value,
                         total=total)  # fmt: skip
            session.add(row)
            session.flush()
        return _get(session, row.id)


def list_jobs(store: Store, limit: int = 50, offset: int = 0) -> list[Job]:
    """List jobs, newest first."""
    with store.read() as session:
        rows = session.execute(_jobs().order_by(JobRow.id.desc()).limit(limit).offset(offset))
        return [_job(row) for row in rows.mappings()]


def list_requests(store: Store, task: Task, failed_since: timedelta = timedelta()) -> list[Job]:
    """List the imports or fetches that are queued, running, or failed within `failed_since`, oldest first. A failed
    one is left out if a later job is about the same file, benchmark or model."""
    failed = (JobRow.state == State.FAILED) & (JobRow.finished > now() - failed_since)
    wanted = _jobs().where(JobRow.task == task.value, or_(JobRow.state.in_(ACTIVE), failed))
    with store.read() as session:
        jobs = [_job(row) for row in session.execute(wanted.order_by(JobRow.id)).mappings()]
        first = min((job.id for job in jobs if job.state is State.FAILED), default=None)
        if first is None:
            return jobs
        later = select(JobRow.id, JobRow.request).where(JobRow.task == task.value, JobRow.id > first)
        newest = {_about(row.request or {}): row.id for row in session.execute(later.order_by(JobRow.id))}
    return [job for job in jobs if job.state.is_active or newest.get(_about(job.request), 0) <= job.id]


def _about(request: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return a key that identifies the file, benchmark or model of a request."""
    return tuple(map(request.get, ("upload", "benchmark", "repo")))


def get_job(store: Store, job_id: int) -> Job:
    """Return the job with this id. Raises `NotFoundError` if the job does not exist."""
    with store.read() as session:
        return _get(session, job_id)


def cancel_job(store: Store, job_id: int) -> Job:
    """Cancel a queued or running job. Judgments made so far are kept.

    The job's worker notices at its next heartbeat. Raises `NotFoundError` if the job does not exist, and
    `UserError` if it has already ended.
    """
    with store.write() as session:
        job = _get(session, job_id)
        active = update(JobRow).where(JobRow.id == job.id, JobRow.state.in_(ACTIVE))
        if not _changed(session, active.values(state=State.CANCELLED.value, finished=now())):
            raise UserError(f"Job {job.id} cannot be cancelled: it is {_get(session, job.id).state}.")
        return _get(session, job.id)


def resume_job(store: Store, job_id: int) -> Job:
    """Queue a failed or cancelled job again, to continue with the remaining work.

    Raises `NotFoundError` if the job does not exist. Raises `UserError` if it is neither failed nor cancelled, or
    if a different job is doing the same work.
    """
    with _queueing(store) as session:
        job = _get(session, job_id)
        if job.dataset_id is not None:
            _lock_dataset(session, job.dataset_id)
        row = session.get_one(JobRow, job_id, with_for_update=True, populate_existing=True)
        if row.state not in (State.FAILED, State.CANCELLED):
            raise UserError(f"Job {job.id} cannot be resumed: it is {row.state}.")
        if job.task == Task.JUDGE:
            _check_alone(session, job)
        row.state, row.attempts, row.left_out, row.reason = State.QUEUED.value, 0, 0, ""
        row.worker = row.heartbeat = row.started = row.finished = None
        session.flush()
        return _get(session, job_id)


def take_job(
    store: Store,
    worker: str,
    lease: timedelta = LEASE,
    tasks: Collection[Task] = tuple(Task),
    *,
    queued_only: bool = False,
) -> Job | None:
    """Assign the oldest available job of `tasks` to `worker` and return it, or return None if no job is available.

    A job is available if it is queued or, unless `queued_only` is set, if its worker has not sent a heartbeat
    within `lease`. Two workers never get the same job. A job fails instead if three workers in a row have ended
    without making progress on it. A heartbeat that is more than `lease` in the future counts as missing: it was
    written before the clock was set back, and a live worker would have sent a newer one.
    """

    def oldest() -> Select[JobRow]:
        # Made anew each time, since waiting for the database may take longer than a lease.
        moment = now()
        is_gone = or_(JobRow.heartbeat < moment - lease, JobRow.heartbeat > moment + lease)
        free = JobRow.state == State.QUEUED
        if not queued_only:
            free = or_(free, (JobRow.state == State.RUNNING) & is_gone)
        return select(JobRow).where(free, JobRow.task.in_(tasks)).order_by(JobRow.id).limit(1)

    # If there is none, no lock for writing is waited for.
    with store.read() as session:
        if session.scalars(oldest().with_only_columns(JobRow.id)).one_or_none() is None:
            return None
    with store.write() as session:
        while True:
            row = session.scalars(oldest().with_for_update(skip_locked=True)).one_or_none()
            if row is None:
                return None
            if row.attempts < _ATTEMPTS:
                break
            row.state, row.finished = State.FAILED.value, now()
            row.reason = f"{row.attempts} workers in a row ended without making progress."
            session.flush()
        row.state, row.worker = State.RUNNING.value, worker
        row.attempts += 1
        row.started = row.heartbeat = now()
        row.left_out, row.reason, row.began = 0, "", row.done
        session.flush()
        return _get(session, row.id)


def begin_job(store: Store, job_id: int, worker: str, *, total: int, done: int) -> bool:
    """Record the amount of work once the worker has determined it. Returns False if the worker no longer holds the
    job."""
    # What the worker before stored is progress, even if it ended before its first heartbeat.
    got_on = (JobRow.task != Task.IMPORT.value) & (JobRow.done < done)
    values = {"total": total, "done": done, "began": done, "started": now(), "heartbeat": now()}
    return _change(store, job_id, worker, values | {"attempts": case((got_on, 1), else_=JobRow.attempts)})


def take_for(store: Store, job_id: int, worker: str, fingerprint: str) -> bool:
    """Record that a judging job now uses the evaluator `fingerprint`, because the evaluator has changed since the
    job was queued.

    Returns False if the worker no longer holds the job. Raises `UserError` if a different job is doing the same
    work.
    """
    with store.write() as session:
        job = _get(session, job_id)
        assert job.dataset_id is not None
        _lock_dataset(session, job.dataset_id)
        assert job.mode is not None
        other = session.scalars(_same(job.dataset_id, fingerprint, job.mode)).one_or_none()
        if other is not None and other.id != job_id:
            raise UserError(f"Job {other.id} does the same and is {other.state}.", "Let that one finish.")
        held = (JobRow.id == job_id, JobRow.worker == worker, JobRow.state == State.RUNNING)
        return _changed(session, update(JobRow).where(*held).values(fingerprint=fingerprint))


def name_dataset(store: Store, job_id: int, worker: str, dataset_id: int) -> bool:
    """Record which dataset an import created. Returns False if the worker no longer holds the job."""
    return _change(store, job_id, worker, {"dataset_id": dataset_id})


def beat(store: Store, job_id: int, worker: str, *, done: int, left_out: int, reason: str = "") -> bool:
    """Record a heartbeat and the job's progress. Returns False if the worker has lost the job and must stop."""
    # A job that makes progress is not stuck, however often its worker ends; an import begins anew each time.
    got_on = (JobRow.task != Task.IMPORT.value) & (JobRow.began < done)
    attempts = case((got_on, 0), else_=JobRow.attempts)
    values = {"heartbeat": now(), "done": done, "left_out": left_out, "reason": reason, "attempts": attempts}
    return _change(store, job_id, worker, values)


def release_job(store: Store, job_id: int, worker: str) -> bool:
    """Put a job back in the queue because its worker was asked to stop. Returns False if the worker no longer holds
    the job."""
    values = {"state": State.QUEUED.value, "worker": None, "heartbeat": None, "attempts": 0}
    return _change(store, job_id, worker, values)


def finish_job(store: Store, job_id: int, worker: str, state: State, reason: str = "") -> bool:
    """Mark a job as done or failed. Returns False if the worker no longer holds the job."""
    return _change(store, job_id, worker, {"state": state.value, "finished": now(), "reason": reason})


def _change(store: Store, job_id: int, worker: str, values: Mapping[str, Any]) -> bool:
    """Update a job if `worker` still holds it. Returns False if it does not."""
    held = (JobRow.id == job_id, JobRow.worker == worker, JobRow.state == State.RUNNING)
    with store.write() as session:
        return _changed(session, update(JobRow).where(*held).values(**values))


def _changed(session: Session, statement: Update) -> bool:
    result = session.execute(statement.execution_options(synchronize_session=False))
    return bool(result.rowcount)  # type: ignore[attr-defined]


def _lock_dataset(session: Session, dataset_id: int) -> None:
    """Prevent other sessions from starting jobs on this dataset until the transaction ends. SQLite needs no lock
    for this, because it allows only one writer. Raises `NotFoundError` if the dataset does not exist."""
    locked = select(DatasetRow.id).where(DatasetRow.id == dataset_id).with_for_update()
    if session.scalar(locked) is None:
        raise NotFoundError(f"There is no dataset {dataset_id}.", "It may have been deleted.")


def _lock_requests(session: Session) -> None:
    """Prevent other sessions, on any server, from queueing an import or a fetch until the transaction ends. SQLite
    needs no lock for this, because it allows only one writer."""
    if session.get_bind().dialect.name == "postgresql":
        session.execute(select(func.pg_advisory_xact_lock(_REQUESTS)))


def _check_alone(session: Session, job: Job) -> None:
    assert job.dataset_id is not None
    assert job.mode is not None
    other = session.scalars(_same(job.dataset_id, job.fingerprint, job.mode)).one_or_none()
    if other is not None:
        raise UserError(f"Job {other.id} does the same and is {other.state}.", "Let that one finish.")


def _same(dataset_id: int, fingerprint: str, mode: Mode) -> Select[Any]:
    return select(JobRow).where(
        JobRow.dataset_id == dataset_id,
        JobRow.fingerprint == fingerprint,
        JobRow.mode == mode.value,
        JobRow.state.in_(ACTIVE),
    )


def _jobs() -> Select[Any]:
    return select(*[getattr(JobRow, name) for name in _COLUMNS], DatasetRow.name.label("dataset")).outerjoin(
        DatasetRow, DatasetRow.id == JobRow.dataset_id
    )


def _get(session: Session, job_id: int) -> Job:
    statement = _jobs().where(JobRow.id == in_range(job_id))
    row = session.execute(statement).mappings().one_or_none()
    if row is None:
        raise NotFoundError(f"There is no job {job_id}.", "It may have been deleted with its dataset.")
    return _job(row)


def _job(row: Mapping[Any, Any]) -> Job:
    values = dict(row)
    # Only a job that judges has all of these.
    for name in ("dataset", "evaluator", "spec", "fingerprint"):
        values[name] = values[name] or ""
    values["mode"] = None if row["mode"] is None else Mode(row["mode"])
    kinds = {"task": Task(row["task"]), "state": State(row["state"]), "request": row["request"] or {}}
    return Job(**(values | kinds))
