"""A judgment: what one evaluator said of one trace in one mode."""

from dataclasses import dataclass
from enum import StrEnum

from core.hindsight import Hindsight
from core.scores import StepScores
from core.trace import Trace


class Mode(StrEnum):
    """offline: every step in one pass over the whole trace; online: step `i` on its own input
    `(q, h_1 … h_i)`; hindsight: every step after every later step, which holds the other two."""

    OFFLINE = "offline"
    ONLINE = "online"
    HINDSIGHT = "hindsight"


@dataclass(frozen=True, eq=False)
class Judgment:
    """The scores of every sub-step of `trace`; in hindsight mode the whole triangle.

    `solution` is what the evaluator said of the whole by itself, where it did (see `Outputs`). A sub-step of which
    it said nothing has a row of zeros.
    """

    trace: Trace
    mode: Mode
    result: StepScores | Hindsight
    solution: float | None = None

    @property
    def hindsight(self) -> Hindsight | None:
        return self.result if isinstance(self.result, Hindsight) else None

    @property
    def online(self) -> StepScores | None:
        """The online scores, or None where the mode does not give them."""
        return self._scores(Mode.ONLINE)

    @property
    def offline(self) -> StepScores | None:
        """The offline scores, or None where the mode does not give them."""
        return self._scores(Mode.OFFLINE)

    def _scores(self, mode: Mode) -> StepScores | None:
        if isinstance(self.result, Hindsight):
            return self.result.online if mode == Mode.ONLINE else self.result.offline
        return self.result if self.mode == mode else None
