"""Choose an evaluator's thresholds on a validation dataset.

stepsight calibrate --dataset prm800k --evaluator mini-bidir --mode online
stepsight calibrate --dataset prm800k --evaluator mini-bidir --mode online --goal recall --recall 0.9
"""

import argparse
import json
import math

from stepsight.app.commands.evaluation.judging import find_evaluators
from stepsight.app.options.shared import add_db, add_placement, read_placement
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.metrics.reasoneval import Errors
from stepsight.storage.database.store import open_store
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.calibration import Calibrated, Goal, calibrate


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Choose a threshold of an evaluator on a validation dataset. It is in force from then on, and evaluating on"
        " that dataset is refused."
    )
    parser.add_argument("--dataset", required=True, metavar="NAME", help="the dataset to choose on")
    parser.add_argument(
        "--evaluator", required=True, metavar="NAME", help="a stored one, a shipped one or a folder"
    )
    parser.add_argument(
        "--mode",
        choices=[Mode.OFFLINE.value, Mode.ONLINE.value],
        default=Mode.OFFLINE.value,
        help="which judgments to choose from (default: %(default)s)",
    )
    parser.add_argument(
        "--errors",
        choices=["invalid", "redundant"],
        default="invalid",
        help="invalid chooses the threshold of validity, redundant that of redundancy (default: %(default)s)",
    )
    parser.add_argument(
        "--goal",
        choices=["macro-f1", "recall"],
        default="macro-f1",
        help="the best macro-F1 of steps, or the best precision at a recall of errors (default: %(default)s)",
    )
    parser.add_argument(
        "--recall", type=float, metavar="SHARE", help="the least recall with --goal recall (default: 0.9)"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_placement(parser)
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Score unjudged traces if the evaluator can run here, then choose, store and print the thresholds."""
    goal, recall = Goal(args.goal), 0.9 if args.recall is None else args.recall
    if args.recall is not None and goal != Goal.RECALL:
        raise UserError("--recall goes with the goal recall.", "Use --goal recall.")
    if not 0 < recall <= 1:
        raise UserError(f"--recall is {recall:g}, expected more than 0 and at most 1.")
    mode, place = Mode(args.mode), read_placement(args)
    with open_store(args.db) as store:
        dataset = find_dataset(store, args.dataset)
        evaluators = find_evaluators(store, dataset, [args.evaluator], [mode], lambda stored: stored, place)
        if not evaluators:
            raise UserError(f"{args.evaluator} is a baseline: its thresholds stay as they are.")
        calibrated = calibrate(store, dataset, evaluators[0], mode, Errors(args.errors), goal, recall)
    print(json.dumps(_as_json(calibrated), indent=1) if args.json else _as_text(calibrated))


def _as_json(calibrated: Calibrated) -> dict[str, object]:
    head = {"evaluator": calibrated.evaluator, "dataset": calibrated.dataset, "mode": calibrated.mode.value}
    reached = {name: None if math.isnan(value) else value for name, value in vars(calibrated.choice).items()}
    chosen = {"threshold": calibrated.threshold.value, "before": calibrated.before} | reached
    counts = {"n_steps": calibrated.steps, "n_errors": calibrated.errors}
    return head | chosen | counts | {"thresholds": vars(calibrated.calibration.thresholds)}


def _as_text(calibrated: Calibrated) -> str:
    choice = calibrated.choice
    right = "" if math.isnan(choice.precision) else f" with precision {100 * choice.precision:.1f} %"
    return (
        f"{calibrated.evaluator}: threshold of {calibrated.threshold} {choice.value:g} (was"
        f" {calibrated.before:g}), chosen on {calibrated.dataset}, {calibrated.mode}.\n"
        f"There it gives macro-F1 {100 * choice.macro_f1:.1f} over {calibrated.steps:,} steps and finds"
        f" {100 * choice.recall:.1f} % of {calibrated.errors:,} errors{right}. Measure it on another dataset."
    )
