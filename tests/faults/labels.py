"""Labels as a page sends them, and what the store has of them."""

from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from sqlalchemy import select
from starlette.testclient import TestClient

from stepsight.core.trace import Trace
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.labelling.queue import assign_next
from stepsight.storage.people.users import local_user
from tests.storage.labelling.samples import campaign

STEPS = 40


@dataclass
class Page:
    """The labelling page of a trace of many steps; `stored` has, by key, when the server says that it stored it."""

    client: TestClient
    slot: str
    stored: dict[str, str] = field(default_factory=dict)

    def label(self, step: int, key: str | None = None) -> Any:
        """The answer to a label."""
        body = {"kind": "label", "key": key or str(uuid4()), "step": step, "new": "pos"}
        response = self.client.post(f"/annotate/slots/{self.slot}/events", json=body)
        if response.status_code == 200:
            self.stored[str(body["key"])] = response.json()["moment"]
        return response


def open_page(store, client):
    made = campaign(store, [Trace.of("How many?", [f"Step {step}." for step in range(STEPS)], id="long")])
    task = assign_next(store, made.id, local_user(store))
    assert task is not None
    return Page(client, task.slot)


def logged(store):
    """The moments of the log's events by their keys."""
    with store.read() as session:
        return {key: moment.isoformat() for key, moment in session.execute(select(EventRow.key, EventRow.moment))}
