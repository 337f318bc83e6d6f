"""List the saved views of Browse, rename and delete them. A view belongs to a dataset.

stepsight views
stepsight views rename "wrong ones" errors --user ada
"""

import argparse

from stepsight.app.commands.changing import add_action, change
from stepsight.app.options.shared import add_db
from stepsight.storage.database.store import NotFoundError, Store, open_store
from stepsight.storage.people.users import User, find_user, local_user
from stepsight.storage.people.views import ChangeableView, SavedView, list_views

_ACTIONS = {"rename": "give a view another name", "delete": "delete a view"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--user", metavar="NAME", help="whose views (default: those that everybody sees)")
    add_db(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    for action, does in _ACTIONS.items():
        one = add_action(actions, action, does)
        one.add_argument("--user", metavar="NAME", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> None:
    """List a user's views with the dataset of each, or carry out one of `_ACTIONS`."""
    with open_store(args.db) as store:
        user = find_user(store, args.user) if args.user else local_user(store)
        views = _own(store, user)
        if args.action:
            change(store, ChangeableView(user, _find(views, args.name).id), args)
            return
        width = max((len(view.name) for view in views), default=0)
        for view in views:
            print(f"{view.name.ljust(width)}  {view.dataset}  /browse?{view.query}")
        if not views:
            print("There is no saved view.")


def _own(store: Store, user: User) -> list[SavedView]:
    return [view for view in list_views(store, user) if view.may_change]


def _find(views: list[SavedView], name: str) -> SavedView:
    """Return the view of this name. Raises `NotFoundError` if there is none."""
    for view in views:
        if view.name == name:
            return view
    names = ", ".join(view.name for view in views) or "none"
    raise NotFoundError(f"There is no view {name!r:.80}.", f"There are {names}.")
