"""Options that choose the scoring engine: the current process, or workers on Ray."""

import argparse

from stepsight.core.errors import UserError
from stepsight.core.models.placement import Placement
from stepsight.training.runs.processes import gpus_here, processors
from stepsight.training.runs.ray_engine import ENGINES, LOCAL, RAY, import_ray


def add_engine(parser: argparse.ArgumentParser) -> None:
    """Add the options `--engine` and `--workers`, which `read_workers` reads."""
    group = parser.add_argument_group("scoring engine")
    group.add_argument(
        "--engine", choices=ENGINES, default=LOCAL, help="this process, or workers on Ray (stepsight[ray])"
    )
    group.add_argument(
        "--workers", type=int, metavar="N", help="with --engine ray (default: one for each GPU or processor here)"
    )


def read_workers(args: argparse.Namespace, place: Placement, processes: int = 1) -> int | None:
    """Return the number of Ray workers that score at `place`, or None if the current process does the scoring.

    `processes` is the number of processes launched together. Raises `UserError` if the options contradict each
    other or Ray is not installed.
    """
    if args.engine != RAY:
        if args.workers is not None:
            raise UserError("--workers goes with --engine ray.", "Add it, or leave --workers out.")
        return None
    if args.workers is not None and args.workers < 1:
        raise UserError(f"--workers is {args.workers}, expected 1 or more.")
    if processes > 1:
        raise UserError(
            "--engine ray goes with one process, and several were launched.", "Launch one: it starts the workers."
        )
    import_ray()
    return int(args.workers or _room(place))


def _room(place: Placement) -> int:
    return processors() if place.on_processor else max(1, gpus_here())
