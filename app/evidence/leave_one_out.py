"""Leave-one-out scores of traces, computed on demand and cached."""

import threading
from collections.abc import Callable
from functools import partial

from stepsight.app.evidence.evidence import Evidence
from stepsight.app.scoring.batcher import BusyError
from stepsight.core.errors import UserError
from stepsight.core.keyed_cache import KeyedCache
from stepsight.core.left_out import Gap, LeaveOneOut
from stepsight.core.scoring.scorer import Scorer

# The total size of cached matrices in bytes.
_KEPT = 12_000_000
# The number of requests that may wait for another one, and roughly how many seconds one takes.
_WAITING = 8
_SECONDS = 5
# The limit for one request: there is a pass for each step, each about as long as the trace.
_MOST_TOKENS = 1_500_000


class LeftOuts:
    """Leave-one-out scores by the evaluators loaded on this server, computed for one trace at a time. It is
    thread-safe."""

    def __init__(self) -> None:
        self._cache = KeyedCache(_KEPT)
        self._working = threading.Lock()
        self._places = threading.BoundedSemaphore(_WAITING)

    def of(self, evidence: Evidence, gap: Gap) -> LeaveOneOut:
        """Return the leave-one-out scores of a trace. If the store does not have them, compute them now.

        Raises `UserError` if the evaluator cannot score on this server or the trace is too long, and `BusyError` if
        too many requests are waiting.
        """
        stored = evidence.find_left_out(gap)
        if stored is not None:
            return stored
        if evidence.scorer is None:
            raise UserError(
                f"{evidence.evaluator} is not loaded here, so no step can be left out.",
                "Fetch it on the Evaluators page, or import its scores with steps left out.",
            )
        key = (evidence.about.fingerprint, evidence.trace.digest, gap)
        return self._cache.get(key, None, partial(self._work_out, evidence.scorer, evidence, gap), _size)

    def _work_out(self, scorer: Callable[[], Scorer], evidence: Evidence, gap: Gap) -> LeaveOneOut:
        if not self._places.acquire(blocking=False):
            raise BusyError(evidence.evaluator, _SECONDS)
        try:
            with self._working:
                return _leave_out(scorer(), evidence, gap)
        finally:
            self._places.release()


def _leave_out(scorer: Scorer, evidence: Evidence, gap: Gap) -> LeaveOneOut:
    tokens = len(scorer.evaluator.encode(evidence.trace)) * len(evidence)
    if tokens > _MOST_TOKENS:
        raise UserError(
            f"Leaving out each of {len(evidence)} steps reads {tokens:,} tokens, more than this page does.",
            "Scorer.leave_one_out does it in Python.",
        )
    return scorer.leave_one_out(evidence.trace, gap)


def _size(left_out: LeaveOneOut) -> int:
    """Return the size in bytes of the leave-one-out matrix."""
    return left_out.probs.nbytes
