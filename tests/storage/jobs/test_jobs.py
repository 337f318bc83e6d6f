"""Jobs in the store: who holds one, and what becomes of it."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import delete, func, select, text, update
from sqlalchemy.exc import IntegrityError

from stepsight.core.judgment import Mode
from stepsight.storage.changes import ChangeableJobs
from stepsight.storage.database.jobs_schema import Job, State, Task
from stepsight.storage.database.schema import DatasetRow, now
from stepsight.storage.database.store import NotFoundError
from stepsight.storage.database.stored_json import DamagedError
from stepsight.storage.jobs.imports import FileImport, import_upload
from stepsight.storage.jobs.jobs import (
    LEASE,
    Judging,
    cancel_job,
    get_job,
    list_jobs,
    read_judging,
    resume_job,
    start_job,
    start_request,
    take_job,
    update_job,
)
from stepsight.storage.jobs.uploads import list_uploads
from stepsight.storage.people.users import local_user
from tests.messages import refused
from tests.storage.jobs.samples import send
from tests.storage.samples import add


@pytest.fixture
def dataset_id(store):
    return add(store)[0].dataset_id


def start(store, dataset_id, evaluator="mini", mode=Mode.HINDSIGHT):
    return start_job(
        store, dataset_id, evaluator=evaluator, spec=f"/{evaluator}", fingerprint=f"of {evaluator}", mode=mode
    )


def claim(store, worker):
    job = take_job(store, worker)
    assert job is not None
    return job


def silence(store, job, since):
    """Let the job's last heartbeat be that long ago."""
    with store.write() as session:
        session.execute(update(Job).where(Job.id == job.id).values(heartbeat=now() - since))


def test_a_job_says_what_is_to_be_done(store, dataset_id):
    job = start(store, dataset_id)
    assert (job.dataset, read_judging(job)) == ("sums", Judging("mini", "/mini", "of mini", "hindsight"))
    assert (job.mode, job.state, job.total, job.done, job.progress) == (Mode.HINDSIGHT, State.QUEUED, 4, 0, 0.0)
    assert (job.rate, job.seconds_left, job.worker, job.finished) == (None, None, None, None)
    assert get_job(store, job.id).request == job.request


def test_the_same_is_not_started_twice_at_a_time(store, dataset_id):
    first = start(store, dataset_id)
    assert start(store, dataset_id).id == first.id
    assert claim(store, "a").id == first.id
    assert start(store, dataset_id).id == first.id
    others = [start(store, dataset_id, "other"), start(store, dataset_id, mode=Mode.ONLINE)]
    assert len({first.id, *(job.id for job in others)}) == 3
    update_job(store, first.id, "a", state=State.DONE)
    again = start(store, dataset_id)
    assert again.id not in {first.id, *(job.id for job in others)}
    assert [job.id for job in list_jobs(store)] == sorted([first.id, again.id, *(job.id for job in others)])[::-1]
    assert [job.id for job in list_jobs(store, limit=1, offset=1)] == [list_jobs(store)[1].id]


def test_many_who_start_it_at_once_get_one_job(store, dataset_id):
    with ThreadPoolExecutor(8) as pool:
        started = list(pool.map(lambda _: start(store, dataset_id).id, range(16)))
    assert len(set(started)) == 1


def test_many_who_ask_for_the_same_import_at_once_get_one_job(store):
    def ask(number: int) -> int:
        return start_request(store, Task.IMPORT, "sums", {"benchmark": f"sums {number % 2}"}).id

    with ThreadPoolExecutor(8) as pool:
        started = list(pool.map(ask, range(16)))
    assert [len(set(started[half::2])) for half in (0, 1)] == [1, 1]
    assert len(list_jobs(store)) == 2


@pytest.mark.parametrize("wrong", ["state = 'lost'", "state = 'running'"])
def test_the_database_refuses_what_is_no_state(store, dataset_id, wrong):
    start(store, dataset_id)
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(text(f"UPDATE jobs SET {wrong}"))


@pytest.mark.parametrize("request_json", ['{"benchmark": []}', '{"spec": "a"}'])
def test_a_damaged_request_is_told(store, dataset_id, request_json):
    start(store, dataset_id)
    with store.write() as session:
        session.connection().exec_driver_sql(f"UPDATE jobs SET request = '{request_json}'")
    with refused(DamagedError):
        str(list_jobs(store)[0].mode)


