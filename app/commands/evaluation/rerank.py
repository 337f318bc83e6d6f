"""Choose among candidate solutions of problems by the scores that evaluators give their steps.

stepsight rerank candidates.jsonl --evaluator mini-bidir --by min --method best-of-n --output chosen.jsonl
stepsight rerank candidates.jsonl --method weighted-vote --by product --output voted.jsonl --report report
stepsight rerank candidates.jsonl --scores first.jsonl --scores second.jsonl --output chosen.jsonl --report report
stepsight rerank --scores first.jsonl --scores second.jsonl --by official --ties first --output chosen.jsonl
stepsight rerank --dataset strict-prmbench --by official --output chosen.jsonl --report report
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from stepsight.app.options.shared import add_db, add_placement, open_output, progress, read_placement
from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Mode
from stepsight.core.metrics.best_of_n import Aggregation, RankingMethod, Ties
from stepsight.core.scoring.scorer import Scorer
from stepsight.storage.database.store import open_store
from stepsight.training.experiments.reranking.candidates import CandidateScores, CandidateSet, read_candidates
from stepsight.training.experiments.reranking.pool_scores import (
    EvaluatorScores,
    is_kept,
    read_score_file,
    stored_scores,
)
from stepsight.training.experiments.reranking.report import accuracy_text, make_rerank_report
from stepsight.training.experiments.reranking.reranking import OFFICIAL, Reranking, rerank
from stepsight.training.experiments.reranking.scores import score_candidates
from stepsight.training.report.report import write_report

_DEFAULT = "mini-bidir"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Choose one of several solutions of each problem and, if right answers are known, measure how often the"
        " choice is right. A line has problem, and solution or steps; it may have answer, problem_id,"
        " gold (the right answer), correct (true or false) and id."
    )
    parser.add_argument(
        "candidates", type=Path, nargs="?", metavar="FILE", help="candidate solutions as JSON Lines"
    )
    parser.add_argument("--dataset", metavar="NAME", help="instead of a file: the traces of a dataset in the store")
    parser.add_argument(
        "--evaluator",
        action="append",
        metavar="NAME",
        help="a shipped name, a folder, a model hub's OWNER/NAME, or behind a server"
        f" vllm:http://HOST:8000/v1#MODEL (default: {_DEFAULT}); with --dataset, one that has judged it, may be"
        " repeated (default: all)",
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
    parser.add_argument(
        "--scores",
        action="append",
        type=Path,
        metavar="FILE",
        help="an evaluator's scores: StrictPRMBench's, judgments that stepsight score wrote, or kept ones; may be"
        " repeated. One that does not exist, or keeps scores of --evaluator, is the file for scores, to resume and"
        " to choose again without scoring (default: the output's name with .scores.jsonl)",
    )
    parser.add_argument(
        "--skip-too-long", action="store_true", help="leave out, and name, candidates that are too long"
    )
    add_placement(parser)
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Choose among candidates by their scores, write the choices, and print their accuracy."""
    method = RankingMethod(args.method)
    pool, scored = _scored(args, method)
    result = rerank(
        pool,
        scored,
        Ties(args.ties),
        shown=lambda problems: progress(problems, len(problems), "problems"),
    )
    rows = result.choices(method, args.by)
    with open_output(args.output) as out:
        for row in rows:
            out.write(_line(row))
    _report_accuracy(args, result)


def _scored(args: argparse.Namespace, method: RankingMethod) -> tuple[CandidateSet, list[EvaluatorScores]]:
    """Return the candidates and their scores, which are read from the store or from files, or computed now."""
    if args.dataset is not None:
        return _scored_in_store(args, method)
    files: list[Path] = args.scores or []
    _check_distinct([args.candidates, Path(args.output), *files])
    # A run that was stopped at once leaves an empty file to go on with.
    if len(files) > 1 or (files and files[0].exists() and files[0].stat().st_size and not is_kept(files[0])):
        return _scored_in_files(args, method, files)
    if args.candidates is None:
        raise UserError("no candidates to choose from.", "Name a file of them, --dataset, or files with --scores.")
    kept = _scores_path(args)
    pool = read_candidates(args.candidates)
    _check_answers(pool, method)
    return pool, [_score(args, pool, kept)]


def _scored_in_store(args: argparse.Namespace, method: RankingMethod) -> tuple[CandidateSet, list[EvaluatorScores]]:
    if args.candidates is not None or args.scores:
        raise UserError("a dataset has its own candidates and scores.", "Name --dataset, or files, not both.")
    pool, scored = stored_scores(open_store(args.db), args.dataset, args.evaluator, Mode(args.mode))
    _check_answers(pool, method)
    return pool, scored


