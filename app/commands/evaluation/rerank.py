"""Choose among candidate solutions of problems by an evaluator's scores of their steps.

stepsight rerank candidates.jsonl --evaluator mini-bidir --by min --method best-of-n --output chosen.jsonl
stepsight rerank candidates.jsonl --method weighted-vote --by product --output voted.jsonl --report report
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from stepsight.app.commands.options import add_evaluator, open_output, progress
from stepsight.app.scoring.placement_options import add_placement, read_placement
from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Mode
from stepsight.core.metrics.best_of_n import Aggregation, RankingMethod
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.scoring.scorer import Scorer
from stepsight.training.experiments.reranking.accuracy import Accuracy, measure
from stepsight.training.experiments.reranking.answers import AnswerComparer
from stepsight.training.experiments.reranking.candidates import CandidateSet, read_candidates
from stepsight.training.experiments.reranking.choices import Ranked, choices, rank
from stepsight.training.experiments.reranking.report import about, make_rerank_report, tables_of
from stepsight.training.experiments.reranking.scores import CandidateScores, score_candidates
from stepsight.training.report.report import write_report
from stepsight.training.report.tables import to_text


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Choose one of several solutions of each problem and, if right answers are known, measure how often the"
        " choice is right. A line has problem, and solution or steps; it may have answer, problem_id,"
        " gold (the right answer), correct (true or false) and id."
    )
    parser.add_argument("candidates", type=Path, metavar="FILE", help="candidate solutions as JSON Lines")
    add_evaluator(parser)
    parser.add_argument(
        "--by",
        choices=[by.value for by in Aggregation],
        default="min",
        help="a solution's score: the least validity of its steps, the product, or the last (default: %(default)s)",
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
        "--scores",
        type=Path,
        metavar="FILE",
        help="the file for scores, to resume and to choose again without scoring (default: the output's name with"
        " .scores.jsonl)",
    )
    parser.add_argument(
        "--skip-too-long", action="store_true", help="leave out, and name, candidates that are too long"
    )
    add_placement(parser)


def run(args: argparse.Namespace) -> None:
    """Read and score the candidates, write the choices, and print the accuracy of the choices."""
    kept = _scores_path(args)
    method = RankingMethod(args.method)
    place = read_placement(args)
    pool = read_candidates(args.candidates)
    _check_answers(pool, method)
    evaluator = load_evaluator(args.evaluator, place.device, place.dtype, place.device_map)
    if not evaluator.outputs.has_scores:
        raise UserError(f"{evaluator.name} gives no scores to choose by.", "Choose an evaluator that does.")
    scored = _score(args, evaluator, pool, kept)
    with AnswerComparer() as answers:
        ranked = rank(pool, scored, answers)
        compared = answers.described
    with open_output(args.output) as out:
        for row in choices(pool, scored, ranked, method, Aggregation(args.by), evaluator.outputs):
            row = {"evaluator": evaluator.name, "mode": args.mode} | row
            out.write(_line(row))
    _report_accuracy(args, evaluator, ranked, compared)


def _line(row: dict[str, Any]) -> str:
    line = json.dumps(row, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, in a name, has no other spelling.
        line = json.dumps(row)
    return f"{line}\n"


def _check_answers(pool: CandidateSet, method: RankingMethod) -> None:
    """Raise `UserError` if the method is a vote but no candidate has an answer."""
    if method.votes and not any(candidate.answer is not None for candidate in pool.candidates):
        raise UserError(
            f"{pool.path}: no candidate has an answer, and {method.value} counts answers.",
            "Give each an answer, or use --method best-of-n.",
        )


def _scores_path(args: argparse.Namespace) -> Path | None:
    """Return the path of the file for scores, or None if none is given and the output is not a file.

    Raises `UserError` if the candidates, choices and scores would share a file.
    """
    output = Path(args.output)
    beside = args.output != "-" and (output.is_file() or not output.exists())
    path: Path | None = args.scores or (output.with_suffix(".scores.jsonl") if beside else None)
    named = [path for path in (args.candidates, output, path) if path is not None]
    if len({path.resolve() for path in named}) < len(named):
        raise UserError("candidates, choices and scores need files of their own.", "Give each another name.")
    return path


def _score(
    args: argparse.Namespace, evaluator: Evaluator, pool: CandidateSet, path: Path | None
) -> list[CandidateScores]:
    if evaluator.format != "stepsight":
        print(evaluator.described, file=sys.stderr)
    left_out: list[UserError] = []

    def skip(error: UserError) -> None:
        left_out.append(error)
        print(f"left out: {error.message}", file=sys.stderr)

    def shown(scores: Iterator[CandidateScores], count: int) -> Iterator[CandidateScores]:
        return progress(scores, count, "candidates")

    scored = score_candidates(
        Scorer(evaluator), pool, Mode(args.mode), path, skip if args.skip_too_long else None, shown
    )
    if left_out:
        print(f"{len(left_out):,} too long, chosen only where nothing else is there.", file=sys.stderr)
    return scored


def _report_accuracy(
    args: argparse.Namespace, evaluator: Evaluator, ranked: Sequence[Ranked], compared: str
) -> None:
    """Print the accuracy of the choices, and write a report on it if requested."""
    accuracy = measure(ranked, shown=lambda problems: progress(problems, len(problems), "problems"))
    if accuracy is None:
        if args.report is not None:
            raise UserError(
                f"{args.candidates}: no line has gold or correct, so there is nothing to report.",
                f"The choices are in {args.output}.",
            )
        return
    with redirect_stdout(sys.stderr if args.output == "-" else sys.stdout):
        _print(accuracy)
        print(f"\nAnswers compared {compared}.")
        if args.report is not None:
            lead = f"Scored by {evaluator.name}, {args.mode}; answers compared {compared}."
            print(write_report(make_rerank_report(accuracy, args.candidates.name, lead), args.report))


def _print(accuracy: Accuracy) -> None:
    print(about(accuracy))
    for table in tables_of(accuracy):
        print(f"\n{to_text(table)}", end="")
