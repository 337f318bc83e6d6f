"""The actions `rename` and `delete`, which several commands have."""

import argparse
from typing import Any

from stepsight.app.options.shared import confirm
from stepsight.storage.changes.finding import find_thing
from stepsight.storage.database.store import Store
from stepsight.storage.people.changes import Changeable


def add_action(
    actions: "argparse._SubParsersAction[argparse.ArgumentParser]", action: str, does: str, what: str = "NAME"
) -> argparse.ArgumentParser:
    """Add one of the actions, or any other, and return its parser. `does` describes the action. `what` stands for
    its object in the help, or is "" if it has none."""
    parser = actions.add_parser(action, help=does, description=f"{does.capitalize()}.")
    if what:
        parser.add_argument("name", metavar=what)
    if action == "rename":
        parser.add_argument("new", metavar="NEW")
    if action == "delete":
        parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    # It may stand before or after the action; a default here would override a value before it.
    parser.add_argument("--db", metavar="URL", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    return parser


def change_found(store: Store, args: argparse.Namespace, kind: str, **given: object) -> None:
    """Carry out one of the actions on the thing that `find_thing` finds."""
    change(store, find_thing(kind, {name: str(value) for name, value in given.items()}), args)


def change(store: Store, thing: Changeable[Any], args: argparse.Namespace) -> None:
    """Carry out one of the actions. Before a thing is deleted, everything that is deleted with it is listed. Raises
    `UserError` if the user then declines, or cannot be asked."""
    found = thing.read(store)
    if args.action == "rename":
        thing.rename(store, args.new)
        print(f"{found.name} is now {args.new}.")
    else:
        if found.obstacle:
            raise found.obstacle
        told = f"{found.name}: {'; '.join(found.lines)} will be deleted. {found.kept}".rstrip()
        confirm(told, yes=args.yes)
        thing.delete(store)
        print(f"{found.name}: deleted.")
