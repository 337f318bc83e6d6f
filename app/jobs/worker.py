"""The worker process, which carries out queued jobs next to the server.

    python -m stepsight.app.jobs.worker --device cuda --dtype bfloat16

The worker ends when its standard input is closed, which happens in whatever way the server that started it ends.
Any input before that makes the worker look for a job immediately.
"""

import argparse
import logging
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from stepsight.app.jobs.supervisor import ENDED
from stepsight.app.options.command import PLACEMENT, is_placed, read_placement
from stepsight.app.web.logs import FORMATS, set_up_logs
from stepsight.core.errors import UserError
from stepsight.core.evaluators.opening import fetch_evaluator
from stepsight.core.judgment import Event, Judgment, Mode, judgments_of
from stepsight.core.models.memory import check_memory, has_room
from stepsight.core.models.placement import Placement
from stepsight.storage.database.jobs_schema import Job, State, Task
from stepsight.storage.database.store import Store, UnavailableError, open_store
from stepsight.storage.jobs import jobs
from stepsight.storage.jobs.imports import run_import
from stepsight.storage.jobs.jobs import Judging, read_fetch, read_judging
from stepsight.storage.jobs.uploads import sweep_uploads
from stepsight.storage.judgments.evaluators import register_loaded
from stepsight.storage.judgments.judgments import count_missing, missing_traces, save_judgments
from stepsight.storage.traces.queries import find_dataset

if TYPE_CHECKING:
    from stepsight.app.jobs.evaluators import JobEvaluators
    from stepsight.core.models.evaluator_base import Evaluator


_LOG = logging.getLogger("stepsight.worker")
# Seconds between looks for jobs queued by other processes, between heartbeats, and after a failure of the database.
_POLL = 5.0
_BEAT = 2.0
_PATIENCE = 5.0
# The worker's lower priority, as niceness and among sessions, since requests that somebody waits for come first.
_LESS = 10
# Seconds that others have to release memory.
_ROOM = 10.0
# Seconds without a job after which the last evaluator is released.
_IDLE = 60.0


class _StoppedError(Exception):
    """Raised when the worker was asked to stop."""


class _LostError(Exception):
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


