"""Those who wait for what the benchmark of kills kills: somebody who sends files, and a job that fetches models."""

import json
from collections.abc import Callable
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

from stepsight.app.web.access import COOKIE
from stepsight.core.files.whole_files import digest_of
from stepsight.core.hubs.hub_cache import cache_of_hub, check_files, is_hash, list_fetched
from stepsight.core.hubs.hub_lookup import look_up
from stepsight.storage.database.jobs_schema import Job, State
from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.jobs.jobs import get_job, list_jobs, resume_job, start_fetch
from stepsight.storage.jobs.uploads import list_uploads
from stepsight.storage.people.users import User
from tests.checkpoints import write_token_classifier
from tests.hub import Hub

"""The bytes of a file that are sent at a time."""
_WIDTH = 4096


class Sender:
    """Somebody who sends files to a server, and asks for their imports. `jobs` has the job of each dataset
    that the server said it queued, and `answers` counts what it said."""

    def __init__(self, user: User, token: str, content: bytes) -> None:
        self.user, self.jobs, self.answers = user, dict[str, int](), 0
        self._token, self._content = token, content
        # Of the file that is being sent.
        self._upload = self._number = 0

    def send(self, port: int, begin: Callable[[], None]) -> None:
        """Send one file after the other, until the server is gone. `begin` is called after the first answer."""
        is_first = True
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        headers = {"Cookie": f"{COOKIE}-{port}={self._token}"}

        def post(path: str, body: bytes) -> Any:
            connection.request("POST", f"/data/{path}", body, headers | {"Content-Type": "application/json"})
            response = connection.getresponse()
            answer = response.read()
            assert response.status in (200, 201), answer
            self.answers += 1
            nonlocal is_first
            if is_first:
                is_first = False
                begin()
            return json.loads(answer)

        try:
            while True:
                self._send_one(post)
        except (OSError, HTTPException):
            connection.close()

    def count_lost(self, store: Store) -> int:
        """Count the files and the jobs that the server said it has and that are not there."""
        lost = sum(not _has_job(store, job) for job in self.jobs.values())
        name = f"sent-{self._number}"
        if self._upload and name not in self.jobs:
            # It may have been imported without an answer.
            asked = any(job.subject.startswith(f"{name}.jsonl") for job in list_jobs(store, 10_000))
            lost += self._upload not in {one.id for one in list_uploads(store, self.user.id)} and not asked
        return lost

    def _send_one(self, post: Callable[[str, bytes], Any]) -> None:
        name = f"sent-{self._number}"
        self._upload = post(f"uploads?name={name}.jsonl", self._content)["upload"]
        file = {"upload": self._upload, "holds": "traces", "dataset": name, "kind": "plain"}
        (self.jobs[name],) = post("imports", json.dumps({"files": [file]}).encode())["jobs"]
        self._number, self._upload = self._number + 1, 0


def _has_job(store, job_id):
    try:
        return bool(get_job(store, job_id))
    except NotFoundError:
        return False


class Fetching:
    """A job that fetches an evaluator from a hub, and then another one. `whole` counts the requests for the weights
    of each that is here, when it was."""

    def __init__(self, store: Store, hub: Hub, folder: Path) -> None:
        self.store, self.whole = store, dict[str, int]()
        self._hub, self._folder = hub, folder
        self._job: Job | None = None
        write_token_classifier(folder, "qwen2", max_position_embeddings=1024, intermediate_size=_WIDTH)

    def begin(self) -> None:
        """Queue a job if there is none, and take up one that failed."""
        state = None if self._job is None else get_job(self.store, self._job.id).state
        if self._job is not None and state == State.FAILED:
            resume_job(self.store, self._job.id)
        elif state in (None, State.DONE):
            repo = f"lab/model-{len(self._hub.folders)}"
            self._hub.folders[repo] = self._folder
            self._job = start_fetch(self.store, look_up(repo))

    def look(self) -> tuple[int, int]:
        """Count the files that are not what their names say, and the weights that were asked for again though they
        were here."""
        blobs = [path for path in cache_of_hub().glob("*/blobs/*") if is_hash(path.name)]
        partial = sum(digest_of(path, path.name) != path.name for path in blobs)
        for fetched in list_fetched():
            check_files(fetched)
            self.whole.setdefault(fetched.repo, self._asked(fetched.repo))
        return partial, sum(self._asked(repo) > asked for repo, asked in self.whole.items())

    def _asked(self, repo: str) -> int:
        return sum(path == f"/stored/{repo}/model.safetensors" for _, path, *_ in self._hub.asked)
