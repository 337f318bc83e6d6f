"""Imports as the worker does them: stopped, cancelled, killed, and beside a dataset that is being judged."""

import json
import threading
import time

import stepsight.app.jobs.worker
from stepsight.app.jobs.supervisor import Supervisor
from stepsight.app.jobs.worker import Worker
from stepsight.storage.database.jobs_schema import ACTIVE, State, Task
from stepsight.storage.jobs import uploads
from stepsight.storage.jobs.imports import FileImport, import_upload
from stepsight.storage.jobs.jobs import cancel_job, get_job, on_queued, resume_job, take_job
from stepsight.storage.jobs.uploads import list_uploads
from stepsight.storage.people.users import local_user
from stepsight.storage.traces.queries import find_dataset, list_datasets
from tests.app.processes import family, silence, start, until
from tests.storage.jobs.samples import send
from tests.storage.samples import add, plain_row


def request(store, rows=3, name="mine"):
    me = local_user(store).id
    content = "".join(json.dumps(plain_row(number)) + "\n" for number in range(rows)).encode()
    upload = send(store, me, content, f"{name}.jsonl", 2**20)
    return import_upload(store, FileImport(upload=upload.id, holds="traces", dataset=name, kind="plain"), me)


def test_an_import_is_worked_off_on_both_databases(store):
    job = request(store)
    assert Worker(store).work_one()
    found = get_job(store, job.id)
    assert (found.state, found.dataset, found.progress, found.reason) == (
        State.DONE,
        "mine",
        1.0,
        "mine: 3 traces added; 3 in the dataset.",
    )


def test_a_worker_takes_what_it_is_for(sqlite_store, tiny):
    add(sqlite_store)
    judging, importing = start(sqlite_store, tiny), request(sqlite_store)
    assert Worker(sqlite_store, tasks=(Task.IMPORT,)).work_one()
    assert [get_job(sqlite_store, job.id).state for job in (judging, importing)] == [State.QUEUED, State.DONE]
    assert not Worker(sqlite_store, tasks=(Task.IMPORT,)).work_one()
    assert Worker(sqlite_store, tasks=(Task.JUDGE,)).work_one()
    assert get_job(sqlite_store, judging.id).state == State.DONE


def test_a_cancelled_import_stores_nothing_and_can_be_resumed(sqlite_store, monkeypatch):
    """Cancelled while the file is looked through, before the store is written to."""
    monkeypatch.setattr("stepsight.app.jobs.lease._BEAT", 0.01)
    monkeypatch.setattr(uploads, "_PIECE", 100)
    job = request(sqlite_store, rows=400)
    real = stepsight.app.jobs.worker.JobLease.report

    def slowly(self, done, total):
        real(self, done, total)
        time.sleep(0.01)

    monkeypatch.setattr(stepsight.app.jobs.worker.JobLease, "report", slowly)
    thread = threading.Thread(target=Worker(sqlite_store).work_one)
    thread.start()
    until(lambda: 0 < get_job(sqlite_store, job.id).progress < 1)
    cancel_job(sqlite_store, job.id)
    thread.join(60)
    assert get_job(sqlite_store, job.id).state == State.CANCELLED
    assert list_datasets(sqlite_store) == []
    monkeypatch.setattr(stepsight.app.jobs.worker.JobLease, "report", real)
    resume_job(sqlite_store, job.id)
    assert Worker(sqlite_store).work_one()
    assert find_dataset(sqlite_store, "mine").traces == 400


def test_an_import_that_fails_says_why_and_keeps_the_file(sqlite_store):
    job = request(sqlite_store)
    # Of another kind, meanwhile.
    add(sqlite_store, dataset="mine")
    with sqlite_store.write() as session:
        session.connection().exec_driver_sql("UPDATE datasets SET kind = 'prm800k'")
    assert Worker(sqlite_store).work_one()
    found = get_job(sqlite_store, job.id)
    assert found.state == State.FAILED
    assert "The dataset 'mine' is of kind prm800k" in found.reason
    assert len(list_uploads(sqlite_store, local_user(sqlite_store).id)) == 1


def test_an_import_over_which_workers_die_fails_in_the_end(sqlite_store):
    job = request(sqlite_store)
    for number in range(3):
        assert take_job(sqlite_store, f"worker {number}").id == job.id
        stepsight.app.jobs.worker.jobs.update_job(sqlite_store, job.id, f"worker {number}", done=100, left_out=0)
        silence(sqlite_store)
    assert take_job(sqlite_store, "last") is None
    assert "3 workers in a row ended without making progress." in get_job(sqlite_store, job.id).reason


def test_a_worker_leaves_no_process_behind(sqlite_store):
    """The worker's own process, whose settings its children inherit."""
    with Supervisor(sqlite_store.name) as keeper, on_queued(sqlite_store, keeper.wake):
        running = 0
        for number in range(5):
            job = request(sqlite_store, name=f"mine-{number}")
            until(lambda job=job: get_job(sqlite_store, job.id).state not in ACTIVE)
            assert get_job(sqlite_store, job.id).state == State.DONE
            # The worker, its child, and the copy that waits for the next file.
            running = running or len(family(keeper.pid))
        until(lambda: len(family(keeper.pid)) == running)