def test_the_oldest_is_taken_up_first_and_by_one_worker(store, dataset_id):
    jobs = [start(store, dataset_id, name).id for name in ("one", "two")]
    first = claim(store, "a")
    assert (first.id, first.state, first.worker) == (jobs[0], State.RUNNING, "a")
    assert claim(store, "b").id == jobs[1]
    assert take_job(store, "c") is None


def test_workers_at_once_never_get_the_same_job(store, dataset_id):
    jobs = {start(store, dataset_id, f"evaluator {number}").id for number in range(12)}
    with ThreadPoolExecutor(6) as pool:
        claimed = [job.id for job in pool.map(lambda n: take_job(store, f"w{n}"), range(18)) if job is not None]
    # One that finds the rows locked may come away with nothing, but none is given twice.
    assert len(claimed) == len(set(claimed))
    while (job := take_job(store, "last")) is not None:
        claimed.append(job.id)
    assert sorted(claimed) == sorted(jobs)


def test_progress_and_the_time_that_is_left(store, dataset_id):
    job = start(store, dataset_id)
    claim(store, "a")
    assert update_job(store, job.id, "a", total=100, done=20)
    assert get_job(store, job.id).progress == 0.2
    with store.write() as session:
        session.execute(update(Job).values(started=now() - timedelta(seconds=10)))
    assert update_job(store, job.id, "a", done=50, left_out=10, reason="too long")
    found = get_job(store, job.id)
    assert (found.done, found.left_out, found.reason) == (50, 10, "too long")
    # 60 of 100 are gone through. 30 were judged in 10 s: 3 a second, and 40 are left.
    assert found.progress == 0.6
    assert found.rate == pytest.approx(3, rel=0.2)
    assert found.seconds_left == pytest.approx(40 / 3, rel=0.2)
    update_job(store, job.id, "a", state=State.DONE)
    assert get_job(store, job.id).rate is None


def test_a_job_whose_worker_is_gone_is_taken_up_by_another(store, dataset_id):
    job = start(store, dataset_id)
    claim(store, "a")
    update_job(store, job.id, "a", done=3, left_out=0)
    silence(store, job, LEASE - timedelta(seconds=5))
    assert take_job(store, "b") is None
    silence(store, job, LEASE + timedelta(seconds=5))
    taken = claim(store, "b")
    assert (taken.id, taken.worker, taken.done) == (job.id, "b", 3)
    # The first worker comes back, and learns that nothing of it is his any more.
    assert not update_job(store, job.id, "a", done=4, left_out=0)
    assert not update_job(store, job.id, "a", state=State.DONE)
    assert not update_job(store, job.id, "a", state=State.QUEUED)
    assert not update_job(store, job.id, "a", total=4, done=4)
    assert get_job(store, job.id).done == 3
    assert update_job(store, job.id, "b", done=4, left_out=0)


def test_a_job_that_ends_its_workers_fails_after_the_third(store, dataset_id):
    job = start(store, dataset_id)
    for worker in ("a", "b", "c"):
        assert claim(store, worker).id == job.id
        silence(store, job, 2 * LEASE)
    assert take_job(store, "d") is None
    found = get_job(store, job.id)
    assert found.state == State.FAILED
    assert "3 workers in a row ended" in found.reason


@pytest.mark.parametrize("has_heartbeats", [True, False])
def test_one_that_gets_on_is_taken_up_however_often_its_workers_end(store, dataset_id, *, has_heartbeats):
    job = start(store, dataset_id)
    for number in range(1, 8):
        worker = f"w{number}"
        assert claim(store, worker).id == job.id
        update_job(store, job.id, worker, total=100, done=number)
        assert not has_heartbeats or update_job(store, job.id, worker, done=number + 1, left_out=0)
        silence(store, job, 2 * LEASE)
    assert get_job(store, job.id).state == State.RUNNING


def test_a_worker_that_is_asked_to_stop_gives_the_job_back(store, dataset_id):
    job = start(store, dataset_id)
    claim(store, "a")
    assert update_job(store, job.id, "a", state=State.QUEUED)
    assert get_job(store, job.id).state == State.QUEUED
    assert claim(store, "b").id == job.id


