"""What a job to fetch an evaluator is asked for: a model of the hub at a commit."""

from collections.abc import Mapping
from dataclasses import asdict, field
from datetime import timedelta
from typing import Any

from pydantic.dataclasses import dataclass

from stepsight.core.hubs.fetched import Fetched
from stepsight.core.hubs.remote import Remote
from stepsight.core.validation import STRICT, Record, validate
from stepsight.storage.database.schema import check_name
from stepsight.storage.database.store import Store
from stepsight.storage.jobs.jobs import Job, Task, list_requests, start_request


@dataclass(frozen=True, config=STRICT)
class Fetch(Record):
    """A model of the hub at the commit `revision`, and the commits of those that it needs by their `part_key`: the
    same where it is taken up again days later."""

    repo: str
    revision: str
    parts: Mapping[str, str] = field(default_factory=dict)


def start_fetch(store: Store, remote: Remote | Fetched) -> Job:
    """Start fetching what the hub was found to have, or loading what was fetched. Raises `UserError` where its name
    cannot be stored."""
    check_name(remote.repo, "the name of the model")
    request = asdict(Fetch(remote.repo, remote.revision, remote.pins))
    return start_request(store, Task.FETCH, remote.repo, request, remote.size)


def list_fetches(store: Store, failed_since: timedelta = timedelta()) -> list[Job]:
    """Those that are queued or running, the oldest first, and those that have failed since so long ago."""
    return list_requests(store, Task.FETCH, failed_since)


def read_fetch(request: Mapping[str, Any]) -> Fetch:
    """What a job of the store is asked for. Raises `UserError` where that is no fetch."""
    return validate(Fetch, dict(request), "the request of the job")
