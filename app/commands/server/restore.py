"""Replace the content of a store with a backup.

stepsight restore monday.backup --db restored.db
"""

import argparse

from stepsight.app.options.shared import add_db
from stepsight.storage.backup import restore_backup


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Check a backup and replace a store's content by it. Stop the server first: anything written meanwhile is"
        " lost. Everybody has to log in again afterwards."
    )
    parser.add_argument("path", metavar="FILE", help="a file that stepsight backup wrote")
    parser.add_argument(
        "--force",
        action="store_true",
        help="replace a store that is not empty; its content is kept as a backup beside it",
    )
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Restore the backup, and print the locations of the store and of the backup of its previous content."""
    print(restore_backup(args.path, args.db, args.force))
