"""List the datasets in the store.

stepsight datasets --json
"""

import argparse
import json

from stepsight.app.commands.options import add_db
from stepsight.storage.database.store import open_store
from stepsight.storage.traces.queries import Dataset, list_datasets

_COLUMNS = ("name", "kind", "traces", "left_out", "labelled", "errors", "redundant", "steps", "substeps")
_SHOWN = ("name", "kind", "size", "errors", "redundant", "steps", "substeps")
# Unknown in a dataset without gold labels.
_GOLD = ("errors", "redundant")
_TITLES = ("name", "kind", "traces", "with a gold error", "with redundant steps", "steps", "sub-steps")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Print a table of the datasets: their names, kinds, and numbers of traces, of traces with an error, and of
    steps. If bad rows were left out of a dataset, its number of traces looks like `6,116 of 6,216`."""
    with open_store(args.db) as store:
        datasets = list_datasets(store)
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
