"""Rank the gold labels of a dataset by how much evaluators and equations have against them.

stepsight doubtful --dataset mr-math-invalid
stepsight doubtful --dataset mr-math-invalid --evaluator GPT-4 --mode online --output doubtful.jsonl
"""

import argparse
import json
import sys

from stepsight.app.options.shared import add_db, open_output, positive, progress
from stepsight.storage.database.store import open_store
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.doubtful import MODES, rank_labels


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "List the gold labels that stored judgments, failing equations and people speak against, the most doubtful"
        " first. Each label is held against labels of other problems; nothing is scored."
    )
    parser.add_argument("--dataset", required=True, metavar="NAME", help="a labelled dataset of the store")
    parser.add_argument(
        "--evaluator",
        action="append",
        default=[],
        metavar="NAME",
        help="an evaluator that has judged it, by name or fingerprint; may be repeated (default: all)",
    )
    parser.add_argument(
        "--mode",
        choices=MODES,
        default="",
        help="the judgments that are read (default: offline, or online if traces stop at their error)",
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
        ranking = rank_labels(store, dataset, args.evaluator, args.mode, progress)
    for note in ranking.notes:
        print(note, file=sys.stderr)
    if args.output is not None:
        with open_output(args.output) as out:
            out.writelines(json.dumps(one.as_json(), ensure_ascii=False) + "\n" for one in ranking.labels)
    if args.output != "-":
        by = f", by {ranking.mode} judgments" if ranking.mode else ""
        print(f"The most doubtful of {len(ranking.labels):,} labels of {dataset.name}{by}:")
        for one in ranking.labels[: args.list]:
            print(f"  {one.doubt:.2f}  {one.trace}: {one.reason()}")
