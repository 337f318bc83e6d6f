"""The `stepsight` command: every subcommand, and how errors end.

stepsight --help
"""

import argparse
import io
import os
import sys
from collections.abc import Sequence

from stepsight.app.commands import (
    agreement,
    backup,
    calibration,
    campaigns,
    datasets,
    evaluation,
    filter_study,
    filtering,
    grid,
    importing,
    labels,
    math500,
    patch,
    report,
    rerank,
    restore,
    scores,
    scoring,
    serving,
    sft,
    synth,
    training,
    users,
    work,
)
from stepsight.core.errors import UserError

COMMANDS = (
    serving,
    scoring,
    importing,
    scores,
    campaigns,
    labels,
    agreement,
    datasets,
    evaluation,
    calibration,
    patch,
    report,
    rerank,
    training,
    grid,
    filtering,
    sft,
    math500,
    filter_study,
    synth,
    users,
    work,
    backup,
    restore,
)


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command."""
    parser = argparse.ArgumentParser(
        prog="stepsight", description="Judge every step of a worked solution, with and without its later steps."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in COMMANDS:
        module.add_parser(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line; returns the exit code: 0, or 2 where the user can fix it."""
    for stream in (sys.stdout, sys.stderr):
        # Traces hold signs that a terminal's own encoding may lack.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")
    args = build_parser().parse_args(argv)
    try:
        args.run(args)
    except UserError as error:
        print(f"stepsight {args.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"\nstepsight {args.command}: stopped.", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output has gone; keep Python from complaining again as it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
