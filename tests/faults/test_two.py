"""Two servers and two workers on one store, each a process of its own."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import select

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Mode
from stepsight.storage.database.jobs_schema import Job, State
from stepsight.storage.database.schema import JudgmentRow
from stepsight.storage.jobs.jobs import list_jobs, start_job
from stepsight.storage.labelling.progress import campaign_progress
from stepsight.storage.traces.queries import find_dataset
from tests.annotators import Annotator, faults, prepare
from tests.checkpoints import write_evaluator
from tests.forked import Forked
from tests.labelling_server import labelling_server
from tests.storage.samples import add, many

pytestmark = pytest.mark.slow

JOBS, TRACES = 6, 60


@pytest.fixture
def reach(store):
    """The address of the store for another process."""
    return store.engine.url.render_as_string(hide_password=False)


def test_labels_through_two_servers_are_all_there(store, reach):
    campaign, tokens = prepare(store, annotators=6, traces=8, overlap=3)
    done = threading.Event()
    with labelling_server(reach) as first, labelling_server(reach) as second, ThreadPoolExecutor(6) as pool:
        ports = [first.port, second.port] * 3
        annotators = [
            Annotator(port, user, token, campaign, False) for port, (user, token) in zip(ports, tokens, strict=True)
        ]
        work = [pool.submit(annotator.work, done.is_set) for annotator in annotators]
        while not all(one.done() for one in work):
            found = campaign_progress(store, campaign.id)
            if found.submitted == found.slots:
                done.set()
            done.wait(0.1)
    assert faults(store, campaign, annotators) == []
    assert min(len(annotator.acknowledged) for annotator in annotators) > 0


def test_each_job_runs_once_by_either_of_two_workers(store, reach, tmp_path):
    folder = write_evaluator(tmp_path / "tiny", max_position_embeddings=1024)
    fingerprint = load_evaluator(folder).fingerprint
    for number in range(JOBS):
        add(store, many(TRACES), f"dataset {number}")
        dataset = find_dataset(store, f"dataset {number}")
        start_job(store, dataset.id, evaluator="tiny", spec=str(folder), fingerprint=fingerprint, mode=Mode.OFFLINE)
    workers = [Forked(None, ["work", "--once", "--db", reach]) for _ in range(2)]
    said = [worker.communicate()[1] for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], said
    # "4 jobs done."
    assert sum(int(text.split()[0]) for text in said) == JOBS
    assert {(job.state, job.done, job.total) for job in list_jobs(store)} == {(State.DONE, TRACES, TRACES)}
    with store.read() as session:
        assert set(session.scalars(select(Job.attempts))) <= {0, 1}
        judged = session.scalars(select(JudgmentRow.trace_id)).all()
    assert len(judged) == len(set(judged)) == JOBS * TRACES
