r"""Write the card of an evaluator on a dataset: how far it can be trusted there.

stepsight card --dataset gallery --evaluator mini-bidir
stepsight card --dataset mr-math-invalid --evaluator GPT-4 --format markdown --output card.md
stepsight card --dataset processbench-gsm8k --evaluator FOLDER --format hub --hub-dataset Qwen/ProcessBench \
    --hub-task gsm8k
"""

import argparse

from stepsight.app.commands.evaluation.judging import find_one
from stepsight.app.options.shared import add_db, add_placement, open_output, positive, read_placement
from stepsight.storage.database.store import open_store
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.report.card.card import EvaluatorCard, measure_card
from stepsight.training.report.card.files import CARD_WRITERS, HUB, hub_file


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write what is known of an evaluator on a dataset: figures with intervals beside baselines, calibration,"
        " how far its scores follow length and place, redundancy, agreement with people, speed and verifications."
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
        choices=[*CARD_WRITERS, HUB],
        default="text",
        help="markdown: a section of a model card; hub: a file for .eval_results of its repository",
    )
    parser.add_argument("--output", metavar="FILE", help="write it there (default: standard output)")
    parser.add_argument(
        "--draws", type=positive(int), default=1000, metavar="N", help="bootstrap draws (default: %(default)s)"
    )
    hub = parser.add_argument_group("for --format hub")
    hub.add_argument("--hub-dataset", metavar="OWNER/NAME", default="", help="the benchmark's dataset on the hub")
    hub.add_argument("--hub-task", metavar="NAME", default="", help="the task, as its eval.yaml names it")
    hub.add_argument("--hub-revision", metavar="COMMIT", help="the commit of that dataset")
    hub.add_argument("--figure", metavar="NAME", help="such as step_auc (default: the benchmark's own)")
    hub.add_argument("--source-url", metavar="URL", help="where the result can be looked at")
    hub.add_argument("--source-name", metavar="TEXT", help="what that is called")
    add_placement(parser)
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Have the evaluator judge unjudged traces, if it can run here, and write its card."""
    with open_store(args.db) as store:
        dataset = find_dataset(store, args.dataset)
        evaluator = find_one(store, dataset, args.evaluator, read_placement(args))
        card = measure_card(store, dataset, evaluator, args.draws)
    text = _hub_file(args, card) if args.format == HUB else CARD_WRITERS[args.format](card)
    with open_output(args.output or "-") as out:
        out.write(text)


def _hub_file(args: argparse.Namespace, card: EvaluatorCard) -> str:
    return hub_file(
        card,
        args.figure,
        args.hub_dataset,
        args.hub_task,
        dataset_revision=args.hub_revision,
        source_url=args.source_url,
        source_name=args.source_name,
    )
