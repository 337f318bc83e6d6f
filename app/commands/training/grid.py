"""Train and measure a grid of evaluators.

stepsight grid training/configs/grid-mini-random.yaml --output runs/grid-mini-random --jobs 2
stepsight grid training/configs/grid.yaml --plan
"""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from stepsight.app.options.shared import add_db, positive
from stepsight.core.errors import UserError
from stepsight.training.experiments.grid.design import Design, RunSettings, read_design
from stepsight.training.experiments.grid.experiment import Grid
from stepsight.training.experiments.grid.results import WHOLE
from stepsight.training.runs.processes import MachineShare
from stepsight.training.train.estimate import estimate_run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Train every run of a grid and measure it. Stop it when you like; the same command resumes. "
        "Without --size, --data, --mask and --seed all runs are done."
    )
    parser.add_argument("config", type=Path, help="a YAML file; training/configs holds the shipped ones")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="default: runs/ and the file's name")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="the number of runs at once (default: as many as fit)"
    )
    parser.add_argument("--plan", action="store_true", help="print the estimated needs, and load nothing")
    parser.add_argument("--gpu", type=positive(float), metavar="GIB", help="with --plan: the memory of a GPU")
    for name, what in (("size", "size"), ("data", "amount of data"), ("mask", "mask"), ("seed", "seed")):
        parser.add_argument(f"--{name}", action="append", metavar="NAME", help=f"only this {what}; may be repeated")
    parser.add_argument("--no-store", action="store_true", help="keep judgments out of the store")
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Run the grid, or resume an interrupted run, and print the path of its results."""
    design = read_design(args.config)
    runs = _chosen(design, args)
    if args.jobs is not None and args.jobs < 1:
        raise UserError(f"--jobs is {args.jobs}, expected 1 or more.")
    if args.plan:
        _plan(design, runs, args)
        return
    if args.gpu:
        raise UserError("--gpu goes with --plan.")
    output = args.output or Path("runs") / args.config.stem
    jobs = args.jobs or MachineShare(design.processes, design.threads).room()
    count = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    print(f"{count} into {output}, {jobs} at a time; the same command goes on.", file=sys.stderr)
    db = str(output / "store.db") if args.no_store else args.db
    results = Grid(design, args.config, output, db).run(runs, jobs)
    print(f"{len(results.runs)} of {results.planned} runs are done.", file=sys.stderr)
    print(output / WHOLE)


def _chosen(design: Design, args: argparse.Namespace) -> list[RunSettings]:
    """Return the runs that the options select, or all runs if they select none."""
    masks = tuple(dict.fromkeys(run.mask for run in design.runs()))
    options: dict[str, Iterable[object]] = {
        "size": design.sizes,
        "data": design.data,
        "mask": masks,
        "seed": design.seeds,
    }
    for key, values in options.items():
        for name in getattr(args, key) or ():
            if name not in map(str, values):
                raise UserError(f"--{key} is {name!r}, expected one of {', '.join(map(str, values))}.")
    return [
        run
        for run in design.runs()
        if all(not getattr(args, key) or str(getattr(run, key)) in getattr(args, key) for key in options)
    ]


def _plan(design: Design, runs: list[RunSettings], args: argparse.Namespace) -> None:
    """Print the estimated needs of a run of each size and amount of data; masks and seeds cost the same."""
    for run in {(run.size, run.data): run for run in runs}.values():
        config = design.config(run)
        estimate = estimate_run(config, args.config.parent, args.gpu, design.processes)
        print(f"{run.size} {run.data}\n{estimate}\n")
    print(f"{len(runs)} runs")
