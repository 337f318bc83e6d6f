"""Options of critics and of the reading of other evaluators, without importing PyTorch."""

from argparse import Namespace
from collections.abc import Collection, Sequence
from dataclasses import replace

from stepsight.app.options.command import flag, group, option
from stepsight.app.options.shared import positive
from stepsight.core.critics.settings import list_presets, with_options
from stepsight.core.errors import UserError
from stepsight.core.evaluator_summary import Reading, Rereading, split_reading
from stepsight.core.inference_servers.address import is_critic

READING = group(
    "how an evaluator reads a solution",
    option(
        "--reading",
        "both-orders lets later steps change a causal evaluator's verdicts on earlier ones; none is trained for it"
        " (default: the evaluator's own)",
        choices=[reading.value for reading in Reading],
    ),
    option(
        "--window TOKENS",
        "judge the steps of a long solution in windows of whole steps with at most so many tokens, the problem"
        " included (default: read it as a whole, or refuse it)",
        type=positive(int),
    ),
)
CRITIC = group(
    "if the evaluator is a critic, a chat model behind a server",
    option(
        "--critic PRESET", f"its prompt: {', '.join(list_presets())}, or a YAML file (default: by the model's name)"
    ),
    option("--samples N", "answers to each question; their shares are probabilities", type=positive(int)),
    option("--temperature T", "the temperature of the answers", type=float),
    flag("--yes", "do not ask for confirmation before many calls"),
)


def read_evaluators(args: Namespace, specs: Sequence[str], unread: Collection[str] = ()) -> list[str]:
    """Return the evaluators' names with the options in `CRITIC` and `READING`: critic options are appended to the
    names of critics, and the reading and windows to all names that are not `unread` and do not include any.

    Raises `UserError` if there are critic options but no critic.
    """
    options = {"preset": args.critic, "samples": args.samples, "temperature": args.temperature}
    given = {name: value for name, value in options.items() if value is not None}
    if given and not any(map(is_critic, specs)):
        raise UserError(
            "--critic, --samples and --temperature go with a critic.",
            "Give --evaluator critic:http://HOST/v1#MODEL.",
        )
    named = [with_options(spec, given) if given and is_critic(spec) else spec for spec in specs]
    reading = Rereading(None if args.reading is None else Reading(args.reading), args.window)
    return named if reading == Rereading() else [spec if spec in unread else _read(spec, reading) for spec in named]


def _read(spec: str, reading: Rereading) -> str:
    """Return an evaluator's name with a reading. The name's own reading and windows take precedence."""
    bare, own = split_reading(spec)
    if own is None:
        return f"{spec}{reading}"
    return spec if own.window or not reading.window else f"{bare}{replace(own, window=reading.window)}"
