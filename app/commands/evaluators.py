"""The commands `evaluators` and `calibrate`: what there is to score with, and from which score on a step is valid.

stepsight evaluators fetch Qwen/Qwen2.5-Math-PRM-7B
stepsight evaluators verify Qwen/Qwen2.5-Math-PRM-7B --part gsm8k
stepsight evaluators merge runs/qwen-7b-lora --output runs/qwen-7b --dtype bfloat16
stepsight calibrate --dataset prm800k --evaluator mini-bidir --mode online --goal recall --recall 0.9
"""

import json
import math
import sys
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stepsight.app.options.command import (
    DB,
    JSON,
    MODES,
    PLACEMENT,
    command,
    fraction,
    is_placed,
    option,
    positive,
    read_placement,
)
from stepsight.core.errors import UserError
from stepsight.core.evaluators.opening import describe_fetched
from stepsight.core.hubs.hub_cache import NEWEST, HubModel, keep_card, list_fetched, read_card_file
from stepsight.core.hubs.hub_download import fetch, terminal_bar
from stepsight.core.hubs.hub_lookup import look_up
from stepsight.core.hubs.public import BenchmarkPart, PublicEvaluator, find_public
from stepsight.core.judgment import Mode
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.models.location import EQUATIONS, shipped_evaluators
from stepsight.core.models.memory import check_memory, needed_memory
from stepsight.core.models.placement import DTYPES, Placement, expected_dtype
from stepsight.core.paths import format_bytes
from stepsight.storage.database.store import open_store
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.calibration import Calibrated, Goal, calibrate
from stepsight.training.evaluate.judging import find_evaluators

if TYPE_CHECKING:
    from stepsight.app.evaluators.model_list import FetchableModel

_COLUMNS = ("id", "size", "judges", "ProcessBench", "PRMScore", "state", "memory")


@command(DB)
def evaluators_command(args: Namespace) -> None:
    """List and fetch evaluators, and verify published figures."""
    from stepsight.app.evaluators.model_list import offers

    here = {model.repo: model for model in list_fetched()}
    print(f"Shipped: {', '.join([*shipped_evaluators(), EQUATIONS])}")
    for fetched in here.values():
        print(f"Fetched: {fetched.repo} at {fetched.revision[:12]}, {format_bytes(fetched.size)}")
    rows: list[Sequence[str]] = [_COLUMNS]
    notes = []
    for offer in offers(Placement(), here):
        public = offer.public
        bench, score = public.processbench, public.prmbench
        figures = (bench.average if bench else None, score.score if score else None)
        shown = ["–" if figure is None else f"{figure:.1f}" for figure in figures]
        size, memory = f"{public.parameters / 1e9:g}B", format_bytes(offer.memory)
        rows.append((public.id, size, public.judges, *shown, _state(offer), memory))
        if offer.unreadable:
            notes.append(f"{public.id}: {offer.unreadable}")
    widths = [max(len(row[i]) for row in rows) for i in range(len(_COLUMNS))]
    print()
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    if notes:
        print("\n" + "\n".join(notes))


def _state(offer: "FetchableModel") -> str:
    if offer.is_here:
        return "here"
    return "cannot be read" if offer.unreadable else "does not fit" if offer.unfit else "can be fetched"


@evaluators_command.action(
    "fetch",
    "fetch one from the model hub, or resume fetching it",
    option("repo OWNER/NAME"),
    option("--revision", "a commit, a branch or a tag (default: %(default)s)", default=NEWEST),
    option("--card FILE", "a stepsight.json for a model that has none, which says how it is read"),
    PLACEMENT,
)
def _fetch(args: Namespace) -> None:
    """Fetch a model and everything it needs, with a progress bar, then load it as a check. If this machine has too
    little memory for the model, it is fetched but not loaded."""
    card = read_card_file(Path(args.card)) if args.card else {}
    place = read_placement(args) if is_placed(args) else Placement()
    remote = look_up(args.repo, args.revision, card=card)
    lacking = _memory_error(remote, find_public(args.repo), place)
    if lacking is not None:
        print(f"{lacking.message} It is fetched for another machine, but not loaded here.", file=sys.stderr)
    with terminal_bar(remote) as show:
        fetched = fetch(remote, show)
    if card:
        fetched = keep_card(fetched, card)
    if lacking is None:
        evaluator = describe_fetched(fetched, place)
        described = f"{evaluator.name}: {evaluator.format} format, {evaluator.attention}"
        print(f"{described}, inputs of up to {evaluator.context:,} tokens.", file=sys.stderr)
    print(fetched.folder)


