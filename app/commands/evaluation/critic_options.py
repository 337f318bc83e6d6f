"""Command-line options for critics. This module does not import PyTorch."""

import argparse
from collections.abc import Sequence

from stepsight.app.commands.options import positive
from stepsight.core.critics.presets import list_presets
from stepsight.core.critics.settings import with_options
from stepsight.core.errors import UserError
from stepsight.core.inference_servers.address import CRITIC


def add_critic(parser: argparse.ArgumentParser) -> None:
    """Add `--critic`, `--samples` and `--temperature`, which `as_asked` reads, and `--yes`, for
    `critics.confirm`."""
    group = parser.add_argument_group("if the evaluator is a critic, a chat model behind a server")
    group.add_argument(
        "--critic",
        metavar="PRESET",
        help=f"its prompt: {', '.join(list_presets())}, or a YAML file (default: by the model's name)",
    )
    group.add_argument(
        "--samples",
        type=positive(int),
        metavar="N",
        help="answers to each question; their shares are probabilities",
    )
    group.add_argument("--temperature", type=float, metavar="T", help="the temperature of the answers")
    group.add_argument("--yes", action="store_true", help="do not ask for confirmation before many calls")


def as_asked(args: argparse.Namespace, specs: Sequence[str]) -> list[str]:
    """Return the evaluators' names, with the critic options appended to the names of critics. Raises `UserError` if
    there are critic options but no critic."""
    options = {"preset": args.critic, "samples": args.samples, "temperature": args.temperature}
    given = {name: value for name, value in options.items() if value is not None}
    if given and not any(map(is_critic, specs)):
        raise UserError(
            "--critic, --samples and --temperature go with a critic.",
            "Give --evaluator critic:http://HOST/v1#MODEL.",
        )
    return [with_options(spec, given) if given and is_critic(spec) else spec for spec in specs]


def is_critic(spec: str) -> bool:
    return spec.startswith(f"{CRITIC}:")
