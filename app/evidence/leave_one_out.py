"""Leave-one-out scores of traces: computed when they are asked for, and kept for a while."""

import threading
from collections import OrderedDict

from stepsight.app.evidence.evidence import Evidence
from stepsight.app.scoring.batcher import BusyError
from stepsight.core.errors import UserError
from stepsight.core.evidence import LeaveOneOut
from stepsight.core.scoring.scorer import Scorer

# Entries of kept triangles in all, 12 bytes each.
_KEPT = 1_000_000
# Those that wait while another is worked out, and about how long that takes.
_WAITING = 8
_SECONDS = 5
# What one question may cost: the passes are about as long as the trace, and there is one for each step.
_MOST_TOKENS = 1_500_000


class LeftOuts:
    """Leave-one-out scores by evaluators that are loaded here, one trace at a time. Safe to use from several
    threads."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, str], LeaveOneOut] = OrderedDict()
        self._lock = threading.Lock()
        self._working = threading.Lock()
        self._places = threading.BoundedSemaphore(_WAITING)

    def of(self, evidence: Evidence) -> LeaveOneOut:
        """The scores of one trace. Raises `UserError` where the evaluator cannot score here or the trace asks too
        much, `BusyError` where too many are waiting."""
        if evidence.scorer is None:
            raise UserError(
                f"{evidence.evaluator} is not loaded here, so no step can be left out.",
                "Start with --evaluator and its folder.",
            )
        key = (evidence.about.fingerprint, evidence.trace.digest)
        if (kept := self._find(key)) is not None:
            return kept
        if not self._places.acquire(blocking=False):
            raise BusyError(evidence.evaluator, _SECONDS)
        try:
            with self._working:
                # Another one may have asked the same.
                return self._find(key) or self._work_out(key, evidence.scorer(), evidence)
        finally:
            self._places.release()

    def _find(self, key: tuple[str, str]) -> LeaveOneOut | None:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            return self._kept.get(key)

    def _work_out(self, key: tuple[str, str], scorer: Scorer, evidence: Evidence) -> LeaveOneOut:
        tokens = len(scorer.evaluator.encode(evidence.trace)) * len(evidence)
        if tokens > _MOST_TOKENS:
            raise UserError(
                f"Leaving out each of {len(evidence)} steps reads {tokens:,} tokens, more than this page does.",
                "Scorer.leave_one_out does it in Python.",
            )
        left_out = scorer.leave_one_out(evidence.trace)
        with self._lock:
            self._kept[key] = left_out
            while len(self._kept) > 1 and sum(_size(kept) for kept in self._kept.values()) > _KEPT:
                self._kept.popitem(last=False)
        return left_out


def _size(left_out: LeaveOneOut) -> int:
    return len(left_out) * (len(left_out) + 1) // 2
