"""Leave-one-out scores of traces, computed on demand and cached."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from stepsight.app.evidence.evidence import Evidence
from stepsight.app.evidence.on_demand import MOST_TOKENS, OnDemand
from stepsight.core.errors import Check, UserError
from stepsight.core.left_out import Gap, LeaveOneOut

if TYPE_CHECKING:
    from stepsight.core.scoring.scorer import Scorer


class LeftOuts(OnDemand[LeaveOneOut]):
    """Leave-one-out scores by the evaluators loaded on this server, computed for one trace at a time."""

    def __init__(self) -> None:
        super().__init__(lambda left_out: left_out.probs.nbytes)

    def of(
        self, evidence: Evidence, gap: Gap, client_disconnected: Callable[[], bool] = lambda: False
    ) -> LeaveOneOut:
        """Return the leave-one-out scores of a trace. If the store does not have them, compute them now. Once
        `client_disconnected()` is True, the work stops.

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
        make = partial(_leave_out, evidence.scorer, evidence, gap)
        return self.get(key, evidence.evaluator, make, client_disconnected)


def _leave_out(ask: "Callable[[], Scorer]", evidence: Evidence, gap: Gap, check: Check) -> LeaveOneOut:
    scorer = ask()
    tokens = len(scorer.evaluator.encode(evidence.trace)) * len(evidence)
    if tokens > MOST_TOKENS:
        raise UserError(
            f"Leaving out each of {len(evidence)} steps reads {tokens:,} tokens, more than this page does.",
            "Scorer.leave_one_out does it in Python.",
        )
    check()
    return scorer.leave_one_out(evidence.trace, gap, check)
