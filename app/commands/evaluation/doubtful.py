"""Rank the gold labels of a dataset by how much evaluators and equations have against them.

stepsight doubtful --dataset mr-math-invalid
stepsight doubtful --dataset mr-math-invalid --evaluator GPT-4 --mode online --output doubtful.jsonl
"""

import argparse
import json

from stepsight.app.commands.options import add_db, open_output, positive, progress
from stepsight.core.judgment import Mode
from stepsight.storage.database.store import open_store
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.doubtful import rank_labels


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "List the gold labels that stored judgments and failing equations speak against, the most doubtful first."
        " Each label is held against labels of other problems; nothing is scored."
    )
    parser.add_argument("--dataset", required=True, metavar="NAME", help="a labelled dataset of the store")
    parser.add_argument(
        "--evaluator",
        action="append",
        default=[],
        metavar="NAME",
        help="an evaluator that has judged it; may be repeated (default: all)",
    )
    parser.add_argument(
        "--mode",
        choices=[Mode.OFFLINE.value, Mode.ONLINE.value],
        default=Mode.OFFLINE.value,
        help="the judgments that are read (default: %(default)s)",
    )
    parser.add_argument(
        "--list", type=positive(int), default=20, metavar="N", help="the labels to print (default: %(default)s)"
    )
    parser.add_argument("--output", metavar="FILE", help="write all labels there, as JSON Lines")
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Rank the labels, write them if asked to, and print the most doubtful ones."""
    with open_store(args.db) as store:
        dataset = find_dataset(store, args.dataset)
        ranked = rank_labels(store, dataset, args.evaluator, Mode(args.mode), progress)
    if args.output is not None:
        with open_output(args.output) as out:
            out.writelines(json.dumps(one.as_json(), ensure_ascii=False) + "\n" for one in ranked)
    if args.output != "-":
        print(f"The most doubtful of {len(ranked):,} labels of {dataset.name}:")
        for one in ranked[: args.list]:
            print(f"  {one.doubt:.2f}  {one.trace}: {one.reason}")
