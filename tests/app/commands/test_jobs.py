"""`stepsight jobs`."""

import json

from stepsight.storage.database.store import open_store
from stepsight.storage.jobs.jobs import list_jobs, start_job
from tests.storage.samples import add


def test_jobs_are_listed_cancelled_and_deleted_once_they_have_ended(command, tmp_path):
    db = str(tmp_path / "store.db")
    with open_store(db) as store:
        dataset_id = add(store)[0].dataset_id
        for mode in ("online", "offline"):
            start_job(store, dataset_id, evaluator="mini", spec="mini", fingerprint="f", mode=mode)
        assert command("jobs", "--db", db)[1] == (
            "    2  queued     sums, mini, offline\n    1  queued     sums, mini, online\n"
        )
        refused = command("jobs", "delete", "1", "--yes", "--db", db)
        assert refused[::2] == (2, "stepsight jobs: Job 1 is queued. Cancel it first.\n")
        assert command("jobs", "cancel", "1", "--db", db)[1] == "Job 1 is cancelled.\n"
        assert command("jobs", "delete", "--yes", "--db", db)[1] == "sums, mini, online: deleted.\n"
        assert [job.id for job in list_jobs(store)] == [2]
        assert json.loads(command("jobs", "--json", "--db", db)[1])[0]["asked"] == "offline"