def _memory_error(remote: HubModel, public: PublicEvaluator | None, place: Placement) -> UserError | None:
    """Return the error if this machine has too little memory for a model, or None if it has enough."""
    if not place.on_processor:
        return None
    parameters = public.all_parameters if public else remote.parameters
    try:
        check_memory(
            remote.repo,
            needed_memory(parameters, expected_dtype(public.stored if public else "", place)),
            whole=True,
        )
    except UserError as error:
        return error
    return None


@evaluators_command.action(
    "verify",
    "reproduce a published figure of a fetched one",
    option("repo OWNER/NAME"),
    option(
        "--part",
        "of ProcessBench (default: %(default)s)",
        choices=[part.value for part in BenchmarkPart],
        default=BenchmarkPart.GSM8K.value,
    ),
    option("--input FILE", "the part's file (default: its dataset in the store)"),
    option("--threshold T", "wrong if s_val < T (default: its authors')", type=fraction),
    option("--limit N", "only N of its traces, drawn at random", type=positive(int)),
    PLACEMENT,
)
def _verify(args: Namespace) -> None:
    # This import loads PyTorch.
    from stepsight.training.evaluate.verification import verify

    part, place = BenchmarkPart(args.part), read_placement(args)
    with open_store(args.db) as store:
        print(verify(store, args.repo, part, place, args.input, args.threshold, args.limit))


@evaluators_command.action(
    "merge",
    "write an adapter and its base as one evaluator",
    option("adapter ADAPTER", "the adapter's folder, or OWNER/NAME"),
    option("--output FOLDER", "a new or empty folder", required=True),
    option("--dtype", "of the weights (default: %(default)s)", choices=DTYPES, default=DTYPES[0]),
)
def _merge(args: Namespace) -> None:
    from stepsight.core.evaluators.loading import write_merged

    print(write_merged(args.adapter, Path(args.output), args.dtype))


@command(
    option("--dataset NAME", "the dataset to choose on", required=True),
    option("--evaluator NAME", "a stored one, a shipped one or a folder", required=True),
    option("--mode", "which judgments to choose from (default: %(default)s)", choices=MODES, default=MODES[0]),
    option(
        "--errors",
        "invalid chooses the threshold of validity, redundant that of redundancy (default: %(default)s)",
        choices=["invalid", "redundant"],
        default="invalid",
    ),
    option(
        "--goal",
        "the best macro-F1 of steps, or the best precision at a given recall of errors (default: %(default)s)",
        choices=["macro-f1", "recall"],
        default="macro-f1",
    ),
    option("--recall SHARE", "the lowest recall, with --goal recall (default: 0.9)", type=float),
    JSON,
    PLACEMENT,
    DB,
)
def calibrate_command(args: Namespace) -> None:
    """Choose a threshold of an evaluator on a validation dataset. It is in force from then on, and evaluating on
    that dataset is refused."""
    goal, recall = Goal(args.goal), 0.9 if args.recall is None else args.recall
    if args.recall is not None and goal != Goal.RECALL:
        raise UserError("--recall requires the goal recall.", "Use --goal recall.")
    if not 0 < recall <= 1:
        raise UserError(f"--recall is {recall:g}, expected more than 0 and at most 1.")
    mode, place = Mode(args.mode), read_placement(args)
    with open_store(args.db) as store:
        dataset = find_dataset(store, args.dataset)
        evaluators = find_evaluators(store, dataset, [args.evaluator], [mode], lambda stored: stored, place)
        if not evaluators:
            raise UserError(f"{args.evaluator} is a baseline, so its thresholds cannot be changed.")
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
