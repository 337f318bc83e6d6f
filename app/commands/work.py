"""Working jobs off without a server, or beside one that is elsewhere.

stepsight work
"""

import argparse
import sys

from stepsight.app.scoring.options import add_db, add_placement, read_placement


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("work", help="work off the jobs that were started on the Jobs page")
    parser.add_argument("--once", action="store_true", help="end when there is no job to take up")
    add_placement(parser)
    add_db(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Take up jobs until interrupted, or until there is none."""
    from stepsight.app.jobs.worker import Worker
    from stepsight.storage.database.store import open_store

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
