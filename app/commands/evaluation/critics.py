"""Running critics from a command: their expected cost, their judgments, and their actual cost."""

import sys
from collections.abc import Iterable, Iterator

from stepsight.core.critics.critic_prompts import CallEstimate
from stepsight.core.critics.evaluator import Critic
from stepsight.core.errors import UserError
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.scoring.scorer_base import Skip
from stepsight.core.trace import Trace

# The number of reasons that are printed.
_PRINTED = 5


def confirm(evaluator: Evaluator, traces: Iterable[Trace], mode: Mode, *, yes: bool, alone: bool = True) -> None:
    """Print the expected cost of a critic's hindsight judgments and, unless `yes` is True, ask whether to continue.

    Raises `UserError` if the user declines. Also raises it if nobody can be asked, because there is no terminal or
    because several processes were launched (`alone` is False).
    """
    if not (isinstance(evaluator, Critic) and mode == Mode.HINDSIGHT):
        return
    takes = sum((evaluator.estimate(trace, mode) for trace in traces), CallEstimate())
    instead = "score in another mode, which takes fewer calls"
    _confirm(evaluator.name, mode.value, takes, instead, yes=yes, alone=alone)


def confirm_stress(evaluator: Evaluator, traces: Iterable[Trace], variants: int, *, yes: bool) -> None:
    """Like `confirm`, but for scoring the traces and at most `variants` variants of each."""
    if not isinstance(evaluator, Critic):
        return
    takes, passes = CallEstimate(), variants + 1
    for trace in traces:
        one = evaluator.estimate(trace, Mode.OFFLINE)
        takes += CallEstimate(1, one.calls * passes, one.tokens * passes)
    _confirm(evaluator.name, "a stress test, at most,", takes, "test fewer traces", yes=yes)


def _confirm(
    evaluator: str, what: str, takes: CallEstimate, instead: str, *, yes: bool, alone: bool = True
) -> None:
    if not takes.calls:
        return
    told = (
        f"{evaluator}: {what} of {takes.traces:,} {'trace' if takes.traces == 1 else 'traces'} takes "
        f"{takes.calls:,} calls and about {takes.tokens:,} tokens."
    )
    if yes:
        print(told, file=sys.stderr)
        return
    if not (alone and sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(told, f"Give --yes to go on, or {instead}.")
    print(f"{told} Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("cancelled, nothing was sent.")


def judge(
    scorer: Scorer,
    traces: Iterable[Trace],
    mode: Mode,
    skip: Skip | None,
) -> Iterator[Judgment]:
    """Yield judgments of the traces. Traces for which a critic gave no readable answer are left out."""
    critic = scorer.evaluator
    if not isinstance(critic, Critic):
        yield from scorer.score(traces, mode, skip)
    else:
        yield from critic.judge_readable(traces, mode)


def report(evaluator: Evaluator) -> None:
    """Print what a critic has cost, and the number of traces for which it gave no readable judgment."""
    if not isinstance(evaluator, Critic):
        return
    tally = evaluator.tally
    if tally.spent.calls:
        print(f"{evaluator.name}: {tally.spent}.", file=sys.stderr)
    if not tally.unread:
        return
    reasons = [
        f"{count:,}: {reason} (first {first!r:.80})"
        for reason, (count, first) in list(tally.silent.items())[:_PRINTED]
    ]
    print(
        f"{tally.unread:,} {'trace has' if tally.unread == 1 else 'traces have'} no judgment, and will be asked "
        f"about again: {'; '.join(reasons)}.",
        file=sys.stderr,
    )
