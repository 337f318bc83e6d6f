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
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from pathlib import Path

from stepsight.app.jobs.kinds import KINDS, JobEvaluators
from stepsight.app.jobs.lease import JobLease, LostError, StoppedError, WorkerSignals
from stepsight.app.jobs.supervisor import ENDED
from stepsight.app.options.command import PLACEMENT, is_placed, read_placement
from stepsight.app.web.logs import FORMATS, set_up_logs
from stepsight.core.errors import UserError
from stepsight.core.models.placement import Placement
from stepsight.storage.database.jobs_schema import State, Task
from stepsight.storage.database.store import Store, UnavailableError, open_store
from stepsight.storage.jobs import jobs
from stepsight.storage.jobs.uploads import sweep_uploads

_LOG = logging.getLogger("stepsight.worker")
# Seconds between checks for jobs queued by other processes, and after a database failure.
_POLL = 5.0
_PATIENCE = 5.0
# The worker's niceness and its priority among sessions, low since requests that somebody waits for come first.
_LESS = 10
# Seconds without a job after which the last evaluator is released.
_IDLE = 60.0


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
        self.store, self.tasks, self.signals = store, tasks, signals or WorkerSignals()
        self.name = f"{socket.gethostname()[:100]} {os.getpid()} {time.time_ns()}"
        self._evaluators = JobEvaluators(place, self.signals, ask_room)
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
                if time.monotonic() - self._worked > _IDLE:
                    self._evaluators.rest()
                self.signals.wait(_POLL, looks)
        except UserError as error:
            # A job that was running when the database failed is resumed when its heartbeat is old.
            _LOG.warning("%s", error)
            self.signals.wait(_PATIENCE)

    def work_one(self) -> bool:
        """Take a job from the queue and carry it out. Returns False if no job is available. Raises
        `UnavailableError` if the database fails."""
        job = jobs.take_job(self.store, self.name, tasks=self.tasks, queued_only=self._clock.was_set())
        if job is None:
            return False
        with JobLease(self.store, job, self.name, self.signals) as hold:
            try:
                hold.finish(State.DONE, KINDS[job.task].run(self.store, self._evaluators, job, hold))
            except LostError:
                pass
            except StoppedError:
                hold.release()
            except UnavailableError:
                raise
            except UserError as error:
                hold.finish(State.FAILED, str(error.without_options()))
            except (KeyboardInterrupt, SystemExit):
                raise
            except BaseException as error:  # panics in Rust libraries are not an Exception
                if not hold.lost.is_set():
                    _LOG.exception("job %d failed", job.id)
                    hold.finish(State.FAILED, f"{type(error).__name__}: {error}"[:1000])
        return True


class _Clock:
    """Detects that the machine's clock was set, or that it stood still while the machine slept. Afterwards, the
    heartbeats of all jobs look too old or are in the future, until their workers write new ones."""

    def __init__(self) -> None:
        self._offset = time.time() - time.monotonic()
        self._until = 0.0

    def was_set(self) -> bool:
        """True if the clock was set so recently that some workers may not have written a heartbeat since."""
        offset, lease = time.time() - time.monotonic(), jobs.LEASE.total_seconds()
        if abs(offset - self._offset) > lease / 2:
            self._offset, self._until = offset, time.monotonic() + lease
        return time.monotonic() < self._until


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out the jobs of the store at `STEPSIGHT_DB` until standard input is closed."""
    parser = argparse.ArgumentParser(prog="python -m stepsight.app.jobs.worker")
    PLACEMENT(parser)
    parser.add_argument("--log-format", choices=FORMATS, default=FORMATS[0])
    args = parser.parse_args(argv)
    set_up_logs(args.log_format)
    signals = WorkerSignals()
    if hasattr(signal, "pthread_sigmask"):
        # This runs before any other thread exists, since that thread might receive the signal.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Thread(target=_follow_signal, args=(signals,), daemon=True).start()
    threading.Thread(target=_follow_input, args=(signals,), daemon=True).start()
    _lower_process()
    with open_store() as store:
        with suppress(UserError):
            sweep_uploads(store)
        # A placement needs PyTorch, which a worker without a job should not load.
        place = read_placement(args) if is_placed(args) else None
        # Imports have their own thread, so that they never wait for a judging job or a large fetch.
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