def test_cancelling_takes_effect_at_once_and_the_worker_learns_of_it(store, dataset_id):
    job = start(store, dataset_id)
    claim(store, "a")
    cancelled = cancel_job(store, job.id)
    assert cancelled.state == State.CANCELLED
    assert cancelled.finished is not None
    assert not update_job(store, job.id, "a", done=1, left_out=0)
    assert not update_job(store, job.id, "a", state=State.DONE)
    assert get_job(store, job.id).state == State.CANCELLED
    assert take_job(store, "b") is None
    with refused():
        cancel_job(store, job.id)


@pytest.mark.parametrize("ended", [State.FAILED, State.CANCELLED])
def test_a_failed_or_cancelled_job_can_be_resumed(store, dataset_id, ended):
    job = start(store, dataset_id)
    claim(store, "a")
    if ended == State.FAILED:
        update_job(store, job.id, "a", state=State.FAILED, reason="no such folder")
        assert get_job(store, job.id).reason == "no such folder"
    else:
        cancel_job(store, job.id)
    resumed = resume_job(store, job.id)
    assert (resumed.state, resumed.reason, resumed.worker, resumed.finished) == (State.QUEUED, "", None, None)
    assert claim(store, "b").id == job.id


def test_a_running_finished_or_duplicated_job_cannot_be_resumed(store, dataset_id):
    job = start(store, dataset_id)
    with refused():
        resume_job(store, job.id)
    cancel_job(store, job.id)
    other = start(store, dataset_id)
    with refused():
        resume_job(store, job.id)
    claim(store, "a")
    update_job(store, other.id, "a", state=State.DONE)
    with refused():
        resume_job(store, other.id)


@pytest.mark.parametrize("number", [0, -1, 99, 2**40])
def test_an_unknown_number_is_told(store, number):
    for act in (get_job, cancel_job, resume_job):
        with refused(NotFoundError):
            act(store, number)


def test_an_unknown_dataset_is_told(store):
    with refused(NotFoundError):
        start(store, 99)


def test_a_job_goes_with_its_dataset(store, dataset_id):
    start(store, dataset_id)
    with store.write() as session:
        session.execute(delete(DatasetRow).where(DatasetRow.id == dataset_id))
        assert session.scalar(select(func.count()).select_from(Job)) == 0
    assert list_jobs(store) == []


def fail(store, upload):
    """The id of a job that could not add the upload."""
    job = import_upload(store, FileImport(upload, "traces", "mine", "plain"), local_user(store).id)
    assert take_job(store, "w", tasks=[Task.IMPORT]) is not None
    update_job(store, job.id, "w", state=State.FAILED, reason="Bad rows.")
    return job.id


def test_a_job_is_deleted_once_it_was_cancelled(store):
    job = start_job(store, add(store)[0].dataset_id, evaluator="mini", spec="mini", fingerprint="f", mode="online")
    with refused():
        ChangeableJobs((job.id,)).delete(store)
    with refused():
        ChangeableJobs().delete(store)
    cancel_job(store, job.id)
    assert ChangeableJobs((job.id,)).delete(store).lines == ("1 job that ended",)
    assert list_jobs(store) == []
    with refused():
        ChangeableJobs((job.id,)).delete(store)


def test_a_file_that_could_not_be_added_is_deleted_with_its_job(store):
    user = local_user(store)
    first, second = (send(store, user.id, b"{}", name) for name in ("a.jsonl", "b.jsonl"))
    failed = [fail(store, first.id), fail(store, second.id)]
    assert ChangeableJobs().read(store).lines == (
        "2 jobs that ended",
        "2 files: a.jsonl (1 kB), b.jsonl (1 kB)",
    )
    ChangeableJobs((failed[0],)).delete(store, user)
    assert list_uploads(store, user.id) == [second]
    assert (first.path.exists(), second.path.exists()) == (False, True)


def test_a_file_that_is_being_added_again_stays_when_its_failed_job_goes(store):
    user = local_user(store)
    upload = send(store, user.id, b"{}")
    failed = fail(store, upload.id)
    import_upload(store, FileImport(upload.id, "traces", "mine", "plain", leave_out=True), user.id)
    assert ChangeableJobs((failed,)).delete(store).lines == ("1 job that ended",)
    assert [one.id for one in list_uploads(store, user.id)] == [upload.id]
