"""Background jobs: judging a dataset, importing, or fetching an evaluator.

A job is its row, with the parameters of its task as one JSON. A separate worker process runs a job and renews its
claim by sending heartbeats. If the heartbeats stop, the next worker takes the job over, and the first worker,
should it recover, finds that it has lost the job. Judgments that are already in the store are not repeated.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pydantic.dataclasses import dataclass
from sqlalchemy import Select, case, func, or_, select, update
from sqlalchemy.orm import Session

from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.validation import STRICT, Record, validate
from stepsight.storage.database.jobs_schema import ACTIVE, Job, State, Task
from stepsight.storage.database.schema import DatasetRow, TraceRow, check_name, in_range, now
from stepsight.storage.database.store import NotFoundError, Store

if TYPE_CHECKING:
    # Loading these takes long, and only their attributes are read here.
    from stepsight.core.hubs.hub_cache import HubModel

LEASE = timedelta(seconds=30)
"""The time without a heartbeat after which a job is free."""

# For each store, the functions to call after a job has been queued.
_LISTENERS: WeakKeyDictionary[Store, list[Callable[[], None]]] = WeakKeyDictionary()
# The number of workers in a row that may die during a job without progress.
_ATTEMPTS = 3


@dataclass(frozen=True, config=STRICT)
class Judging(Record):
    """A request to judge a dataset. `evaluator` is a name to show to users, `spec` is the shipped name or the
    folder from which a worker loads the evaluator, `mode` is one of `core.judgment.Mode`, and `dtype` is the data
    type of the weights."""

    evaluator: str
    spec: str
    fingerprint: str
    mode: str
    dtype: str = "float32"


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
    """Open a session for queueing a job. Notify the `on_queued` listeners after it commits."""
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
    dtype: str = "float32",
) -> Job:
    """Queue a judging job and return it. If a job for the same work is already queued or running, return that job.

    Raises `NotFoundError` if the dataset does not exist, and `UserError` if the evaluator's name cannot be stored.
    """
    check_name(evaluator, "the name of the evaluator")
    request = Judging(evaluator, spec, fingerprint, Mode(mode).value, dtype)
    with _queueing(store) as session:
        if session.get(DatasetRow, in_range(dataset_id)) is None:
            raise NotFoundError(f"There is no dataset {dataset_id}.", "It may have been deleted.")
        total = session.scalar(select(func.count()).where(TraceRow.dataset_id == dataset_id)) or 0
        job = Job(task=Task.JUDGE, request=asdict(request), dataset_id=dataset_id, total=total)
        return _queue(session, _find_same_judging(session, job) or job)


def start_request(store: Store, task: Task, subject: str, request: Mapping[str, Any], total: int = 0) -> Job:
    """Queue a job of any task but judging and return it. If a job with the same request is already queued or
    running, return that job. `subject` describes it to users, and `total` is the amount of work, such as bytes."""
    with _queueing(store) as session:
        active = session.scalars(select(Job).where(Job.task == task, Job.state.in_(ACTIVE)))
        same = next((job for job in active if job.request == request), None)
        return _queue(session, same or Job(task=task, subject=subject, request=dict(request), total=total))


def read_judging(job: Job) -> Judging:
    """Parse the request of a stored job. Raises `UserError` if it is not to judge a dataset."""
    return validate(Judging, dict(job.request), "the request of the job")


def list_jobs(store: Store, limit: int = 50, offset: int = 0) -> list[Job]:
    """List jobs, newest first."""
    with store.read() as session:
        return list(session.scalars(select(Job).order_by(Job.id.desc()).limit(limit).offset(offset)))


def count_active(store: Store) -> int:
    """Return the number of jobs that wait or run."""
    with store.read() as session:
        return session.scalar(select(func.count()).select_from(Job).where(Job.state.in_(ACTIVE))) or 0


def list_requests(store: Store, task: Task, failed_since: timedelta = timedelta()) -> list[Job]:
    """List the imports or fetches that are queued, running, or failed within `failed_since`, oldest first. A failed
    one is left out if a later job is about the same file, benchmark or model."""
    failed = (Job.state == State.FAILED) & (Job.finished > now() - failed_since)
    listed = select(Job).where(Job.task == task, or_(Job.state.in_(ACTIVE), failed))
    with store.read() as session:
        jobs = list(session.scalars(listed.order_by(Job.id)))
        first = min((job.id for job in jobs if job.state is State.FAILED), default=None)
        if first is None:
            return jobs
        later = select(Job.id, Job.request).where(Job.task == task, Job.id > first)
        newest = {_subject_key(row.request): row.id for row in session.execute(later.order_by(Job.id))}
    return [job for job in jobs if job.state.is_active or newest.get(_subject_key(job.request), 0) <= job.id]


def _subject_key(request: Mapping[str, Any]) -> tuple[Any, ...]:
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
        if not job.state.is_active:
            raise UserError(f"Job {job.id} cannot be cancelled: it is {job.state}.")
        job.state, job.finished = State.CANCELLED, now()
        return _detach(session, job)


def resume_job(store: Store, job_id: int) -> Job:
    """Queue a failed or cancelled job again, to continue with the remaining work.

    Raises `NotFoundError` if the job does not exist. Raises `UserError` if it is neither failed nor cancelled, or
    if a different job is doing the same work.
    """
    with _queueing(store) as session:
        job = _get(session, job_id)
        if job.state not in (State.FAILED, State.CANCELLED):
            raise UserError(f"Job {job.id} cannot be resumed: it is {job.state}.")
        if job.task == Task.JUDGE:
            _check_alone(session, job)
        job.state, job.attempts, job.left_out, job.reason = State.QUEUED, 0, 0, ""
        job.worker = job.heartbeat = job.started = job.finished = None
        return _detach(session, job)


def take_job(
    store: Store,
    worker: str,
    tasks: Collection[Task] = tuple(Task),
    *,
    queued_only: bool = False,
) -> Job | None:
    """Assign the oldest available job of `tasks` to `worker` and return it, or return None if no job is available.

    A job is available if it is queued or, unless `queued_only` is set, if its worker has not sent a heartbeat
    within `LEASE`. Two workers never get the same job. A job fails instead if three workers in a row have ended
    without making progress on it. A heartbeat that is more than `LEASE` in the future counts as missing: it was
    written before the clock was set back, and a live worker would have sent a newer one.
    """

    def oldest() -> Select[Job]:
        # Computed again each time, since waiting for the database may take longer than a lease.
        moment = now()
        is_gone = or_(Job.heartbeat < moment - LEASE, Job.heartbeat > moment + LEASE)
        free = Job.state == State.QUEUED
        if not queued_only:
            free = or_(free, (Job.state == State.RUNNING) & is_gone)
        return select(Job).where(free, Job.task.in_(tasks)).order_by(Job.id).limit(1)

    # If there is no job, there is no need to wait for the write lock.
    with store.read() as session:
        if session.scalars(oldest().with_only_columns(Job.id)).one_or_none() is None:
            return None
    with store.write() as session:
        while True:
            job = session.scalars(oldest()).one_or_none()
            if job is None:
                return None
            if job.attempts < _ATTEMPTS:
                break
            job.state, job.finished = State.FAILED, now()
            job.reason = f"{job.attempts} workers in a row ended without making progress."
            session.flush()
        job.state, job.worker, job.attempts = State.RUNNING, worker, job.attempts + 1
        job.started = job.heartbeat = now()
        job.left_out, job.reason, job.began = 0, "", job.done
        return _detach(session, job)


def update_job(store: Store, job_id: int, worker: str, **values: Any) -> bool:
    """Change columns of a job if `worker` still holds it, such as its `dataset_id`, or its `state` with a `reason`
    when it is done or has failed. Returns False if the worker has lost the job and must stop.

    A change of `done` is a heartbeat too; with `total`, it says how much work there is and was done before.
    """
    # A job that makes progress is not stuck, however often its worker dies, unless it starts over each time.
    # Whatever the previous worker stored counts as progress, even if it died before its first heartbeat.
    if (done := values.get("done")) is not None:
        values["heartbeat"] = now()
        is_new = "total" in values
        if is_new:
            values |= {"began": done, "started": values["heartbeat"]}
        got_on = Job.task.in_((Task.JUDGE, Task.FETCH)) & ((Job.done if is_new else Job.began) < done)
        values["attempts"] = case((got_on, int(is_new)), else_=Job.attempts)
    if values.get("state") in (State.DONE, State.FAILED):
        values["finished"] = now()
    if values.get("state") == State.QUEUED:
        values |= {"worker": None, "heartbeat": None, "attempts": 0}
    held = (Job.id == job_id, Job.worker == worker, Job.state == State.RUNNING)
    with store.write() as session:
        changed = update(Job).where(*held).values(**values).execution_options(synchronize_session=False)
        return bool(session.execute(changed).rowcount)  # type: ignore[attr-defined]


def take_for(store: Store, job_id: int, worker: str, fingerprint: str) -> bool:
    """Record that a judging job now uses the evaluator `fingerprint`, because the evaluator has changed since the
    job was queued.

    Returns False if the worker no longer holds the job. Raises `UserError` if a different job is doing the same
    work.
    """
    with _queueing(store) as session:
        job = _get(session, job_id)
        if job.worker != worker or job.state != State.RUNNING:
            return False
        job.request = job.request | {"fingerprint": fingerprint}
        _check_alone(session, job)
        return True


def _check_alone(session: Session, job: Job) -> None:
    other = _find_same_judging(session, job)
    if other is not None:
        raise UserError(f"Job {other.id} does the same and is {other.state}.", "Let that one finish.")


def _find_same_judging(session: Session, job: Job) -> Job | None:
    active = select(Job).where(Job.task == Task.JUDGE, Job.dataset_id == job.dataset_id, Job.state.in_(ACTIVE))
    with session.no_autoflush:
        others = [other for other in session.scalars(active) if other is not job]
    return next((other for other in others if (other.fingerprint, other.mode) == (job.fingerprint, job.mode)), None)


def _queue(session: Session, job: Job) -> Job:
    session.add(job)
    return _detach(session, job)


def _detach(session: Session, job: Job) -> Job:
    """Return a job as it is stored, to be read without the session."""
    session.flush()
    session.refresh(job)
    session.expunge(job)
    return job


def _get(session: Session, job_id: int) -> Job:
    job = session.get(Job, in_range(job_id))
    if job is None:
        raise NotFoundError(f"There is no job {job_id}.", "It may have been deleted with its dataset.")
    return job


@dataclass(frozen=True, config=STRICT)
class Fetch(Record):
    """A request to fetch the hub model `repo` at the commit `revision`.

    If the model depends on other models, `parts` maps the `part_key` of each of them to a commit, so that a job
    resumed days later still fetches the same versions.
    """

    repo: str
    revision: str
    parts: Mapping[str, str] = field(default_factory=dict)


def start_fetch(store: Store, remote: "HubModel") -> Job:
    """Queue a job that downloads a hub model if it is not yet downloaded, and loads it. Raises `UserError` if the
    name of the model cannot be stored."""
    check_name(remote.repo, "the name of the model")
    request = asdict(Fetch(remote.repo, remote.revision, remote.pins))
    return start_request(store, Task.FETCH, remote.repo, request, remote.total)


def read_fetch(request: Mapping[str, Any]) -> Fetch:
    """Parse the request of a stored job. Raises `UserError` if it is not a fetch."""
    return validate(Fetch, dict(request), "the request of the job")
