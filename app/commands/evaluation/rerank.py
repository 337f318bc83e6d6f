"""Choose among candidate solutions of problems by the scores that evaluators give their steps.

stepsight rerank candidates.jsonl --evaluator mini-bidir --by min --method best-of-n --output chosen.jsonl
stepsight rerank candidates.jsonl --method weighted-vote --by product --output voted.jsonl --report report
stepsight rerank --dataset strict-prmbench --by official --ties first --output chosen.jsonl --report report
"""

import argparse
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path

from stepsight.app.commands.evaluation.judging import find_evaluators
from stepsight.app.options.shared import add_db, add_placement, open_output, progress, read_placement
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.metrics.best_of_n import Aggregation, RankingMethod, Ties
from stepsight.core.scores import Outputs
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.evaluators import StoredEvaluator
from stepsight.storage.traces.queries import Dataset, find_dataset
from stepsight.training.experiments.reranking.candidates import CandidateSet, import_candidates
from stepsight.training.experiments.reranking.report import accuracy_text, make_rerank_report
from stepsight.training.experiments.reranking.reranking import OFFICIAL, Reranking, rerank
from stepsight.training.report.report import write_report

_DEFAULT = "mini-bidir"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Choose one of several solutions of each problem and, if right answers are known, measure how often the"
        " choice is right. A line has problem, and solution or steps; it may have answer, problem_id,"
        " gold (the right answer), correct (true or false) and id. The file is imported as a dataset of the store,"
        " which keeps the scores."
    )
    parser.add_argument(
        "candidates", type=Path, nargs="?", metavar="FILE", help="candidate solutions as JSON Lines"
    )
    parser.add_argument(
        "--dataset",
        metavar="NAME",
        help="the dataset of the candidates (default: named after the file), or one of the store",
    )
    parser.add_argument(
        "--evaluator",
        action="append",
        metavar="NAME",
        help="a shipped name, a folder, a model hub's OWNER/NAME, or behind a server"
        f" vllm:http://HOST:8000/v1#MODEL, or one of the store; may be repeated (default: {_DEFAULT}, without a"
        " file all that have scored the dataset)",
    )
    parser.add_argument(
        "--by",
        choices=[*(by.value for by in Aggregation), OFFICIAL],
        default="min",
        help="a solution's score: the least validity of its steps, the product, the last, a mean, or what the"
        " evaluator's authors use (default: %(default)s)",
    )
    parser.add_argument(
        "--method",
        choices=[method.value for method in RankingMethod],
        default="best-of-n",
        help="the best-scored solution, or the answer with most votes, weighted by score or not"
        " (default: %(default)s)",
    )
    parser.add_argument(
        "--mode",
        choices=[Mode.OFFLINE.value, Mode.ONLINE.value],
        default=Mode.OFFLINE.value,
        help="each step scored with the whole solution in view, or with none after it (default: %(default)s)",
    )
    parser.add_argument(
        "--output", required=True, metavar="FILE", help="the file for the choices; - is standard output"
    )
    parser.add_argument("--report", type=Path, metavar="FOLDER", help="for report.html and tables/")
    parser.add_argument(
        "--ties",
        choices=[ties.value for ties in Ties],
        default=Ties.RANDOM.value,
        help="in accuracies, one of equal candidates counts as drawn at random, or the first is taken (default:"
        " %(default)s)",
    )
    parser.add_argument("--skip-bad", action="store_true", help="leave out rows that are no candidates")
    parser.add_argument(
        "--skip-too-long", action="store_true", help="leave out, and name, candidates that are too long"
    )
    add_placement(parser)
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Choose among candidates by their scores, write the choices, and print their accuracy."""
    method, mode = RankingMethod(args.method), Mode(args.mode)
    output = Path(args.output)
    if args.candidates is None and args.dataset is None:
        raise UserError("no candidates to choose from.", "Name a file of them, or a dataset with --dataset.")
    if args.candidates is not None and args.candidates.resolve() == output.resolve():
        raise UserError("candidates and choices need files of their own.", "Give --output another name.")
    with open_store(args.db) as store:
        if args.candidates is None:
            dataset = find_dataset(store, args.dataset)
        else:
            dataset = import_candidates(store, args.candidates, args.dataset, skip_bad=args.skip_bad)
        pool = CandidateSet.read(store, dataset)
        if method.votes:
            pool.check_answers(method.value)
        result = rerank(
            pool,
            _evaluators(args, store, dataset, mode),
            mode,
            skip_missing=args.skip_too_long,
            ties=Ties(args.ties),
            shown=lambda problems: progress(problems, len(problems), "problems"),
        )
        rows = result.choices(method, args.by)
        with open_output(args.output) as out:
            for row in rows:
                out.write(f"{json.dumps(row, ensure_ascii=False)}\n")
    _report_accuracy(args, result)


def _evaluators(args: argparse.Namespace, store: Store, dataset: Dataset, mode: Mode) -> list[StoredEvaluator]:
    """Return the evaluators to choose by, after they have scored the candidates that they had not scored."""
    names = args.evaluator or ([] if args.candidates is None else [_DEFAULT])

    def check(evaluator: StoredEvaluator) -> StoredEvaluator:
        if names and not _scores_steps(evaluator):
            raise UserError(
                f"{evaluator.name} gives no scores of steps to choose by.", "Choose an evaluator that does."
            )
        return evaluator

    evaluators = find_evaluators(store, dataset, names, [mode], check, read_placement(args))
    chosen = [evaluator for evaluator in evaluators if _scores_steps(evaluator)]
    if not chosen:
        raise UserError(
            f"no evaluator has scored the steps of {dataset.name}.", "Name one with --evaluator, or import scores."
        )
    return chosen


def _scores_steps(evaluator: StoredEvaluator) -> bool:
    return evaluator.outputs in (Outputs.THREE_WAY, Outputs.VALIDITY)


def _report_accuracy(args: argparse.Namespace, result: Reranking) -> None:
    """Print the accuracy of the choices, and write a report on it if one is requested."""
    name = result.pool.dataset.name
    if not result.has_answers:
        if args.report is not None:
            raise UserError(
                f"{name}: no right answer is known, so there is nothing to report.",
                f"The choices are in {args.output}.",
            )
        return
    with redirect_stdout(sys.stderr if args.output == "-" else sys.stdout):
        print(accuracy_text(result, args.by))
        if args.report is not None:
            names = ", ".join(ranking.name for ranking in result.evaluators)
            lead = f"Scored by {names}, {args.mode}; answers compared {result.compared}."
            page = make_rerank_report(result, args.by, name, lead)
            print(write_report(page, args.report))