def _scored_in_files(
    args: argparse.Namespace, method: RankingMethod, files: Sequence[Path]
) -> tuple[CandidateSet, list[EvaluatorScores]]:
    if args.evaluator:
        raise UserError(
            "--evaluator scores candidates, and --scores names files that have scores.",
            "Give one of them; --evaluator with a file of its own keeps scores that can be given later.",
        )
    pool = read_candidates(args.candidates or files[0])
    if args.candidates is None and pool.has_texts:
        raise UserError(f"{files[0]}: holds candidates, not scores.", "Name it without --scores.")
    _check_answers(pool, method)
    scored = [read_score_file(path, pool, Mode(args.mode)) for path in files]
    for path, one in zip(files, scored, strict=True):
        if one.unused:
            print(f"{path}: {one.unused:,} rows of other candidates are left out.", file=sys.stderr)
    return pool, scored


def _line(row: dict[str, Any]) -> str:
    line = json.dumps(row, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, in a name, has no other spelling.
        line = json.dumps(row)
    return f"{line}\n"


def _check_answers(pool: CandidateSet, method: RankingMethod) -> None:
    """Raise `UserError` if the method is a vote and no candidate has an answer to vote for."""
    if method.votes and not any(candidate.answer is not None for candidate in pool.candidates):
        raise UserError(
            f"{pool.name}: no candidate has an answer, and {method.value} counts answers.",
            "Give each an answer, or use --method best-of-n.",
        )


def _scores_path(args: argparse.Namespace) -> Path | None:
    """Return the path of the file that keeps the scores: the one named by `--scores`, or else one next to the
    output.

    Returns None if no path is given and the output is not a file. Raises `UserError` if the candidates, choices and
    scores would share a file.
    """
    output = Path(args.output)
    beside = args.output != "-" and (output.is_file() or not output.exists())
    path = args.scores[0] if args.scores else (output.with_suffix(".scores.jsonl") if beside else None)
    _check_distinct([args.candidates, output, path])
    return path


def _check_distinct(paths: Sequence[Path | None]) -> None:
    """Raise `UserError` if two of these paths are the same file."""
    named = [path for path in paths if path is not None]
    if len({path.resolve() for path in named}) < len(named):
        raise UserError("candidates, choices and scores need files of their own.", "Give each another name.")


def _score(args: argparse.Namespace, pool: CandidateSet, path: Path | None) -> EvaluatorScores:
    name, *others = args.evaluator or [_DEFAULT]
    if others:
        raise UserError(
            "several evaluators, and one at a time scores candidates.",
            "Score with each, then give the files that they kept with --scores.",
        )
    place = read_placement(args)
    evaluator = load_evaluator(name, place.device, place.dtype, place.device_map)
    if not evaluator.outputs.has_scores:
        raise UserError(f"{evaluator.name} gives no scores to choose by.", "Choose an evaluator that does.")
    if evaluator.format != "stepsight":
        print(evaluator.described, file=sys.stderr)
    left_out: list[UserError] = []

    def skip(error: UserError) -> None:
        left_out.append(error)
        print(f"left out: {error.message}", file=sys.stderr)

    def shown(scores: Iterator[CandidateScores], count: int) -> Iterator[CandidateScores]:
        return progress(scores, count, "candidates")

    mode = Mode(args.mode)
    scored = score_candidates(Scorer(evaluator), pool, mode, path, skip if args.skip_too_long else None, shown)
    if left_out:
        print(f"{len(left_out):,} too long, chosen only where nothing else is there.", file=sys.stderr)
    return EvaluatorScores(evaluator.name, mode, evaluator.outputs, scored)


def _report_accuracy(args: argparse.Namespace, result: Reranking) -> None:
    """Print the accuracy of the choices, and write a report on it if one is requested."""
    if not result.has_answers:
        if args.report is not None:
            raise UserError(
                f"{result.pool.name}: no line has gold or correct, so there is nothing to report.",
                f"The choices are in {args.output}.",
            )
        return
    with redirect_stdout(sys.stderr if args.output == "-" else sys.stdout):
        print(accuracy_text(result, args.by))
        if args.report is not None:
            names = ", ".join(one.name for one in result.evaluators)
            lead = f"Scored by {names}, {args.mode}; answers compared {result.compared}."
            page = make_rerank_report(result, args.by, Path(result.pool.name).name, lead)
            print(write_report(page, args.report))
