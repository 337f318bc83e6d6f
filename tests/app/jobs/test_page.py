"""What the Jobs page shows, without a browser."""

import io
import subprocess
import sys
from datetime import timedelta

from sqlalchemy import update

from stepsight.app.jobs import worker
from stepsight.app.jobs.page import jobs_html
from stepsight.app.jobs.supervisor import Supervisor
from stepsight.core.judgment import Mode
from stepsight.storage.database.jobs_schema import Job, State
from stepsight.storage.database.schema import now
from stepsight.storage.jobs.jobs import cancel_job, start_job, take_job, update_job
from tests.storage.samples import add


def start(store, dataset="sums", evaluator="tiny", **changes):
    dataset_id = add(store, dataset=dataset)[0].dataset_id
    given = {"evaluator": evaluator, "spec": "/x", "fingerprint": evaluator, "mode": Mode.HINDSIGHT}
    return start_job(store, dataset_id, **(given | changes))


def test_jobs_and_the_form_for_another(sqlite_store, evaluators, drawn):
    drawn(jobs_html(sqlite_store, evaluators), "an empty store")
    add(sqlite_store)
    for number, (state, reason) in enumerate(
        [(State.FAILED, "the folder is gone"), (State.CANCELLED, ""), (State.DONE, "")], start=1
    ):
        start(sqlite_store, evaluator=f"e{number}")
        take_job(sqlite_store, "w")
        if state == State.CANCELLED:
            cancel_job(sqlite_store, number)
        else:
            update_job(sqlite_store, number, "w", state=state, reason=reason)
    start(sqlite_store, "more")
    drawn(
        jobs_html(sqlite_store, evaluators), "the newest comes first, and all but one that is done can be resumed"
    )
    drawn(jobs_html(sqlite_store, evaluators, read_only=True), "a read-only page has no control")


def test_a_running_job_shows_how_far_it_is(sqlite_store, evaluators):
    job = start(sqlite_store)
    take_job(sqlite_store, "w")
    update_job(sqlite_store, job.id, "w", total=3000, done=0)
    with sqlite_store.write() as session:
        session.execute(update(Job).values(started=now() - timedelta(seconds=100)))
    update_job(sqlite_store, job.id, "w", done=1200, left_out=300)
    shown = jobs_html(sqlite_store, evaluators)
    # 1,500 of 3,000 are gone through; 12 a second for 100 s, and 1,500 to go: 125 s.
    assert 'aria-valuenow="50.0"' in shown
    assert "1,200 of 3,000 traces" in shown
    assert "12.0 per second" in shown or "11.9 per second" in shown
    assert "3 min left" in shown
    assert "300 left out as too long" in shown
    assert f'data-post="/api/v1/jobs/{job.id}/cancel"' in shown


def test_a_workers_request_for_memory_reaches_its_server_and_other_output_does_not(monkeypatch):
    lines = io.StringIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", lines)
        worker._ask_server(3_200_000_000)
    told = f"a library says hello\n{lines.getvalue()}\n12 apples\n"
    asked = []
    supervisor = Supervisor("sqlite:///none", give_room=asked.append)
    with subprocess.Popen([sys.executable, "-c", f"print({told!r})"], stdout=subprocess.PIPE) as process:
        supervisor._listen(process)
    assert asked == [3_200_000_000]


def test_a_server_that_is_gone_is_no_fault_of_a_worker(monkeypatch):
    class Gone(io.StringIO):
        def flush(self):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Gone())
    worker._ask_server(1)
