"""The commands `report` and `rerank`: figures as a page and tables, and choices among candidate solutions.

stepsight report --dataset mr-math-invalid --dataset mr-math-redundant --output report
stepsight report --dataset mr-math-invalid --patch fixes.json --output report
stepsight report grid runs/grid-mini-as-labelled runs/grid-mini-random --output report
stepsight report paper --grid runs/grid --output report
stepsight rerank candidates.jsonl --evaluator mini-bidir --by min --method best-of-n --output chosen.jsonl
stepsight rerank --dataset strict-prmbench --by official --ties first --output chosen.jsonl --report report
"""

import argparse
import json
import sys
from argparse import Namespace
from contextlib import redirect_stdout
from pathlib import Path

from stepsight.app.options.command import (
    DB,
    DRAWS,
    MODES,
    PLACEMENT,
    command,
    flag,
    open_output,
    option,
    read_placement,
    repeated,
)
from stepsight.core.errors import UserError
from stepsight.core.files.label_patch import read_patch
from stepsight.core.judgment import Mode
from stepsight.core.metrics.best_of_n import Aggregation, RankingMethod, Ties
from stepsight.core.scores import Outputs
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.judgments.evaluators import StoredEvaluator
from stepsight.storage.traces.queries import Dataset, find_dataset
from stepsight.training.evaluate.judging import find_evaluators
from stepsight.training.experiments.finetuning.report import make_filtering_report
from stepsight.training.experiments.grid.results import read_results
from stepsight.training.experiments.grid.tables import make_grid_report
from stepsight.training.experiments.reranking.report import accuracy_text, make_rerank_report
from stepsight.training.experiments.reranking.reranking import (
    OFFICIAL,
    CandidateSet,
    Reranking,
    import_candidates,
    rerank,
    rule_of,
)
from stepsight.training.paper import grid_facts, make_paper_report, recipe_facts, store_facts
from stepsight.training.report.report import Report, make_report, write_report
from stepsight.training.report.tables import to_markdown
from stepsight.training.runs.progress import progress
from stepsight.training.stress.stress_test import read_result

_DEFAULT = "mini-bidir"
# A default here would override a value given before the subject.
_OUTPUT = option(
    "--output FOLDER",
    "for report.html and tables/ (default: Markdown on standard output)",
    type=Path,
    default=argparse.SUPPRESS,
)
_REPORT = "for report.html and tables/"


@command(
    repeated("--dataset NAME", "may be repeated"),
    repeated("--evaluator NAME", "may be repeated (default: all that judged a dataset)"),
    option("--group NAME", "only traces that the benchmark assigns to this class", default=""),
    option("--output FOLDER", _REPORT, type=Path),
    DRAWS,
    repeated("--patch FILE", "a label patch: its dataset is reported a second time, with the patch's labels"),
    repeated("--stress FILE", "a result of stepsight stress --output; may be repeated"),
    flag("--force", "show offline figures that are not meaningful"),
    DB,
    noun="subject",
)
def report_command(args: Namespace) -> None:
    """Write a report of stored judgments: a page and tables."""
    for name in ("dataset", "output"):
        if getattr(args, name) is None:
            raise UserError(f"--{name} is missing.", "See stepsight report --help.")
    patches = [read_patch(path) for path in args.patch or []]
    stress = [read_result(path) for path in args.stress or []]
    with open_store(args.db) as store:
        datasets = [find_dataset(store, name) for name in dict.fromkeys(args.dataset)]
        names = list(dict.fromkeys(args.evaluator or []))
        report = make_report(
            store, datasets, names, args.draws, args.force, args.group, patches=patches, more=stress
        )
    print(write_report(report, args.output))


@report_command.action(
    "grid",
    "report the results of a grid's runs",
    option(
        "results FOLDER",
        "the folder of a grid, its results.json, or the paper's table",
        nargs="+",
        type=Path,
    ),
    _OUTPUT,
)
def _report_grid(args: Namespace) -> None:
    _write(make_grid_report([read_results(path) for path in args.results]), args.output)


@report_command.action(
    "filtering",
    "report the results of models trained on subsets of a pool",
    option(
        "results FOLDER",
        "the folder of a stepsight math500 or filter-study, or the paper's table",
        nargs="+",
        type=Path,
    ),
    _OUTPUT,
)
def _report_filtering(args: Namespace) -> None:
    _write(make_filtering_report(args.results), args.output)