class Worker:
    """Carries out jobs of the given `tasks`, one at a time.

    When `signals` tell the worker to stop, it stops at the next trace or part of a file, and the job returns to the
    queue. `place` applies to evaluators that are not shipped; None means the processor. If memory is short,
    `ask_room` is called with the number of bytes that an evaluator needs, so that other processes can free memory.
    """

    def __init__(
        self,
        store: Store,
        signals: WorkerSignals | None = None,
        place: Placement | None = None,
        tasks: Collection[Task] = tuple(Task),
        ask_room: Callable[[int], None] | None = None,
    ) -> None:
        self.store = store
        self.place = place
        self.tasks = tasks
        self.ask_room = ask_room
        self.signals = signals or WorkerSignals()
        self.name = f"{socket.gethostname()[:100]} {os.getpid()} {time.time_ns()}"
        self._evaluators: JobEvaluators | None = None
        self._worked = time.monotonic()
        self._clock = _Clock()

    def run(self) -> None:
        """Carry out jobs until told to stop. Jobs queued by this process start immediately."""
        with jobs.on_queued(self.store, self.signals.look):
            while not self.signals.is_stopping:
                self._run_one()

    def run_thread(self) -> None:
        """Like `run`, but if that ends for any other reason, tell the server and stop all threads of this process.

        The process then ends, and the server starts another one. Otherwise nobody would notice that jobs of these
        tasks wait forever.
        """
        try:
            self.run()
        except BaseException:
            _LOG.exception("the thread for %s has ended", ", ".join(self.tasks))
        finally:
            if not self.signals.is_stopping:
                _tell_server(ENDED)
                self.signals.stop()

    def _run_one(self) -> None:
        """Carry out a job. If no job is available, wait until one is queued, but at most `_POLL` seconds."""
        looks = self.signals.looks
        try:
            if self.work_one():
                self._worked = time.monotonic()
            else:
                # The server may need the memory of a large evaluator.
                if time.monotonic() - self._worked > _IDLE and self._evaluators is not None:
                    self._evaluators.rest()
                self.signals.wait(_POLL, looks)
        except UserError as error:
            # A job that was held when the database failed is taken up again when its heartbeat is old.
            _LOG.warning("%s", error)
            self.signals.wait(_PATIENCE)

    @property
    def evaluators(self) -> "JobEvaluators":
        """The evaluators for jobs, created on first use."""
        if self._evaluators is None:
            # It brings PyTorch, which a worker without a job does not need.
            from stepsight.app.jobs.evaluators import JobEvaluators

            self._evaluators = JobEvaluators(self.place, self._find_room)
        return self._evaluators

    def _find_room(self, name: str, needed: int) -> None:
        """Ask for memory to be freed if too little is free for an evaluator called `name`. Raises `UserError` if
        that does not free enough."""
        until = time.monotonic() + _ROOM
        if self.ask_room is not None and not has_room(needed):
            self.ask_room(needed)
            while not has_room(needed) and time.monotonic() < until and not self.signals.wait(0.1):
                pass
        check_memory(name, needed)

    def work_one(self) -> bool:
        """Take a job from the queue and carry it out. Returns False if no job is available. Raises
        `UnavailableError` if the database fails."""
        job = jobs.take_job(self.store, self.name, tasks=self.tasks, queued_only=self._clock.was_set())
        if job is None:
            return False
        with JobLease(self.store, job, self.name, self.signals) as hold:
            try:
                hold.finish(State.DONE, _WORK[job.task](self, job, hold))
            except _LostError:
                pass
            except _StoppedError:
                hold.release()
            except UnavailableError:
                raise
            except UserError as error:
                hold.finish(State.FAILED, str(error.without_options()))
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # libraries in Rust panic with one that is no Exception
                if not hold.lost.is_set():
                    _LOG.exception("job %d failed", job.id)
                    hold.finish(State.FAILED, f"{type(error).__name__}: {error}"[:1000])
        return True

    def _fetch(self, job: Job, hold: "JobLease") -> str:
        """Fetch a model and load it once as a check. Returns a description of the evaluator."""
        fetch, place = read_fetch(job.request), self.place or Placement()
        fetched = fetch_evaluator(fetch.repo, fetch.revision, fetch.parts, hold.watch_bytes, place, self._find_room)
        return f"{fetched.name}: {fetched.format} format, inputs of up to {fetched.context:,} tokens."

    def _import(self, job: Job, hold: "JobLease") -> str:
        """Import a file, and return a description of the outcome."""
        imported = run_import(self.store, job.request, hold.watch_bytes)
        hold.name_dataset(imported.dataset_id, imported.left_out)
        return imported.summary

    def _judge(self, job: Job, hold: "JobLease") -> str:
        """Judge the traces that the evaluator has not judged yet, and return a description of the outcome."""
        request, dataset = read_judging(job), find_dataset(self.store, job.dataset)
        scorer = self.evaluators.scorer(request)
        remark = self._accept(job, request, scorer.evaluator)
        evaluator = register_loaded(self.store, scorer.evaluator)
        mode = Mode(request.mode)
        judged_in = self.store, dataset.id, evaluator.id, mode
        missing = count_missing(*judged_in)
        hold.begin(dataset.traces, dataset.traces - missing)
        traces = missing_traces(*judged_in)
        events = scorer.stream(traces, mode, hold.leave_out)
        save_judgments(self.store, evaluator.id, hold.watch(events))
        return remark

    def _accept(self, job: Job, request: Judging, evaluator: "Evaluator") -> str:
        """Check that the job may continue with `evaluator`, although it may have changed since the job was queued.

        Returns a remark on the change, or "". Raises `UserError` if the weights have a different type, which makes
        them a different evaluator, or if a different job is doing the same work. Raises `_LostError` if the job no
        longer belongs to this worker.
        """
        if evaluator.fingerprint == request.fingerprint:
            return ""
        if evaluator.dtype != request.dtype:
            raise UserError(
                f"{request.spec}: the job was started for another type of weights than {evaluator.dtype}.",
                "Start it again.",
            )
        if not jobs.take_for(self.store, job.id, self.name, evaluator.fingerprint):
            raise _LostError
        return "The evaluator has changed since the job was started; it judged as it is now."


_WORK: dict[Task, Callable[[Worker, Job, "JobLease"], str]] = {
    Task.JUDGE: Worker._judge,
    Task.FETCH: Worker._fetch,
    Task.IMPORT: Worker._import,
}
"""What carries a job out, and returns a description of the outcome."""


