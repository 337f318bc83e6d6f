"""Manage the users who may log in.

stepsight user add ada --role annotator
"""

import argparse
import getpass
import sys

from stepsight.app.options.shared import add_db
from stepsight.core.errors import UserError
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import (
    Role,
    User,
    add_user,
    end_user,
    find_user,
    has_users,
    list_users,
    set_password,
    set_role,
)

_ROLES = [role.value for role in Role]
_ACTIONS = {
    "add": "add a person, and ask for the password",
    "list": "list everybody",
    "role": "change a person's role",
    "password": "set a new password, which ends the person's logins and reactivates a deactivated account",
    "key": "print a new key for programs that act for the person; it ends when the password changes",
    "deactivate": "end a person's access at once; what the person did stays",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    for action, does in _ACTIONS.items():
        # Or --password would pass for --password-stdin.
        one = actions.add_parser(action, help=does, allow_abbrev=False)
        if action != "list":
            one.add_argument("name", metavar="NAME")
        if action == "role":
            one.add_argument("role", choices=_ROLES)
        if action == "add":
            one.add_argument("--role", required=True, choices=_ROLES)
        if action in ("add", "password"):
            one.add_argument("--password-stdin", action="store_true", help="read it from standard input, one line")
        add_db(one)


def run(args: argparse.Namespace) -> None:
    """Carry out one of `_ACTIONS` and print the resulting state of the users."""
    with open_store(args.db) as store:
        if args.action == "list":
            _print_users(list_users(store))
        elif args.action == "key":
            print(_new_key(store, args.name))
        else:
            _change(args, store)


def _change(args: argparse.Namespace, store: Store) -> None:
    before = has_users(store)
    if args.action == "add":
        user = add_user(store, args.name, Role(args.role), _read_password(args))
    elif args.action == "password":
        # Nobody types a password twice to learn that there is no such user.
        find_user(store, args.name)
        user = set_password(store, args.name, _read_password(args))
    elif args.action == "role":
        user = set_role(store, args.name, Role(args.role))
    else:
        user = end_user(store, args.name)
    print(f"{user.name}: {_state(user)}")
    after = has_users(store)
    if before != after:
        print("From now on everybody has to log in." if after else "Nobody can log in any more, or has to.")


def _new_key(store: Store, name: str) -> str:
    """Create a login for programs and return its API key. Raises `UserError` if the user is deactivated."""
    user = find_user(store, name)
    if not user.active:
        raise UserError(f"{user.name} is deactivated.", "Set a new password to reactivate the account.")
    return open_login(store, user)


def _read_password(args: argparse.Namespace) -> str:
    """Read a password, typed twice at the terminal, or from the first line of standard input. Raises `UserError` if
    there is no terminal or the two entries differ."""
    if args.password_stdin:
        return sys.stdin.readline().rstrip("\r\n")
    if not sys.stdin.isatty():
        raise UserError("There is no terminal to ask for the password on.", "Use --password-stdin.")
    password = getpass.getpass(f"Password of {args.name}: ")
    if getpass.getpass("Once more: ") != password:
        raise UserError("The two passwords differ.", "Try again.")
    return password


def _print_users(users: list[User]) -> None:
    if not users:
        print("There is no user. Add one: stepsight user add NAME --role admin")
    width = max((len(user.name) for user in users), default=0)
    for user in users:
        print(f"{user.name.ljust(width)}  {_state(user)}")


def _state(user: User) -> str:
    return user.role if user.active else f"{user.role}, deactivated"
