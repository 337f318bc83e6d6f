"""The commands `datasets`, `jobs`, `user`, `backup` and `restore`: what a store holds, and who may use it.

stepsight datasets delete my-traces --evaluator mini-bidir
stepsight jobs cancel 7
stepsight user add ada --role annotator
stepsight backup monday.backup
stepsight restore monday.backup --db restored.db
"""

import getpass
import json
import sys
from argparse import Namespace
from typing import Any

from stepsight.app.options.command import DB, FORCE, JSON, YES, Command, Parser, command, flag, option
from stepsight.core.errors import UserError
from stepsight.storage.backup import make_backup, restore_backup
from stepsight.storage.changes import find_thing
from stepsight.storage.database.jobs_schema import Job, Task
from stepsight.storage.database.store import Store
from stepsight.storage.jobs.jobs import cancel_job, list_jobs
from stepsight.storage.people.changes import Changeable
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
from stepsight.storage.traces.queries import Dataset, list_datasets
from stepsight.training.runs.progress import confirm

NAME = option("name NAME")
NEW = option("new NEW")


def rename(store: Store, thing: Changeable[Any], new: str) -> None:
    """Rename a thing, and print its old and new name."""
    before = thing.read(store)
    thing.rename(store, new)
    print(f"{before.name} is now {new}.")


def delete(store: Store, thing: Changeable[Any], *, yes: bool) -> None:
    """List everything that is deleted with a thing, and delete it. Raises `UserError` if the user declines, or
    cannot be asked."""
    before = thing.read(store)
    if before.obstacle:
        raise before.obstacle
    confirm(f"{before.name}: {'; '.join(before.lines)} will be deleted. {before.kept}".rstrip(), yes=yes)
    thing.delete(store)
    print(f"{before.name}: deleted.")


_DATASET_COLUMNS = ("name", "kind", "traces", "left_out", "labelled", "errors", "redundant", "steps", "substeps")
_DATASET_TITLES = {
    "name": "name",
    "kind": "kind",
    "size": "traces",
    "errors": "with a gold error",
    "redundant": "with redundant steps",
    "steps": "steps",
    "substeps": "sub-steps",
}


