"""List the datasets in the store, rename and delete them.

stepsight datasets --json
stepsight datasets delete my-traces
stepsight datasets delete my-traces --evaluator mini-bidir
"""

import argparse
import json

from stepsight.app.commands.changing import add_action, change_found
from stepsight.app.options.shared import add_db
from stepsight.storage.database.store import open_store
from stepsight.storage.traces.queries import Dataset, list_datasets

_ACTIONS = {
    "rename": "give a dataset another name",
    "delete": "delete a dataset with its judgments and ended jobs, or an evaluator's scores on it",
}
_COLUMNS = ("name", "kind", "traces", "left_out", "labelled", "errors", "redundant", "steps", "substeps")
_SHOWN = ("name", "kind", "size", "errors", "redundant", "steps", "substeps")
# Unknown in a dataset without gold labels.
_GOLD = ("errors", "redundant")
_TITLES = ("name", "kind", "traces", "with a gold error", "with redundant steps", "steps", "sub-steps")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_db(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    for action, does in _ACTIONS.items():
        one = add_action(actions, action, does)
        if action == "delete":
            one.add_argument("--evaluator", metavar="NAME", help="only the scores of this evaluator on it")


def run(args: argparse.Namespace) -> None:
    """List the datasets, or carry out one of `_ACTIONS`."""
    with open_store(args.db) as store:
        if args.action == "delete" and args.evaluator:
            change_found(store, args, "scores", dataset=args.name, called=args.evaluator)
        elif args.action:
            change_found(store, args, "dataset", dataset=args.name)
        else:
            _list(args, list_datasets(store))


def _list(args: argparse.Namespace, datasets: list[Dataset]) -> None:
    """Print a table of the datasets: their names, kinds, and numbers of traces, of traces with an error, and of
    steps. If bad rows were left out of a dataset, its number of traces looks like `6,116 of 6,216`."""
    if args.json:
        print(json.dumps([{column: getattr(row, column) for column in _COLUMNS} for row in datasets], indent=1))
        return
    if not datasets:
        print("The store is empty. Import a file: stepsight import KIND PATH")
        return
    rows = [_TITLES, *(tuple(_cell(row, column) for column in _SHOWN) for row in datasets)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(_SHOWN))]
    for row in rows:
        left = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        print("  ".join([*left, *right]).rstrip())


def _cell(dataset: Dataset, column: str) -> str:
    if column in _GOLD and not dataset.labelled:
        return "no labels"
    value: str | int = getattr(dataset, column)
    return value if isinstance(value, str) else f"{value:,}"
