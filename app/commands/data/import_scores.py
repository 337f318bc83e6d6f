"""Import an evaluator's scores into the store: published ones, or the output of stepsight score.

stepsight import-scores mr-math-invalid gpt4_eval_results.json --evaluator GPT-4
stepsight import-scores mr-math-invalid scores.jsonl
"""

import argparse

from stepsight.app.options.shared import add_db
from stepsight.core.judgment import Mode
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.score_files import import_scores


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Store the scores of a file as judgments of a dataset of the store. The file is one that stepsight score"
        " --output wrote, or a released one, whose rows have an id and scores: three numbers or one per sub-step,"
        " one per solution, or a verdict in words with the step it blames."
    )
    parser.add_argument("dataset", help="a dataset of the store")
    parser.add_argument("path", help="the score file, JSON Lines or a JSON array")
    parser.add_argument("--evaluator", metavar="NAME", help="the evaluator's name (default: as in the file)")
    parser.add_argument(
        "--mode",
        choices=[Mode.OFFLINE.value, Mode.ONLINE.value],
        default=Mode.OFFLINE.value,
        help="each step scored with the whole solution in view, or with none after it, if the file does not say"
        " (default: %(default)s)",
    )
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Import a file of scores, all or nothing, and print the number of rows that matched a trace."""
    with open_store(args.db) as store:
        print(import_scores(store, args.dataset, args.path, args.evaluator, Mode(args.mode)))