@report_command.action(
    "paper",
    "every table, figure and number of the LLaDA-PRM paper, with the values available here",
    option("--grid FOLDER", "the folder of a grid, or its results.json", type=Path),
    flag("--no-store", "leave out the store's datasets and judgments"),
    _OUTPUT,
)
def _report_paper(args: Namespace) -> None:
    facts = recipe_facts()
    if not args.no_store:
        with open_store(args.db) as store:
            facts |= store_facts(store)
    if args.grid:
        facts |= grid_facts(read_results(args.grid))
    _write(make_paper_report(facts), args.output)


def _write(report: Report, output: Path | None) -> None:
    if output is not None:
        print(write_report(report, output))
    else:
        print("\n".join(to_markdown(table) for table in report.tables), end="")


@command(
    option("candidates FILE", "candidate solutions as JSON Lines", type=Path, nargs="?"),
    option("--dataset NAME", "the dataset of the candidates (default: named after the file), or one of the store"),
    repeated(
        "--evaluator NAME",
        "a shipped name, a folder, a model hub's OWNER/NAME, or behind a server"
        f" vllm:http://HOST:8000/v1#MODEL, or one of the store; may be repeated (default: {_DEFAULT}, without a"
        " file all that have scored the dataset)",
    ),
    option(
        "--by",
        "a solution's score: the lowest validity of its steps, the product, the last, a mean, or what the"
        " evaluator's authors use (default: %(default)s)",
        choices=[*(by.value for by in Aggregation), OFFICIAL],
        default="min",
    ),
    option(
        "--method",
        "the best-scored solution, or the answer with most votes, weighted by score or not (default: %(default)s)",
        choices=[method.value for method in RankingMethod],
        default="best-of-n",
    ),
    option(
        "--mode",
        "score each step with the whole solution in view, or with no later step (default: %(default)s)",
        choices=MODES,
        default=MODES[0],
    ),
    option("--output FILE", "the file for the choices; - is standard output", required=True),
    option("--report FOLDER", _REPORT, type=Path),
    option(
        "--ties",
        "in accuracies, count equal candidates as drawn at random, or take the first (default: %(default)s)",
        choices=[ties.value for ties in Ties],
        default=Ties.RANDOM.value,
    ),
    flag("--skip-bad", "leave out rows that are not candidates"),
    flag("--skip-too-long", "leave out and list candidates that are too long"),
    PLACEMENT,
    DB,
)
def rerank_command(args: Namespace) -> None:
    """Choose one of several solutions of each problem and, if right answers are known, measure how often the choice
    is right. A line has problem, and solution or steps; it may have answer, problem_id, gold (the right answer),
    correct (true or false) and id. The file is imported as a dataset of the store, which keeps the scores."""
    method, mode = RankingMethod(args.method), Mode(args.mode)
    if args.candidates is None and args.dataset is None:
        raise UserError("no candidates to choose from.", "Give a file of candidates, or a dataset with --dataset.")
    if args.candidates is not None and args.candidates.resolve() == Path(args.output).resolve():
        raise UserError("the candidates and the choices cannot be in the same file.", "Give --output another name.")
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
            args.by,
            skip_missing=args.skip_too_long,
            ties=Ties(args.ties),
            shown=lambda problems: progress(problems, len(problems), "problems"),
        )
        with open_output(args.output) as out:
            out.writelines(f"{json.dumps(row, ensure_ascii=False)}\n" for row in result.choices(method))
    _report_accuracy(args, result)


def _evaluators(args: Namespace, store: Store, dataset: Dataset, mode: Mode) -> list[StoredEvaluator]:
    """Return the evaluators to choose by, after they have scored the candidates that they had not scored."""
    names = args.evaluator or ([] if args.candidates is None else [_DEFAULT])

    def check(evaluator: StoredEvaluator) -> StoredEvaluator:
        if names and not _scores_steps(evaluator):
            raise UserError(
                f"{evaluator.name} does not score steps to choose by.", "Choose an evaluator that does."
            )
        if _scores_steps(evaluator):
            rule_of(evaluator.name, args.by)  # checked before an hour of scoring
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


def _report_accuracy(args: Namespace, result: Reranking) -> None:
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
        print(accuracy_text(result))
        if args.report is not None:
            names = ", ".join(ranking.name for ranking in result.evaluators)
            lead = f"Scored by {names}, {args.mode}; answers compared {result.compared}."
            print(write_report(make_rerank_report(result, name, lead), args.report))
