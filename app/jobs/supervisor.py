"""The supervisor, which keeps a worker process running for as long as the server runs."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import TracebackType

from stepsight.storage.database.location import VARIABLE

ENDED = "a thread has ended"
"""The line by which a worker tells its server that it can no longer carry out jobs of every task."""

_COMMAND = (sys.executable, "-m", "stepsight.app.jobs.worker")
# How many seconds a worker has to exit by itself, and the longest pause before a worker is restarted.
_PATIENCE = 5.0
_LONGEST_PAUSE = 60.0


class Supervisor:
    """Starts a worker for a store, and restarts it if it ends. The worker never outlives this process.

    `address` is the store's URL, which is passed in the environment because it may contain a password. `arguments`
    are added to the worker's command line. `give_room` is called with the number of bytes of memory that the worker
    asks for.
    """

    def __init__(
        self, address: str, arguments: Sequence[str] = (), give_room: Callable[[int], None] | None = None
    ) -> None:
        self._give_room = give_room
        self._arguments = tuple(arguments)
        self._environment = os.environ | {VARIABLE: address}
        self._over = threading.Event()
        self._ending_since = 0.0
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._has_ended = False
        self._thread = threading.Thread(target=self._keep_running, name="supervisor", daemon=True)

    @property
    def pid(self) -> int | None:
        """The worker's process id, or None while no worker is running."""
        process = self._process
        return process.pid if process is not None and process.poll() is None else None

    @property
    def is_whole(self) -> bool:
        """True if a worker is running, and has a thread for each task."""
        return self.pid is not None and not self._has_ended

    def wake(self) -> None:
        """Make the worker look for a job immediately."""
        # A worker that has exited will look for jobs when it is restarted.
        with self._lock, suppress(OSError, ValueError):
            if self._process is not None and self._process.stdin is not None:
                self._process.stdin.write(b"\n")

    def __enter__(self) -> "Supervisor":
        self._thread.start()
        return self

    def stop(self) -> None:
        """Ask the worker to end and do not start a new worker. Returns without waiting for the worker."""
        with self._lock:
            if not self._over.is_set():
                self._over.set()
                self._ending_since = time.monotonic()
                if self._process is not None:
                    _close(self._process)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        process = self._process
        if process is not None:
            try:
                process.wait(max(0.0, self._ending_since + _PATIENCE - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._thread.join(_PATIENCE)

    def _keep_running(self) -> None:
        pause = 1.0
        while not self._over.is_set():
            with self._lock:
                if self._over.is_set():
                    return
                self._process, self._has_ended = self._start(), False
            began = time.monotonic()
            self._listen(self._process)
            self._process.wait()
            with self._lock:
                _close(self._process)
            self._over.wait(pause)
            lasted = time.monotonic() - began > _LONGEST_PAUSE
            pause = 1.0 if lasted else min(2 * pause, _LONGEST_PAUSE)

    def _listen(self, process: "subprocess.Popen[bytes]") -> None:
        """Handle the worker's requests for memory and reports that one of its threads has ended, until the worker
        ends."""
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                # PyTorch and its libraries may write there too.
                if self._give_room is not None and line.strip().isdigit():
                    self._give_room(int(line))
                self._has_ended |= line.strip() == ENDED.encode()

    def _start(self) -> "subprocess.Popen[bytes]":
        # The worker gets its own session: Ctrl-C in the terminal is for the server, which then ends the worker.
        process = subprocess.Popen(
            [*_COMMAND, *self._arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=self._environment,
            start_new_session=True,
        )
        assert process.stdin is not None
        # A worker that is not reading its input has been woken often enough.
        os.set_blocking(process.stdin.fileno(), False)
        return process


def _close(process: "subprocess.Popen[bytes]") -> None:
    """Close the worker's standard input, which tells it to end."""
    assert process.stdin is not None
    process.stdin.close()