class _Clock:
    """Detects that the machine's clock was set, or that it stood still while the machine slept. Afterwards, the
    heartbeats of all jobs look too old or lie in the future, until their workers write new ones."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()
        self._until = 0.0

    def was_set(self) -> bool:
        """True if the clock was set so recently that some workers may not have written a heartbeat since."""
        offset, lease = time.time() - time.monotonic(), jobs.LEASE.total_seconds()
        if abs(offset - self._offset) > lease / 2:
            self._offset, self._until = offset, time.monotonic() + lease
        return time.monotonic() < self._until


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
        """Record the job's total amount of work and the amount already done. Raises `_LostError` if the job is
        lost."""
        self._done = done
        if not jobs.update_job(self._store, self._job.id, self._worker, total=total, done=done):
            raise _LostError

    def check(self) -> None:
        """Raise `_StoppedError` if the worker has to stop, or `_LostError` if the job is lost."""
        if self._signals.is_stopping:
            raise _StoppedError
        if self.lost.is_set():
            raise _LostError

    def watch(self, events: Iterator[Event]) -> Iterator[Judgment]:
        """Yield the judgments among events, one per trace, and count them as progress. Raises `_LostError` once the
        job is lost, and `_StoppedError` once the worker is told to stop, also between two judgments, because a
        server may take long to respond."""

        def checked() -> Iterator[Event]:
            for event in events:
                self.check()
                yield event

        for judgment in judgments_of(checked()):
            self._wait()
            yield judgment
            self._done += 1

    def watch_bytes(self, done: int, total: int) -> None:
        """Record the number of bytes of an import or a fetch that are done, and the total. Raises `_LostError` once
        the job is lost, and `_StoppedError` once the worker is told to stop."""
        self.check()
        if total != self._total:
            self._total = total
            self.begin(total, done)
        self._done = done

    def name_dataset(self, dataset_id: int, left_out: int) -> None:
        """Record which dataset an import has created, and how many rows it left out."""
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
                raise _StoppedError
        if self.lost.is_set():
            raise _LostError

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


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out the jobs of the store at `STEPSIGHT_DB` until standard input is closed."""
    parser = argparse.ArgumentParser(prog="python -m stepsight.app.jobs.worker")
    PLACEMENT(parser)
    parser.add_argument("--log-format", choices=FORMATS, default=FORMATS[0])
    args = parser.parse_args(argv)
    set_up_logs(args.log_format)
    signals = WorkerSignals()
    if hasattr(signal, "pthread_sigmask"):
        # Before any other thread exists, which would receive the signal.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Thread(target=_follow_signal, args=(signals,), daemon=True).start()
    threading.Thread(target=_follow_input, args=(signals,), daemon=True).start()
    _lower_process()
    with open_store() as store:
        with suppress(UserError):
            sweep_uploads(store)
        # A placement needs PyTorch, which a worker without a job should not load.
        place = read_placement(args) if is_placed(args) else None
        # Imports have their own thread, so that nobody who adds a file waits for a judging job or a large fetch.
        beside = [
            threading.Thread(target=Worker(store, signals, place, (task,), _ask_server).run_thread, name=task.value)
            for task in Task
            if task != Task.JUDGE
        ]
        for thread in beside:
            thread.start()
        Worker(store, signals, place, (Task.JUDGE,), _ask_server).run_thread()
        for thread in beside:
            thread.join()
    return 0


def _lower_process() -> None:
    """Lower the priority of this process permanently.

    Linux may group processes by session and divide the processor among the sessions first, by the priority of each
    session. Niceness then has no effect between sessions. If this process leads a session, the priority of the
    session is therefore lowered too.
    """
    if hasattr(os, "nice"):
        os.nice(_LESS)
    with suppress(OSError):
        if os.getsid(0) == os.getpid():
            Path("/proc/self/autogroup").write_text(str(_LESS), encoding="ascii")


def _ask_server(needed: int) -> None:
    """Ask the server that started this process to free `needed` bytes of memory."""
    _tell_server(str(needed))


def _tell_server(line: str) -> None:
    with suppress(OSError):
        print(line, flush=True)


def _follow_signal(signals: WorkerSignals) -> None:
    """Stop the workers on SIGTERM, which a service manager sends to this process as well as to the server."""
    signal.sigwait({signal.SIGTERM})
    signals.stop()


def _follow_input(signals: WorkerSignals) -> None:
    """Make the workers look for a job on any input, and stop them when the input ends."""
    while os.read(sys.stdin.fileno(), 4096):
        signals.look()
    signals.stop()


if __name__ == "__main__":
    sys.exit(main())
