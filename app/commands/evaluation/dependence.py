"""Find out which steps the solutions of a dataset rest on, by scoring every trace without each of its steps.

stepsight dependence --dataset gallery --evaluator mini-causal
stepsight dependence --dataset gallery --evaluator mini-bidir --gap placeholder --output left-out.jsonl
"""

import argparse
import json
from collections.abc import Sequence

from stepsight.app.commands.options import add_db, add_evaluator, open_output, positive, print_left_out, progress
from stepsight.app.scoring.placement_options import add_placement, read_placement
from stepsight.core.errors import UserError
from stepsight.core.left_out import NOTABLE, Gap
from stepsight.core.models.location import can_load
from stepsight.core.scoring.scorer import Scorer
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.evaluators import StoredEvaluator, list_evaluators, register_loaded
from stepsight.storage.judgments.left_outs import (
    StepFall,
    count_missing_left_out,
    iterate_left_out,
    left_out_rows,
    missing_left_out,
    save_left_out,
    step_falls,
)
from stepsight.storage.traces.queries import Dataset, find_dataset, get_trace
from stepsight.training.runs.ray_scoring import open_scorer

# Characters of a step that a list shows.
_SHOWN = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Score the traces of a dataset without each of their steps, keep the scores in the store, and list the"
        " steps that carry a solution and those that nothing needs. Without a model here, list those of imported"
        " scores."
    )
    parser.add_argument("--dataset", required=True, metavar="NAME", help="a dataset of the store")
    add_evaluator(parser)
    parser.add_argument(
        "--gap",
        choices=[gap.value for gap in Gap],
        default=Gap.DELETED.value,
        help="what stands where a step is left out: nothing, or an empty phrase (default: %(default)s)",
    )
    parser.add_argument(
        "--list", type=positive(int), default=10, metavar="N", help="the steps of each list (default: %(default)s)"
    )
    parser.add_argument(
        "--output", metavar="FILE", help="write all of the scores there, as stepsight import-scores reads them"
    )
    add_placement(parser)
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Score the missing traces, then print two lists.

    One list has the steps that carry a solution, the other the steps that nothing needs.
    """
    gap = Gap(args.gap)
    with open_store(args.db) as store:
        dataset = find_dataset(store, args.dataset)
        evaluator = (
            _complete(store, dataset, args, gap) if can_load(args.evaluator) else _find(store, args.evaluator)
        )
        falls = step_falls(iterate_left_out(store, dataset.id, evaluator.id, gap), evaluator.thresholds.validity)
        if not falls:
            raise UserError(
                f"{evaluator.name} has no scores of {dataset.name} with a step left out ({gap}).",
                "Import them, or name an evaluator that can run here.",
            )
        if args.output is not None:
            found = iterate_left_out(store, dataset.id, evaluator.id, gap)
            with open_output(args.output) as out:
                out.writelines(json.dumps(row) + "\n" for row in left_out_rows(found, evaluator.outputs))
        if args.output != "-":
            print(_lists(store, falls, args.list))


def _complete(store: Store, dataset: Dataset, args: argparse.Namespace, gap: Gap) -> StoredEvaluator:
    """Score the missing traces, and save the scores of each one at once.

    A trace that is too long is left out and reported.
    """
    scorer = open_scorer(args.evaluator, read_placement(args), None)
    assert isinstance(scorer, Scorer)
    evaluator = register_loaded(store, scorer.evaluator)
    traces = missing_left_out(store, dataset.id, evaluator.id, gap)
    missing = count_missing_left_out(store, dataset.id, evaluator.id, gap)
    for trace in progress(traces, missing, "traces"):
        try:
            scores = scorer.leave_one_out(trace, gap)
        except UserError as error:
            print_left_out(trace, error)
            continue
        with store.write() as session:
            save_left_out(session, evaluator.id, trace, scores)
    return evaluator


def _find(store: Store, name: str) -> StoredEvaluator:
    stored = {one.name: one for one in list_evaluators(store)}
    if name not in stored:
        raise UserError(
            f"There is no evaluator {name!r}.", f"The stored ones are: {', '.join(sorted(stored)) or 'none'}."
        )
    return stored[name]


def _lists(store: Store, falls: Sequence[StepFall], most: int) -> str:
    needed = [one for one in falls if one.fall >= NOTABLE]
    unused = [one for one in reversed(falls) if one.fall < NOTABLE]
    lines = [
        f"{len(falls):,} steps were left out, one at a time. Without {len(needed):,} of them a later step loses"
        f" {NOTABLE} or more of its validity, without {len(unused):,} none does.",
        "",
        "Most is lost without",
        *(_line(store, one) for one in needed[:most]),
        "",
        "Least is lost without",
        *(_line(store, one) for one in unused[:most]),
    ]
    return "\n".join(lines)


def _line(store: Store, one: StepFall) -> str:
    trace = get_trace(store, one.trace_id)
    text = " ".join(trace.substeps[one.step].split())
    shown = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
    change = round(-one.fall, 2) + 0.0
    return f"  {change:+.2f}  {trace.id}, sub-step {one.step + 1} of {len(trace.substeps)}: {shown}"
