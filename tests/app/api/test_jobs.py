"""Jobs through the API."""

from stepsight.app.jobs.worker import Worker
from stepsight.storage.database.store import open_store
from tests.app.client import asking
from tests.storage.samples import add

START = {"dataset": "sums", "evaluator": "tiny"}


def test_a_job_is_started_worked_off_and_told(evaluators, tmp_path):
    with open_store(str(tmp_path / "store.db")) as store, asking(store, evaluators) as client:
        add(store)
        started = client.post("/api/v1/jobs", json=START)
        assert started.status_code == 201
        job = started.json()
        assert (job["dataset"], job["evaluator"], job["mode"], job["state"]) == (
            "sums",
            "tiny",
            "hindsight",
            "queued",
        )
        assert job["fingerprint"] == evaluators.scorer("tiny").evaluator.fingerprint
        assert client.post("/api/v1/jobs", json=START).json()["job"] == job["job"]
        assert Worker(store).work_one()
        found = client.get(f"/api/v1/jobs/{job['job']}").json()
        assert (found["state"], found["total"], found["done"], found["left_out"]) == ("done", 4, 4, 0)
        assert found["finished"] is not None
        judged = client.get("/api/v1/traces/1").json()["judgments"]
        assert [(said["evaluator"], said["mode"]) for said in judged] == [("tiny", "hindsight")]


def test_a_job_is_cancelled_and_resumed(evaluators, tmp_path):
    with open_store(str(tmp_path / "store.db")) as store, asking(store, evaluators) as client:
        add(store)
        number = client.post("/api/v1/jobs", json=START | {"mode": "online"}).json()["job"]
        assert client.post(f"/api/v1/jobs/{number}/cancel").json()["state"] == "cancelled"
        again = client.post(f"/api/v1/jobs/{number}/cancel")
        assert (again.status_code, again.json()["error"]) == (
            422,
            f"Job {number} cannot be cancelled: it is cancelled.",
        )
        assert client.post(f"/api/v1/jobs/{number}/resume").json()["state"] == "queued"
        assert [job["job"] for job in client.get("/api/v1/jobs").json()] == [number]


def test_a_job_for_an_unknown_dataset_or_evaluator_is_refused(evaluators, tmp_path):
    with open_store(str(tmp_path / "store.db")) as store, asking(store, evaluators) as client:
        add(store)
        for change, said in (({"dataset": "x"}, "no dataset 'x'"), ({"evaluator": "x"}, "no evaluator 'x'")):
            response = client.post("/api/v1/jobs", json=START | change)
            assert response.status_code == 404
            assert said in response.json()["error"]
        assert client.get("/api/v1/jobs").json() == []


def test_a_read_only_server_tells_of_jobs_and_starts_none(evaluators, tmp_path):
    with open_store(str(tmp_path / "store.db")) as store, asking(store, evaluators, read_only=True) as client:
        add(store)
        for path in ("jobs", "jobs/1/cancel", "jobs/1/resume"):
            response = client.post(f"/api/v1/{path}", json=START)
            assert response.status_code == 403
            assert response.json()["error"] == "This server is read-only."
        assert client.get("/api/v1/jobs").json() == []
        # Nothing of it is in the description either.
        paths = client.get("/api/v1/openapi.json").json()["paths"]
        assert [path for path, methods in paths.items() if "post" in methods] == ["/score", "/score/batch", "/next"]
        scored = client.post("/api/v1/score", json={"problem": "What is 2 + 3?", "steps": ["5."]})
        assert scored.status_code == 200
