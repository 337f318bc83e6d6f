"""A judgment: the scores that one evaluator gives one trace in one mode."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from stepsight.core.arrays import Floats32
from stepsight.core.errors import UserError, counted
from stepsight.core.scores import Hindsight, StepScores
from stepsight.core.trace import Trace


class Mode(StrEnum):
    """The part of the solution that the evaluator sees when it scores a step.

    - `offline`: every step is scored in one pass over the whole trace.
    - `online`: step `i`, with all its sub-steps, is scored on its own input `(q, h_1 … h_i)`.
    - `hindsight`: every sub-step is scored again after each later sub-step. This includes the other two modes.
    """

    OFFLINE = "offline"
    ONLINE = "online"
    HINDSIGHT = "hindsight"


@dataclass(frozen=True)
class Usage:
    """The cost of a judgment obtained from a server.

    `calls` counts the calls that the server answered, and `unread` the answers in which no verdict was found.
    `prompt_tokens` and `completion_tokens` count the tokens of the prompts and of the answers, or are None if the
    server does not report them.
    """

    calls: int
    unread: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.calls + other.calls,
            self.unread + other.unread,
            _sum(self.prompt_tokens, other.prompt_tokens),
            _sum(self.completion_tokens, other.completion_tokens),
        )

    def __str__(self) -> str:
        words = [counted(self.calls, "call")]
        if self.prompt_tokens is not None and self.completion_tokens is not None:
            words.append(f"{self.prompt_tokens:,} tokens read and {self.completion_tokens:,} written")
        if self.unread:
            words.append(f"{self.unread:,} without a readable verdict")
        return ", ".join(words)


def _sum(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else first + second


@dataclass(frozen=True, eq=False)
class Judgment:
    """The scores of every sub-step of `trace`. In hindsight mode, `result` is the whole hindsight matrix.

    `solution` is the evaluator's own score of the whole solution, or None if it gives none (see `Outputs`).
    `rationale` holds the evaluator's reasons in words, and `spent` the cost of a judgment obtained from a server. A
    sub-step without scores has a row of zeros. If `result` is a hindsight matrix with a row for each sub-step of
    the trace, its `ends` are set from the trace. For a stored judgment, `created` is the time at which it was made,
    and `stale` is True if the trace has changed since then.
    """

    trace: Trace
    mode: Mode
    result: StepScores | Hindsight
    solution: float | None = None
    rationale: str = ""
    spent: Usage | None = None
    created: datetime | None = None
    stale: bool = False

    def __post_init__(self) -> None:
        ends = self.trace.step_ends
        if isinstance(self.result, Hindsight) and len(self.trace.steps) != len(ends) == len(self.result):
            object.__setattr__(self, "result", replace(self.result, ends=ends))

    @property
    def hindsight(self) -> Hindsight | None:
        return self.result if isinstance(self.result, Hindsight) else None

    @property
    def online(self) -> StepScores | None:
        """The online scores, or None if the judgment's mode does not include them."""
        return self._scores(Mode.ONLINE)

    @property
    def offline(self) -> StepScores | None:
        """The offline scores, or None if the judgment's mode does not include them."""
        return self._scores(Mode.OFFLINE)

    def _scores(self, mode: Mode) -> StepScores | None:
        if isinstance(self.result, Hindsight):
            return self.result.offline if mode == Mode.OFFLINE else self.result.online
        return self.result if self.mode == mode else None


@dataclass(frozen=True, eq=False)
class StepScore:
    """The online score of a sub-step that is known before the judgment of its trace. `trace` is the number of the
    trace among those that are judged, and `row` has the shape (3,)."""

    trace: int
    substep: int
    row: Floats32


@dataclass(frozen=True, eq=False)
class NoJudgment:
    """Takes the place of the judgment of a trace if a critic wrote no readable verdict on it."""

    trace: Trace
    error: UserError


Event = Judgment | StepScore | NoJudgment | None
"""An event while traces are judged. None is yielded between two parts of the work, or while waiting for a server,
so that whoever reads the events can stop there."""


Skip = Callable[[Trace, UserError], object]
"""Called with a trace that gets no judgment, and the reason."""


def judgments_of(events: Iterable[Event], on_skip: Skip | None = None) -> Iterator[Judgment]:
    """Yield the judgments among events. If a trace gets none, call `on_skip`, or raise the error without it."""
    for event in events:
        if isinstance(event, Judgment):
            yield event
        elif isinstance(event, NoJudgment):
            if on_skip is None:
                raise event.error
            on_skip(event.trace, event.error)
