"""Change solutions by rule, and measure whether an evaluator's verdicts move as they must.

stepsight stress --dataset gallery --evaluator mini-bidir
stepsight stress --input traces.jsonl --evaluator FOLDER --transform number-replaced --output stress.jsonl
stepsight stress --list
"""

import argparse
import json
import sys
from functools import partial

from stepsight.app.commands.evaluation.critics import confirm_stress, report
from stepsight.app.commands.evaluation.evaluator_options import add_critic, add_reading, as_asked
from stepsight.app.options.shared import (
    add_db,
    add_placement,
    fraction,
    open_output,
    positive,
    progress,
    read_placement,
)
from stepsight.core.stress.transforms import all_transforms, find_transform
from stepsight.training.evaluate.stress import StressRun, plan_of
from stepsight.training.report.stress import stress_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Make variants of solutions by rule: some have a step made wrong, so that the verdict on it must turn, and"
        " others say the same in another way, so that no verdict may move. Print how often an evaluator's verdicts"
        " did so, beside two baselines that do not read the steps."
    )
    parser.add_argument(
        "--dataset", metavar="NAME", help="traces of this dataset of the store, which keeps what is measured"
    )
    parser.add_argument("--input", metavar="FILE", help="or traces as JSON Lines or an array (id, problem, steps)")
    parser.add_argument(
        "--evaluator",
        action="append",
        metavar="NAME",
        help="a shipped name, a folder, a model hub's OWNER/NAME, or behind a server"
        " vllm:http://HOST:8000/v1#MODEL; may be repeated (default: mini-bidir)",
    )
    parser.add_argument(
        "--transform", action="append", metavar="NAME", help="only this transform; may be repeated (default: all)"
    )
    parser.add_argument("--list", action="store_true", help="list the transforms, and do nothing else")
    parser.add_argument(
        "--traces",
        type=positive(int),
        default=200,
        metavar="N",
        help="the most traces to change, drawn at random (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of all choices (default: %(default)s)")
    parser.add_argument(
        "--validity", type=fraction, metavar="T", help="valid if s_val >= T (default: the evaluator's)"
    )
    parser.add_argument("--output", metavar="FILE", help="write every variant with its scores there, as JSON Lines")
    add_reading(parser)
    add_critic(parser)
    add_placement(parser)
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Make the variants, judge them with each evaluator and the baselines, and print the tables."""
    transforms = [find_transform(name) for name in args.transform] if args.transform else all_transforms().values()
    if args.list:
        for one in transforms:
            print(f"{one.name:20} {one.demand.value:16} {one.description}")
        return
    specs = as_asked(args, list(dict.fromkeys(args.evaluator or ["mini-bidir"])))
    stress = StressRun(
        place=read_placement(args),
        threshold=args.validity,
        show=progress,
        confirm=partial(confirm_stress, yes=args.yes),
        report=report,
    )
    plan = plan_of([one.name for one in transforms], args.traces, args.seed)
    test = stress.run(args.db, args.dataset, args.input, specs, plan)
    stress.figures |= test.baseline_figures() if args.validity is None else test.baseline_figures(args.validity)
    print("".join(f"{note}\n" for note in stress.notes), end="", file=sys.stderr)
    if args.output is not None:
        with open_output(args.output) as out:
            out.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in stress.lines)
    if args.output != "-":
        print(stress_text(stress.figures, len(test.traces)), end="")
