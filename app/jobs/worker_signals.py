"""Signals that tell workers to look for jobs now, or to stop."""

import threading

ENDED = "a thread has ended"
"""The line by which a worker tells its server that it can no longer carry out jobs of every task."""


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
