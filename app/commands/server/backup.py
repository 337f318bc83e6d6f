"""Back up the whole store to one file while it is in use.

stepsight backup monday.backup
"""

import argparse

from stepsight.app.options.shared import add_db
from stepsight.storage.backup import make_backup
from stepsight.storage.database.store import open_store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Copy the whole store into one file and check it. A server may keep running. The file is a SQLite database"
        " for either kind of store, and stepsight restore reads it back into either."
    )
    parser.add_argument("path", metavar="FILE", help="the file to write; it holds the digests of passwords")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Write the backup and print a summary."""
    with open_store(args.db) as store:
        print(make_backup(store, args.path, args.force))
