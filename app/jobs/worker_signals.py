"""Signals to workers: to look for jobs now, and to stop."""

import threading


class WorkerSignals:
    """Signals to the workers of a process, which any thread may send."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._stopping = False
        self._looks = 0

    @property
    def is_stopping(self) -> bool:
        return self._stopping

    @property
    def looks(self) -> int:
        """The number of times that there was reason to look for a job."""
        return self._looks

    def look(self) -> None:
        """Have every idle worker look for a job."""
        with self._changed:
            self._looks += 1
            self._changed.notify_all()

    def stop(self) -> None:
        """Have every worker end."""
        with self._changed:
            self._stopping = True
            self._changed.notify_all()

    def wait(self, seconds: float, looks: int | None = None) -> bool:
        """Wait until the workers have to stop, or there was reason for more than this many `looks`; True if they
        have to stop."""
        with self._changed:
            self._changed.wait_for(lambda: self._stopping or looks not in (None, self._looks), seconds)
            return self._stopping
