"""Leave-one-out scores of traces, computed when a reader asks for them, and cached."""

import threading
from collections.abc import Callable
from time import monotonic

from stepsight.app.evidence.evidence import Evidence
from stepsight.app.scoring.batcher import BusyError
from stepsight.core.errors import UserError
from stepsight.core.evidence import LeaveOneOut
from stepsight.core.keyed_cache import KeyedCache

# The total size of cached scores in bytes.
_KEPT = 12_000_000
# The number of requests that may wait for another one, and roughly how many seconds one takes.
_WAITING = 8
_SECONDS = 5
# Seconds between looks whether the reader still waits.
_LOOKS = 0.2
# The limit for one request: there is a pass for each step, each about as long as the trace.
_MOST_TOKENS = 2_100_000


class ReaderLeftError(UserError):
    """Raised if the reader who asked for the scores has left."""


class LeftOuts:
    """Leave-one-out scores by the evaluators loaded on this server, computed for one trace at a time. It is
    thread-safe."""

    def __init__(self) -> None:
        self._cache = KeyedCache(_KEPT)
        self._working = threading.Lock()
        self._places = threading.BoundedSemaphore(_WAITING)

    def of(self, evidence: Evidence, client_disconnected: Callable[[], bool] = lambda: False) -> LeaveOneOut:
        """Return the leave-one-out scores of a trace. If the store does not have them, compute them now. Once
        `client_disconnected()` is True, the work stops.

        Raises `UserError` if the evaluator cannot score on this server or the trace is too long, and `BusyError` if
        too many requests are waiting.
        """
        stored = evidence.find_left_out()
        if stored is not None:
            return stored
        if evidence.scorer is None:
            raise UserError(
                f"{evidence.evaluator} is not loaded here, so no step can be left out.",
                "Fetch it on the Evaluators page, or import its scores with steps left out.",
            )
        key = (evidence.about.fingerprint, evidence.trace.digest)
        check = _check(client_disconnected)
        while True:
            try:
                scores: LeaveOneOut = self._cache.get(
                    key, None, lambda: self._leave_out(evidence, check), lambda scores: scores.probs.nbytes
                )
                return scores
            except ReaderLeftError:
                # If the reader that left is another one, whose work this one has waited for, it is begun again.
                check()

    def _leave_out(self, evidence: Evidence, check: Callable[[], None]) -> LeaveOneOut:
        assert evidence.scorer is not None
        if not self._places.acquire(blocking=False):
            raise BusyError(evidence.evaluator, _SECONDS)
        try:
            with self._working:
                scorer = evidence.scorer()
                tokens = len(scorer.evaluator.encode(evidence.trace)) * len(evidence)
                if tokens > _MOST_TOKENS:
                    reads = f"Leaving out each of {len(evidence)} steps reads {tokens:,} tokens"
                    raise UserError(
                        f"{reads}, more than this page does.", "Scorer.leave_one_out does it in Python."
                    )
                for scores in scorer.stream_left_out(evidence.trace):
                    if scores is not None:
                        return scores
                    check()
                raise AssertionError("no scores")
        finally:
            self._places.release()


def _check(client_disconnected: Callable[[], bool]) -> Callable[[], None]:
    """Return a check that raises `ReaderLeftError` once the client has disconnected. It asks no more often than
    every `_LOOKS` seconds, since that takes a turn of the event loop."""
    looked, has_left = 0.0, False

    def check() -> None:
        nonlocal looked, has_left
        if not has_left and monotonic() - looked >= _LOOKS:
            looked, has_left = monotonic(), client_disconnected()
        if has_left:
            raise ReaderLeftError("Nobody waits for these scores any more.", "Open the page again.")

    return check
