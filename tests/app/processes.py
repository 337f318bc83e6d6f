"""Jobs and the processes that work them off, as the tests look at them."""

import time
from pathlib import Path

from sqlalchemy import select, update

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Mode
from stepsight.storage.database.jobs_schema import Job
from stepsight.storage.database.schema import JudgmentRow, TriangleRow, now
from stepsight.storage.jobs.jobs import LEASE, get_job, start_job
from stepsight.storage.traces.queries import find_dataset


def start(store, folder, mode=Mode.HINDSIGHT, **changes):
    """A job for the dataset `sums` and the evaluator in that folder."""
    given = {"evaluator": folder.name, "spec": str(folder), "fingerprint": load_evaluator(folder).fingerprint}
    return start_job(store, find_dataset(store, "sums").id, mode=mode, **(given | changes))


def judged(store):
    """Of every judgment its trace and when it was made, in the order of the traces."""
    with store.read() as session:
        of_modes = select(JudgmentRow.trace_id, JudgmentRow.created).where(~JudgmentRow.derived)
        rows = [*session.execute(of_modes), *session.execute(select(TriangleRow.trace_id, TriangleRow.created))]
        return sorted(tuple(row) for row in rows)


def silence(store):
    """As if the last heartbeat were long ago."""
    with store.write() as session:
        session.execute(update(Job).values(heartbeat=now() - 2 * LEASE))


def is_alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def family(pid):
    """The numbers of a process and of those that it started; none of one that has ended."""
    try:
        children = [
            child for one in Path(f"/proc/{pid}/task").iterdir() for child in (one / "children").read_text().split()
        ]
    except OSError:
        return []
    return [pid, *(one for child in children for one in family(int(child)))]


def until(condition, seconds=180):
    patience = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < patience, "it did not come about"
        time.sleep(0.05)


def worker_of(store, job):
    """The process number of the worker that holds the job."""
    held = get_job(store, job.id).worker
    return int(held.rsplit(" ", 2)[1]) if held else None
