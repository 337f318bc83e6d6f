"""Jobs that fetch an evaluator, that is, a hub model at a given commit."""

from collections.abc import Mapping
from dataclasses import asdict, field
from datetime import timedelta
from typing import Any

from pydantic.dataclasses import dataclass

from stepsight.core.hubs.hub_cache import Fetched
from stepsight.core.hubs.hub_lookup import Remote
from stepsight.core.validation import STRICT, Record, validate
from stepsight.storage.database.jobs_schema import Job, Task
from stepsight.storage.database.schema import check_name
from stepsight.storage.database.store import Store
from stepsight.storage.jobs.jobs import list_requests, start_request


@dataclass(frozen=True, config=STRICT)
class Fetch(Record):
    """A request to fetch the hub model `repo` at the commit `revision`.

    If the model depends on other models, `parts` maps the `part_key` of each of them to a commit, so that a job
    resumed days later still fetches the same versions.
    """

    repo: str
    revision: str
    parts: Mapping[str, str] = field(default_factory=dict)


def start_fetch(store: Store, remote: Remote | Fetched) -> Job:
    """Queue a job that downloads a hub model if it is not yet downloaded, and loads it. Raises `UserError` if the
    name of the model cannot be stored."""
    check_name(remote.repo, "the name of the model")
    request = asdict(Fetch(remote.repo, remote.revision, remote.pins))
    return start_request(store, Task.FETCH, remote.repo, request, remote.size)


def list_fetches(store: Store, failed_since: timedelta = timedelta()) -> list[Job]:
    """List the fetches that are queued or running, oldest first, and those that failed within `failed_since`."""
    return list_requests(store, Task.FETCH, failed_since)


def read_fetch(request: Mapping[str, Any]) -> Fetch:
    """Parse the request of a stored job. Raises `UserError` if it is not a fetch."""
    return validate(Fetch, dict(request), "the request of the job")