@command(JSON)
def datasets_command(args: Namespace, store: Store) -> None:
    """List the datasets of the store, rename and delete them.

    If bad rows were left out of a dataset, its number of traces looks like `6,116 of 6,216`.
    """
    datasets = list_datasets(store)
    if args.json:
        rows = [{column: getattr(row, column) for column in _DATASET_COLUMNS} for row in datasets]
        print(json.dumps(rows, indent=1))
        return
    if not datasets:
        print("The store is empty. Import a file: stepsight import KIND PATH")
        return
    table = [[*_DATASET_TITLES.values()], *([_cell(row, column) for column in _DATASET_TITLES] for row in datasets)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    for row in table:
        left = [cell.ljust(width) for cell, width in zip(row[:2], widths[:2], strict=True)]
        right = [cell.rjust(width) for cell, width in zip(row[2:], widths[2:], strict=True)]
        print("  ".join([*left, *right]).rstrip())


def _cell(dataset: Dataset, column: str) -> str:
    if column in ("errors", "redundant") and not dataset.labelled:
        return "no labels"
    value: str | int = getattr(dataset, column)
    return value if isinstance(value, str) else f"{value:,}"


@datasets_command.action("rename", "rename a dataset", NAME, NEW)
def _rename_dataset(args: Namespace, store: Store) -> None:
    rename(store, find_thing("dataset", {"dataset": args.name}), args.new)


@datasets_command.action(
    "delete",
    "delete a dataset with its judgments and finished jobs, or an evaluator's scores on it",
    NAME,
    YES,
    option("--evaluator NAME", "only the scores of this evaluator on it"),
)
def _delete_dataset(args: Namespace, store: Store) -> None:
    scores = {"called": args.evaluator} if args.evaluator else {}
    thing = find_thing("scores" if scores else "dataset", {"dataset": args.name} | scores)
    delete(store, thing, yes=args.yes)


_JOB_COLUMNS = ("id", "task", "subject", "dataset", "evaluator", "state", "total", "done", "left_out", "reason")


@command(JSON, option("--limit N", "the newest N (default: 50)", type=int, default=50))
def jobs_command(args: Namespace, store: Store) -> None:
    """List the jobs of the store, cancel them, and delete those that have ended."""
    jobs = list_jobs(store, args.limit)
    if args.json:
        rows = [{name: getattr(job, name) for name in _JOB_COLUMNS} | {"mode": _mode(job)} for job in jobs]
        print(json.dumps(rows, indent=1))
    elif not jobs:
        print("There are no jobs.")
    else:
        for job in jobs:
            about = job.subject or f"{job.dataset}, {job.evaluator}, {_mode(job)}"
            print(f"{job.id:>5}  {job.state:<9}  {about}{f'  {job.reason}' if job.reason else ''}")


def _mode(job: Job) -> str | None:
    return str(job.mode) if job.task == Task.JUDGE else None


@jobs_command.action("cancel", "cancel a job; its judgments stay", option("job JOB", type=int))
def _cancel_job(args: Namespace, store: Store) -> None:
    print(f"Job {cancel_job(store, args.job).id} is cancelled.")


@jobs_command.action(
    "delete",
    "delete a finished job, or all; what they have stored is kept",
    YES,
    option("job JOB", "default: all finished jobs", type=int, nargs="?"),
)
def _delete_jobs(args: Namespace, store: Store) -> None:
    thing = find_thing("ended-jobs", {}) if args.job is None else find_thing("job", {"job": str(args.job)})
    delete(store, thing, yes=args.yes)


_ROLES = [role.value for role in Role]
_PASSWORD = flag("--password-stdin", "read it from standard input, one line")
user_command = Command(None, (), "Add, list and change the people who may log in.")


def _disallow_abbreviations(parser: Parser) -> None:
    """Have --password not pass for --password-stdin."""
    parser.allow_abbrev = False


@user_command.action(
    "add",
    "add a person, and ask for the password",
    NAME,
    option("--role", required=True, choices=_ROLES),
    _PASSWORD,
    _disallow_abbreviations,
)
def _add_user(args: Namespace, store: Store) -> None:
    before = has_users(store)
    _print_change(store, add_user(store, args.name, Role(args.role), _read_password(args)), before)


@user_command.action("list", "list everybody")
def _list_users(args: Namespace, store: Store) -> None:
    users = list_users(store)
    if not users:
        print("There are no users. Add one: stepsight user add NAME --role admin")
    width = max((len(user.name) for user in users), default=0)
    for user in users:
        print(f"{user.name.ljust(width)}  {_state(user)}")


@user_command.action("role", "change a person's role", NAME, option("role", choices=_ROLES))
def _set_role(args: Namespace, store: Store) -> None:
    _print_change(store, set_role(store, args.name, Role(args.role)), has_users(store))


@user_command.action(
    "password",
    "set a new password, which ends the person's logins and reactivates a deactivated account",
    NAME,
    _PASSWORD,
    _disallow_abbreviations,
)
def _set_password(args: Namespace, store: Store) -> None:
    before = has_users(store)
    # Nobody should type a password twice only to learn that there is no such user.
    find_user(store, args.name)
    _print_change(store, set_password(store, args.name, _read_password(args)), before)


@user_command.action(
    "key", "print a new key for programs that act for the person; it ends when the password changes", NAME
)
def _print_key(args: Namespace, store: Store) -> None:
    user = find_user(store, args.name)
    if not user.active:
        raise UserError(f"{user.name} is deactivated.", "Set a new password to reactivate the account.")
    print(open_login(store, user))


@user_command.action("deactivate", "end a person's access at once; what they did is kept", NAME)
def _deactivate(args: Namespace, store: Store) -> None:
    before = has_users(store)
    _print_change(store, end_user(store, args.name), before)


def _read_password(args: Namespace) -> str:
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


def _print_change(store: Store, user: User, before: bool) -> None:
    """Print the state of a user, and whether logging in is now needed, if it was not `before`, or the opposite."""
    print(f"{user.name}: {_state(user)}")
    after = has_users(store)
    if before != after:
        print("From now on everybody has to log in." if after else "Nobody can log in any more, or has to.")


def _state(user: User) -> str:
    return user.role if user.active else f"{user.role}, deactivated"


@command(option("path FILE", "the file to write; it holds the digests of passwords"), FORCE)
def backup_command(args: Namespace, store: Store) -> None:
    """Copy the whole store into one file and check it. A server may keep running. The file is a SQLite database
    for either kind of store, and stepsight restore reads it back into either."""
    print(make_backup(store, args.path, args.force))


@command(
    option("path FILE", "a file that stepsight backup wrote"),
    flag("--force", "replace a store that is not empty; its content is kept as a backup beside it"),
    DB,
)
def restore_command(args: Namespace) -> None:
    """Check a backup and replace a store's content with it. Stop the server first: anything written in the meantime
    is lost. Everybody has to log in again afterwards."""
    print(restore_backup(args.path, args.db, args.force))
