"""List the datasets in the store, rename, archive and delete them.

stepsight datasets --json
stepsight datasets delete my-traces
"""

import argparse
import json

from stepsight.app.commands.options import add_db, confirm
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.traces.dataset_changes import (
    archive_dataset,
    delete_dataset,
    read_dependents,
    remove_withdrawn,
    rename_dataset,
)
from stepsight.storage.traces.queries import Dataset, list_datasets, list_deletions

_ACTIONS = {
    "rename": "give a dataset another name",
    "archive": "leave a dataset out of lists and choices",
    "unarchive": "list an archived dataset again",
    "delete": "delete a dataset with its judgments, ended jobs and saved views",
    "deletions": "list what was deleted, by whom and when",
}
_COLUMNS = ("name", "kind", "traces", "left_out", "labelled", "errors", "redundant", "steps", "substeps")
_SHOWN = ("name", "kind", "size", "errors", "redundant", "steps", "substeps")
# Unknown in a dataset without gold labels.
_GOLD = ("errors", "redundant")
_TITLES = ("name", "kind", "traces", "with a gold error", "with redundant steps", "steps", "sub-steps")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--archived", action="store_true", help="the archived ones")
    add_db(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    for action, does in _ACTIONS.items():
        one = actions.add_parser(action, help=does, description=f"{does.capitalize()}.")
        if action != "deletions":
            one.add_argument("name", metavar="NAME")
        if action == "rename":
            one.add_argument("new", metavar="NEW")
        if action == "delete":
            one.add_argument("--yes", action="store_true", help="do not ask for confirmation")
        # --db may stand before or after the action; a default here would override a value before it.
        one.add_argument("--db", metavar="URL", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> None:
    """List the datasets, or carry out one of `_ACTIONS`."""
    with open_store(args.db) as store:
        if args.action == "rename":
            rename_dataset(store, args.name, args.new)
            print(f"{args.name} is now {args.new}.")
        elif args.action in ("archive", "unarchive"):
            archive_dataset(store, args.name, args.action == "archive")
            print(f"{args.name} is {'archived' if args.action == 'archive' else 'listed again'}.")
        elif args.action == "delete":
            _delete(store, args.name, yes=args.yes)
        elif args.action == "deletions":
            for one in list_deletions(store):
                print(f"{one.moment:%Y-%m-%d %H:%M}  {one.person}  {one.kind} {one.name}  {one.extent}".rstrip())
        else:
            _list(args, list_datasets(store, archived=args.archived))


def _delete(store: Store, name: str, *, yes: bool) -> None:
    """Delete a dataset after naming what is deleted with it. Raises `UserError` if the user declines, or cannot be
    asked."""
    dependents = read_dependents(store, name)
    if dependents.obstacle:
        raise dependents.obstacle
    confirm(f"{name}: {'; '.join(dependents.lines)} will be deleted.", yes=yes)
    delete_dataset(store, name)
    remove_withdrawn(store)
    print(f"{name} is deleted.")


def _list(args: argparse.Namespace, datasets: list[Dataset]) -> None:
    """Print a table of the datasets: their names, kinds, and numbers of traces, of traces with an error, and of
    steps. If bad rows were left out of a dataset, its number of traces looks like `6,116 of 6,216`."""
    if args.json:
        print(json.dumps([{column: getattr(row, column) for column in _COLUMNS} for row in datasets], indent=1))
        return
    if not datasets:
        empty = "The store is empty. Import a file: stepsight import KIND PATH"
        print("No dataset is archived." if args.archived else empty)
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
