"""Serve tools to programs that speak the Model Context Protocol, over standard input and output.

stepsight mcp
"""

import argparse
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from importlib import import_module
from typing import Any

from stepsight.app.mcp.protocol import Tool, ToolServer
from stepsight.app.options.shared import add_db, add_placement, read_placement
from stepsight.core.models.placement import Placement
from stepsight.storage.database.store import Store, open_store

_INSTRUCTIONS = (
    "StepSight judges worked solutions step by step. Steps count from 1. A step is valid if its validity reaches"
    " the evaluator's threshold. An equation that fails is wrong for certain; a validity is an estimate."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--evaluator",
        action="append",
        default=[],
        metavar="NAME",
        help="another evaluator to judge with: a folder, or a model hub's OWNER/NAME; may be repeated",
    )
    add_placement(parser)
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Answer requests from standard input until it ends."""
    place = read_placement(args)
    answers = sys.stdout.buffer
    # Whatever a library prints is no message of the protocol.
    with redirect_stdout(sys.stderr), open_store(args.db) as store, ThreadPoolExecutor(1) as loading:
        server = ToolServer(loading.submit(_load, store, args.evaluator, place), _INSTRUCTIONS)
        server.serve(sys.stdin.buffer, answers)


def _load(store: Store, evaluators: Sequence[str], place: Placement | None) -> Sequence[Tool[Any]]:
    # PyTorch takes seconds to import, and a client does not wait so long for its first answer.
    tools: Sequence[Tool[Any]] = import_module("stepsight.app.mcp.tools").open_tools(store, evaluators, place)
    return tools
