"""List the jobs of the store, cancel them, and delete those that have ended.

stepsight jobs
stepsight jobs cancel 7
stepsight jobs delete 7
"""

import argparse
import json

from stepsight.app.commands.changing import add_action, change_found
from stepsight.app.options.shared import add_db
from stepsight.storage.database.jobs_schema import Job, Task
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.jobs.jobs import cancel_job, list_jobs

_COLUMNS = ("id", "task", "subject", "dataset", "evaluator", "state", "total", "done", "left_out", "reason")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="the newest N (default: 50)")
    add_db(parser)
    actions = parser.add_subparsers(dest="action", metavar="ACTION")
    cancel = add_action(actions, "cancel", "cancel a job; its judgments stay", "")
    cancel.add_argument("job", type=int, metavar="JOB")
    delete = add_action(actions, "delete", "delete a job that has ended, or all; what they have stored stays", "")
    delete.add_argument("job", type=int, nargs="?", metavar="JOB", help="default: all that have ended")


def run(args: argparse.Namespace) -> None:
    """List the jobs, newest first, or carry out one of the actions."""
    with open_store(args.db) as store:
        if args.action == "cancel":
            print(f"Job {cancel_job(store, args.job).id} is cancelled.")
        elif args.action == "delete":
            if args.job is None:
                change_found(store, args, "ended-jobs")
            else:
                change_found(store, args, "job", job=args.job)
        else:
            _list(store, args)


def _list(store: Store, args: argparse.Namespace) -> None:
    jobs = list_jobs(store, args.limit)
    if args.json:
        rows = [{name: getattr(job, name) for name in _COLUMNS} | {"asked": _asked(job)} for job in jobs]
        print(json.dumps(rows, indent=1))
    elif not jobs:
        print("There is no job.")
    else:
        for job in jobs:
            about = job.subject or f"{job.dataset}, {job.evaluator}, {_asked(job)}"
            print(f"{job.id:>5}  {job.state:<9}  {about}{f'  {job.reason}' if job.reason else ''}")


def _asked(job: Job) -> str | None:
    if job.task != Task.JUDGE:
        return None
    return str(job.mode)
