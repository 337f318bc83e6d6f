"""Writing a report of what evaluators reach.

stepsight report --dataset mr-math-invalid --dataset mr-math-redundant --output report
"""

import argparse
from pathlib import Path

from app.commands.options import add_db
from core.errors import UserError


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("report", help="write a report of stored judgments: a page and tables")
    parser.add_argument("--dataset", required=True, action="append", metavar="NAME", help="may be repeated")
    parser.add_argument(
        "--evaluator", action="append", metavar="NAME", help="may be repeated (default: all that judged a dataset)"
    )
    parser.add_argument(
        "--group", default="", metavar="NAME", help="only traces that the benchmark puts in this class"
    )
    parser.add_argument("--output", required=True, type=Path, metavar="FOLDER", help="for report.html and tables/")
    parser.add_argument("--draws", type=int, default=1000, help="bootstrap draws (default: %(default)s)")
    parser.add_argument("--force", action="store_true", help="show offline figures that mean nothing")
    add_db(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Write the report and print the path of its page."""
    from storage.queries import find_dataset
    from storage.store import open_store
    from training.report import make_report, write_report

    if args.draws < 1:
        raise UserError(f"--draws is {args.draws}, expected more than 0.")
    with open_store(args.db) as store:
        datasets = [find_dataset(store, name) for name in dict.fromkeys(args.dataset)]
        names = list(dict.fromkeys(args.evaluator or []))
        report = make_report(store, datasets, names, args.draws, args.force, args.group)
    print(write_report(report, args.output))
