"""Write the card of an evaluator on a dataset: how far it can be trusted there.

stepsight card --dataset gallery --evaluator mini-bidir
stepsight card --dataset mr-math-invalid --evaluator GPT-4 --format markdown --output card.md
"""

import argparse

from stepsight.app.commands.evaluation.judging import find_one
from stepsight.app.options.shared import add_db, add_placement, open_output, positive, read_placement
from stepsight.storage.database.store import open_store
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.report.card import measure_card
from stepsight.training.report.report import PART_WRITERS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write the report of a dataset on one evaluator: figures with intervals beside baselines, how far scores"
        " follow length and place, agreement with people, and what was measured."
    )
    parser.add_argument("--dataset", required=True, metavar="NAME", help="a dataset of the store")
    parser.add_argument(
        "--evaluator",
        required=True,
        metavar="NAME",
        help="a stored or shipped one, its fingerprint, or a folder; it first judges what it has not judged",
    )
    parser.add_argument(
        "--format",
        choices=PART_WRITERS,
        default="text",
        help="markdown: a section of a model card",
    )
    parser.add_argument("--output", metavar="FILE", help="write it there (default: standard output)")
    parser.add_argument(
        "--draws", type=positive(int), default=1000, metavar="N", help="bootstrap draws (default: %(default)s)"
    )
    add_placement(parser)
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Have the evaluator judge unjudged traces, if it can run here, and write its card."""
    with open_store(args.db) as store:
        dataset = find_dataset(store, args.dataset)
        evaluator = find_one(store, dataset, args.evaluator, read_placement(args))
        card = measure_card(store, dataset, evaluator, args.draws)
    with open_output(args.output or "-") as out:
        out.write(PART_WRITERS[args.format](card))
