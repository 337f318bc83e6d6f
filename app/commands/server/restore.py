"""A backup, put in the place of a store's content.

stepsight restore monday.backup --db restored.db
"""

import argparse

from stepsight.app.commands.options import add_db
from stepsight.storage.backup.restore import restore_backup


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Check a backup and put it in the place of a store's content. Stop the server first: what is"
        " written meanwhile is lost. Everybody has to log in again afterwards."
    )
    parser.add_argument("path", metavar="FILE", help="a file that stepsight backup wrote")
    parser.add_argument(
        "--force", action="store_true", help="replace what the store holds; that is kept as a backup beside it"
    )
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Restore the backup and print where, and what became of the old content."""
    print(restore_backup(args.path, args.db, args.force))
