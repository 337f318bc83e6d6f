"""Write reports on the performance of evaluators.

stepsight report --dataset mr-math-invalid --dataset mr-math-redundant --output report
stepsight report --dataset mr-math-invalid --patch fixes.json --output report
stepsight report --dataset gallery --stress stress.jsonl --output report
stepsight report grid runs/grid-mini-as-labelled runs/grid-mini-random --output report
stepsight report filtering runs/filter-mini --output report
stepsight report paper --grid runs/grid --output report
"""

import argparse
from contextlib import nullcontext
from pathlib import Path

from stepsight.app.options.shared import add_db
from stepsight.core.errors import UserError
from stepsight.core.files.label_patch import read_patch
from stepsight.storage.database.store import open_store
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.experiments.finetuning.math500 import read_results as read_filtering
from stepsight.training.experiments.finetuning.report import make_filtering_report
from stepsight.training.experiments.grid.report import make_grid_report
from stepsight.training.experiments.grid.results import read_results
from stepsight.training.paper.facts import (
    filter_facts,
    grid_facts,
    label_facts,
    recipe_facts,
    store_facts,
    training_facts,
)
from stepsight.training.paper.page import make_paper_report
from stepsight.training.report.report import Report, make_report, write_report
from stepsight.training.report.table_files import to_markdown
from stepsight.training.stress.result import read_result


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dataset", action="append", metavar="NAME", help="may be repeated")
    parser.add_argument(
        "--evaluator", action="append", metavar="NAME", help="may be repeated (default: all that judged a dataset)"
    )
    parser.add_argument(
        "--group", default="", metavar="NAME", help="only traces that the benchmark puts in this class"
    )
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="for report.html and tables/")
    parser.add_argument("--draws", type=int, default=1000, help="bootstrap draws (default: %(default)s)")
    parser.add_argument(
        "--patch",
        action="append",
        metavar="FILE",
        help="a label patch: its dataset is reported a second time, with the patch's labels",
    )
    parser.add_argument(
        "--stress", action="append", metavar="FILE", help="a result of stepsight stress --output; may be repeated"
    )
    parser.add_argument("--force", action="store_true", help="show offline figures that are not meaningful")
    add_db(parser)
    subjects = parser.add_subparsers(dest="subject", required=False, metavar="SUBJECT")
    _add_grid(subjects)
    _add_filtering(subjects)
    _add_paper(subjects)


def _add_output(parser: argparse.ArgumentParser) -> None:
    """Add `--output` to the parser of a report's subject, such as `grid`. The option has no default there, since
    that would override a value given before the subject."""
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FOLDER",
        default=argparse.SUPPRESS,
        help="for report.html and tables/ (default: Markdown on standard output)",
    )


def _add_grid(subjects: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subjects.add_parser("grid", help="report the results of a grid's runs")
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="FOLDER",
        help="the folder of a grid, its results.json, or the paper's table",
    )
    _add_output(parser)
    parser.set_defaults(run=run_grid)


def _add_filtering(subjects: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subjects.add_parser("filtering", help="report the results of models trained on subsets of a pool")
    parser.add_argument(
        "results",
        nargs="+",
        type=Path,
        metavar="FOLDER",
        help="the folder of a stepsight math500 or filter-study, or the paper's table",
    )
    _add_output(parser)
    parser.set_defaults(run=run_filtering)


def _add_paper(subjects: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subjects.add_parser(
        "paper", help="every table, figure and number of the LLaDA-PRM paper, beside those available here"
    )
    parser.add_argument("--train", metavar="DATASET", help="the dataset with PRM800K's phase2_train.jsonl")
    parser.add_argument("--test", metavar="DATASET", help="the dataset with PRM800K's phase2_test.jsonl")
    parser.add_argument("--grid", type=Path, metavar="FOLDER", help="the folder of a grid, or its results.json")
    parser.add_argument(
        "--filtering",
        type=Path,
        nargs="+",
        default=[],
        metavar="FOLDER",
        help="the folder of a stepsight math500 or filter-study",
    )
    parser.add_argument(
        "--run", type=Path, metavar="FOLDER", dest="trained", help="the evaluator that LLaDA-PRM's training wrote"
    )
    parser.add_argument("--no-store", action="store_true", help="leave out the store's datasets and judgments")
    _add_output(parser)
    parser.add_argument("--db", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    parser.set_defaults(run=run_paper)


def run_paper(args: argparse.Namespace) -> None:
    """Write the report on the paper's results and print the path of its page, or print its tables if there is no
    `--output`."""
    if args.no_store and (args.train or args.test):
        raise UserError("--train and --test need the store.", "Leave --no-store out.")
    facts = recipe_facts()
    with nullcontext() if args.no_store else open_store(args.db) as store:
        if store is not None:
            facts |= store_facts(store)
            for split in ("train", "test"):
                if name := getattr(args, split):
                    facts |= label_facts(store, name, split)
    if args.grid:
        facts |= grid_facts(read_results(args.grid))
    if args.filtering:
        facts |= filter_facts(read_filtering(args.filtering))
    if args.trained:
        facts |= training_facts(args.trained)
    _give(make_paper_report(facts), args.output)


def run_grid(args: argparse.Namespace) -> None:
    """Write the report on a grid and print the path of its page, or print its tables."""
    _give(make_grid_report([read_results(path) for path in args.results]), args.output)


def run_filtering(args: argparse.Namespace) -> None:
    """Write the report on filter studies and print the path of its page, or print its tables if there is no
    `--output`."""
    _give(make_filtering_report(args.results), args.output)


def _give(report: Report, output: Path | None) -> None:
    if output is not None:
        print(write_report(report, output))
    else:
        print("\n".join(to_markdown(table) for table in report.tables), end="")


def run(args: argparse.Namespace) -> None:
    """Write the report on evaluators' performance on the datasets, and print the path of its page."""
    for name in ("dataset", "output"):
        if getattr(args, name) is None:
            raise UserError(f"--{name} is missing.", "See stepsight report --help.")
    if args.draws < 1:
        raise UserError(f"--draws is {args.draws}, expected more than 0.")
    patches = [read_patch(path) for path in args.patch or []]
    stress = [read_result(path) for path in args.stress or []]
    with open_store(args.db) as store:
        datasets = [find_dataset(store, name) for name in dict.fromkeys(args.dataset)]
        names = list(dict.fromkeys(args.evaluator or []))
        report = make_report(
            store, datasets, names, args.draws, args.force, args.group, patches=patches, more=stress
        )
    print(write_report(report, args.output))
