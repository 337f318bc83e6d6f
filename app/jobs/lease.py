"""A worker's claim on a job, and the signals that stop workers or make them look for a job."""

import logging
import threading
import time
from collections.abc import Iterator

from stepsight.core.errors import UserError
from stepsight.core.judgment import Event, Judgment, judgments_of
from stepsight.storage.database.jobs_schema import Job, State
from stepsight.storage.database.store import Store
from stepsight.storage.jobs import jobs

_LOG = logging.getLogger("stepsight.worker")
# Seconds between heartbeats.
_BEAT = 2.0


class StoppedError(Exception):
    """Raised when the worker was asked to stop."""


class LostError(Exception):
    """Raised when the job was cancelled, or a different worker has taken it over."""


class WorkerSignals:
    """Signals to all workers of a process. Any thread may send them."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._stopping = False
        self._looks = 0

    @property
    def is_stopping(self) -> bool:
        return self._stopping

    @property
    def looks(self) -> int:
        """The number of times that workers have been told to look for a job."""
        return self._looks

    def look(self) -> None:
        """Make every idle worker look for a job."""
        with self._changed:
            self._looks += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """Make every worker stop."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def wait(self, seconds: float, looks: int | None = None) -> bool:
        """Wait for at most `seconds`, and return True if the workers have to stop. The wait ends early on a stop
        signal. If `looks` is given, it also ends once the property of this name differs from it."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or looks not in (None, self._looks), seconds)
            return self._stopping


class JobLease:
    """A worker's claim on a job, renewed by a thread that writes heartbeats. `lost` is set once the job no longer
    belongs to the worker."""

    def __init__(self, store: Store, job: Job, worker: str, signals: WorkerSignals) -> None:
        self._store, self._job, self._worker, self._signals = store, job, worker, signals
        self._done, self._left_out, self._reason = job.done, 0, ""
        self._total = 0
        self.lost = threading.Event()
        self._over = threading.Event()
        self._last = time.monotonic()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def __enter__(self) -> "JobLease":
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()

    def begin(self, total: int, done: int) -> None:
        """Record the job's total amount of work and the amount already done. Raises `LostError` if the job is
        lost."""
        self._done = done
        if not jobs.update_job(self._store, self._job.id, self._worker, total=total, done=done):
            raise LostError

    def take_for(self, fingerprint: str) -> None:
        """Like `jobs.take_for`, but raise `LostError` if the job is lost."""
        if not jobs.take_for(self._store, self._job.id, self._worker, fingerprint):
            raise LostError

    def check(self) -> None:
        """Raise `StoppedError` if the worker has to stop, or `LostError` if the job is lost."""
        if self._signals.is_stopping:
            raise StoppedError
        if self.lost.is_set():
            raise LostError

    def watch(self, events: Iterator[Event]) -> Iterator[Judgment]:
        """Yield the judgments among events, one per trace, and count them as progress. Raises `LostError` once the
        job is lost, and `StoppedError` once the worker is told to stop, also between two judgments, because a
        server may take long to respond."""

        def checked() -> Iterator[Event]:
            for event in events:
                self.check()
                yield event

        for judgment in judgments_of(checked()):
            self._wait()
            yield judgment
            self._done += 1

    def report(self, done: int, total: int) -> None:
        """Record how much of the work is done, such as bytes of an import, and the total. Raises `LostError` once
        the job is lost, and `StoppedError` once the worker is told to stop."""
        self.check()
        if total != self._total:
            self._total = total
            self.begin(total, done)
        self._done = done

    def name_dataset(self, dataset_id: int, left_out: int) -> None:
        """Record the dataset of the job, such as that of an import, and how many rows were left out."""
        self._left_out = left_out
        jobs.update_job(self._store, self._job.id, self._worker, dataset_id=dataset_id)

    def leave_out(self, trace: object, error: UserError) -> None:
        """Count a trace that is left out. For the first such trace, record the reason."""
        self._left_out += 1
        self._reason = self._reason or error.message

    def finish(self, state: State, reason: str = "") -> None:
        self._write()
        jobs.update_job(self._store, self._job.id, self._worker, state=state, reason=reason or self._reason)

    def release(self) -> None:
        self._write()
        jobs.update_job(self._store, self._job.id, self._worker, state=State.QUEUED)

    def _wait(self) -> None:
        """Wait until the last heartbeat is recent, because a different worker may have taken the job otherwise."""
        while time.monotonic() - self._last > jobs.LEASE.total_seconds() / 2 and not self.lost.wait(0.05):
            if self._signals.is_stopping:
                raise StoppedError
        if self.lost.is_set():
            raise LostError

    def _beat(self) -> None:
        while not self._over.wait(_BEAT) and not self.lost.is_set():
            try:
                self._write()
            except UserError as error:
                _LOG.warning("%s", error)

    def _write(self) -> None:
        began = time.monotonic()
        progress = {"done": self._done, "left_out": self._left_out, "reason": self._reason}
        if jobs.update_job(self._store, self._job.id, self._worker, **progress):
            self._last = began
        else:
            self.lost.set()
