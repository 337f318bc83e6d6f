"""Critics on a command line: how they are asked, what that will take, and what it took."""

import argparse
import sys
from collections.abc import Iterable, Iterator, Sequence

from stepsight.app.commands.options import positive
from stepsight.core.critics.asking import Estimate
from stepsight.core.critics.evaluator import Critic
from stepsight.core.critics.presets import list_presets
from stepsight.core.critics.settings import with_options
from stepsight.core.errors import UserError
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.abstract import Evaluator
from stepsight.core.scoring.abstract import Skip
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.servers.address import CRITIC
from stepsight.core.trace import Trace
from stepsight.training.runs.ray_scoring import RayScorer

# Reasons that are told.
_TOLD = 5


def add_critic(parser: argparse.ArgumentParser) -> None:
    """`--critic`, `--samples`, `--temperature` and `--yes`, for `as_asked` and `confirm`."""
    group = parser.add_argument_group("where the evaluator is a critic, a chat model behind a server")
    group.add_argument(
        "--critic",
        metavar="PRESET",
        help=f"what it is asked: {', '.join(list_presets())}, or a YAML file (default: by the model's name)",
    )
    group.add_argument(
        "--samples",
        type=positive(int),
        metavar="N",
        help="answers to each question; their shares are probabilities",
    )
    group.add_argument("--temperature", type=float, metavar="T", help="at which answers are drawn")
    group.add_argument("--yes", action="store_true", help="in hindsight, do not ask before many calls are made")


def as_asked(args: argparse.Namespace, specs: Sequence[str]) -> list[str]:
    """The names of evaluators, those of critics with the options. Raises `UserError` where there are options and no
    critic."""
    options = {"preset": args.critic, "samples": args.samples, "temperature": args.temperature}
    given = {name: value for name, value in options.items() if value is not None}
    if given and not any(map(_is_critic, specs)):
        raise UserError(
            "--critic, --samples and --temperature go with a critic.",
            "Give --evaluator critic:http://HOST/v1#MODEL.",
        )
    return [with_options(spec, given) if given and _is_critic(spec) else spec for spec in specs]


def confirm(evaluator: Evaluator, traces: Iterable[Trace], mode: Mode, *, yes: bool, alone: bool = True) -> None:
    """Say what a critic's hindsight will take, and ask on a terminal whether to go on. Raises `UserError` where the
    answer is not yes, and where nobody can be asked: there is no terminal, or this process is not `alone`."""
    if not isinstance(evaluator, Critic) or mode != Mode.HINDSIGHT:
        return
    takes = sum((evaluator.estimate(trace, mode) for trace in traces), Estimate())
    if not takes.calls:
        return
    told = (
        f"{evaluator.name}: hindsight of {takes.traces:,} {'trace' if takes.traces == 1 else 'traces'} takes "
        f"{takes.calls:,} calls and about {takes.tokens:,} tokens."
    )
    if yes:
        print(told, file=sys.stderr)
        return
    if not (alone and sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError(told, "Give --yes to go on, or score in another mode, which takes fewer calls.")
    print(f"{told} Go on? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise UserError("nothing was asked.")


def judge(scorer: Scorer | RayScorer, traces: Iterable[Trace], mode: Mode, skip: Skip | None) -> Iterator[Judgment]:
    """The judgments of a scorer; where its evaluator is a critic, of the traces that it gives one of."""
    if isinstance(scorer.evaluator, Critic):
        return scorer.evaluator.judge_readable(traces, mode)
    return scorer.score(traces, mode, skip)


def report(evaluator: Evaluator) -> None:
    """Tell what a critic took, and of how many traces it gave no judgment."""
    if not isinstance(evaluator, Critic):
        return
    tally = evaluator.tally
    if tally.spent.calls:
        print(f"{evaluator.name}: {tally.spent}.", file=sys.stderr)
    if not tally.unread:
        return
    reasons = [
        f"{count:,}: {reason} (first {first!r:.80})"
        for reason, (count, first) in list(tally.silent.items())[:_TOLD]
    ]
    print(
        f"{tally.unread:,} {'trace has' if tally.unread == 1 else 'traces have'} no judgment, and will be asked "
        f"about again: {'; '.join(reasons)}.",
        file=sys.stderr,
    )


def _is_critic(spec: str) -> bool:
    return spec.startswith(f"{CRITIC}:")
