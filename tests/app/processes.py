"""Jobs and the processes that work them off, as the tests look at them."""

import os
import time

from sqlalchemy import select, update

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Mode
from stepsight.storage.database.jobs_schema import JobRow
from stepsight.storage.database.schema import JudgmentRow, now
from stepsight.storage.jobs.jobs import LEASE, get_job, start_job
from stepsight.storage.traces.queries import find_dataset


def start(store, folder, mode=Mode.HINDSIGHT, **changes):
    """A job for the dataset `sums` and the evaluator in that folder."""
    given = {"evaluator": folder.name, "spec": str(folder), "fingerprint": load_evaluator(folder).fingerprint}
    return start_job(store, find_dataset(store, "sums").id, mode=mode, **(given | changes))


def judged(store):
    """Of every judgment its trace and when it was made, in the order of the traces."""
    with store.read() as session:
        rows = session.execute(select(JudgmentRow.trace_id, JudgmentRow.created).order_by(JudgmentRow.trace_id))
        return [tuple(row) for row in rows]


def silence(store):
    """As if the last heartbeat were long ago."""
    with store.write() as session:
        session.execute(update(JobRow).values(heartbeat=now() - 2 * LEASE))


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
        return file.read().rsplit(")", 1)[1].split()[0] != "Z"


def until(condition, seconds=180):
    patience = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < patience, "it did not come about"
        time.sleep(0.05)


def worker_of(store, job):
    """The process number of the worker that holds the job."""
    held = get_job(store, job.id).worker
    return int(held.rsplit(" ", 2)[1]) if held else None
