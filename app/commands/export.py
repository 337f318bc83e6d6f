"""Labels by people, written into a file.

stepsight export labels my-campaign labels.jsonl --format prm800k
"""

import argparse

from stepsight.app.commands.options import add_db
from stepsight.storage.database.store import open_store
from stepsight.storage.labelling.files.export_labels import FORMAT_NAMES, export_labels


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Write the labels that people gave in a campaign into a file: those that they agree on, where"
        " a decision comes before a majority, and a tie or unsure is unlabelled. jsonl and events lose nothing and"
        " are read back by: stepsight import labels FILE"
    )
    parser.add_argument("what", choices=["labels"], help="what to write")
    parser.add_argument("campaign", metavar="CAMPAIGN", help="a campaign of the store")
    parser.add_argument("path", metavar="FILE", help="the file to write")
    parser.add_argument("--format", required=True, choices=FORMAT_NAMES, help="the format of the file")
    parser.add_argument("--per-annotator", action="store_true", help="each one's own labels, a row for each")
    parser.add_argument(
        "--exposed",
        action="store_true",
        help="count also labels whose maker had seen scores, gold or others' labels of the trace",
    )
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Write the file, all of it or nothing, and print what is in it and what is not."""
    with open_store(args.db) as store:
        export = export_labels(
            store,
            args.campaign,
            args.path,
            args.format,
            per_annotator=args.per_annotator,
            exposed=args.exposed,
            force=args.force,
        )
    print(export)
