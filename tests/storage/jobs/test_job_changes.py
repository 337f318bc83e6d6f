"""Deleting jobs that have ended."""

from stepsight.storage.database.jobs_schema import State, Task
from stepsight.storage.jobs.imports import FileImport, import_upload
from stepsight.storage.jobs.job_changes import ChangeableJobs
from stepsight.storage.jobs.jobs import cancel_job, list_jobs, start_job, take_job, update_job
from stepsight.storage.jobs.uploads import list_uploads
from stepsight.storage.people.users import local_user
from tests.messages import refused
from tests.storage.jobs.samples import send
from tests.storage.samples import add


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
    assert ChangeableJobs((failed,)).delete(store).counts == {"jobs": 1, "files": 0}
    assert [one.id for one in list_uploads(store, user.id)] == [upload.id]
