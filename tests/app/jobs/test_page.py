"""What the Jobs page shows, without a browser."""

import io
import subprocess
import sys
from datetime import timedelta

import pytest
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


def test_an_empty_store_says_how_to_go_on(sqlite_store, evaluators):
    shown = jobs_html(sqlite_store, evaluators)
    assert 'The store is empty. <a href="/data">Add data</a>' in shown
    assert "There is no job yet." in shown


def test_the_form_offers_every_dataset_and_evaluator(sqlite_store, evaluators):
    add(sqlite_store)
    add(sqlite_store, dataset="more")
    shown = jobs_html(sqlite_store, evaluators)
    for value in ("sums", "more", "tiny", "tiny-causal", "hindsight", "offline", "online"):
        assert f'<option value="{value}"' in shown
    assert 'data-post="/api/v1/jobs"' in shown


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


@pytest.mark.parametrize("state", [State.FAILED, State.CANCELLED, State.DONE])
def test_an_ended_job_can_be_resumed_unless_it_is_done(sqlite_store, evaluators, state):
    job = start(sqlite_store)
    take_job(sqlite_store, "w")
    if state == State.CANCELLED:
        cancel_job(sqlite_store, job.id)
    else:
        update_job(
            sqlite_store, job.id, "w", state=state, reason="the folder is gone" if state == State.FAILED else ""
        )
    shown = jobs_html(sqlite_store, evaluators)
    assert f'class="card {state.value}"' in shown
    assert (f'data-post="/api/v1/jobs/{job.id}/resume"' in shown) == (state != State.DONE)
    assert "cancel" not in shown.replace("cancelled", "")
    assert ("The folder is gone" in shown) == (state == State.FAILED)


def test_the_newest_job_comes_first(sqlite_store, evaluators):
    first, second = start(sqlite_store), start(sqlite_store, "more")
    shown = jobs_html(sqlite_store, evaluators)
    assert 0 < shown.index(f'id="job-{second.id}"') < shown.index(f'id="job-{first.id}"')


def test_a_read_only_page_has_no_control(sqlite_store, evaluators):
    start(sqlite_store)
    shown = jobs_html(sqlite_store, evaluators, read_only=True)
    assert "0 of 4 traces" in shown
    for control in ("<form", "<button", "data-post", "<select"):
        assert control not in shown


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
