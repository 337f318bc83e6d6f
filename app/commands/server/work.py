"""Run a worker for jobs, either without a server or for a server on another machine.

stepsight work
"""

import argparse
import sys

from stepsight.app.jobs.worker import Worker
from stepsight.app.options.shared import add_db, add_placement, read_placement
from stepsight.storage.database.store import open_store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="exit when no job is left")
    add_placement(parser)
    add_db(parser)


def run(args: argparse.Namespace) -> None:
    """Run jobs until interrupted or, with --once, until no jobs are left."""
    place = read_placement(args)
    with open_store(args.db) as store:
        worker = Worker(store, place=place)
        if not args.once:
            print(f"Waiting for jobs of {store.name}. Ctrl-C stops it.", file=sys.stderr)
            worker.run()
            return
        done = 0
        while worker.work_one():
            done += 1
    print(f"{done:,} {'job' if done == 1 else 'jobs'} worked off.", file=sys.stderr)
