"""Annotators who label at the same time."""

import json
import random
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection, HTTPException
from typing import Any
from uuid import uuid4

from sqlalchemy import select

from stepsight.app.web.access import COOKIE
from stepsight.app.web.pages import PART
from stepsight.core.trace import Trace
from stepsight.storage.database.labelling_schema import EventRow, SlotRow
from stepsight.storage.labelling.annotation import LABELS
from stepsight.storage.labelling.campaigns import Campaign, create_campaign
from stepsight.storage.labelling.plan import CampaignPlan
from stepsight.storage.labelling.progress import campaign_progress
from stepsight.storage.labelling.submissions import iterate_annotations
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role, User, add_user
from stepsight.storage.traces.writer import TraceWriter

DATASET = "to be labelled"
_TIMEOUT = 60
_PAUSE = 0.05
_AGAIN = 0.05


class Annotator:
    """A person with a browser: labels what the server gives until there is nothing left.

    What is not answered is sent again under the same key; where not `patient`, that is an error. `acknowledged`
    has what the server said it stored, by key: the event's moment and what it says. `labels` has what the person
    thinks of each slot they submitted, `seconds` how long each act took, `errors` what they saw go wrong. They
    think for `pause` seconds before each act.
    """

    def __init__(
        self, port: int, user: User, token: str, campaign: Campaign, patient: bool, pause: float = _PAUSE
    ) -> None:
        self.user, self.campaign, self.patient, self.pause = user, campaign, patient, pause
        self.acknowledged: dict[str, tuple[str, str, int | None, Any]] = {}
        self.labels: dict[str, tuple[str | None, ...]] = {}
        self.seconds: list[float] = []
        self.errors: list[str] = []
        self._port = port
        self._headers = {"Cookie": f"{COOKIE}-{port}={token}", "Content-Type": "application/json"}
        self._connection: HTTPConnection | None = None
        self._chance = random.Random(user.id)

    def work(self, is_done: Callable[[], bool]) -> None:
        """Label until `is_done`; a trace that somebody left may come back late."""
        try:
            while not is_done():
                slot = self._next()
                if slot is None:
                    time.sleep(_AGAIN)
                else:
                    self._label(slot)
        except Exception as error:  # whatever a person would see is told
            self.errors.append(f"{self.user.name}: {type(error).__name__}: {error}"[:300])
        finally:
            self._close()

    def _next(self) -> str | None:
        page = str(self._ask("GET", f"/annotate/label?campaign={self.campaign.id}"))
        match = re.search(r'data-slot="([0-9a-f]{16})"', page)
        return None if match is None else match[1]

    def _label(self, slot: str) -> None:
        labels = list(self._ask("GET", f"/annotate/slots/{slot}")["state"]["labels"])
        for step in range(len(labels)):
            said = [self._chance.choice(LABELS)]
            if self._chance.random() < 0.1:
                said.append(self._chance.choice(LABELS))
            for label in said:
                self._act(slot, "label", step, label)
            labels[step] = said[-1]
            if self._chance.random() < 0.05:
                self._act(slot, "comment", step, f"Of step {step + 1}.")
        state = self._act(slot, "submit", None, None)
        # What the server derived is what the person said.
        assert state["labels"] == labels, f"{state['labels']}, expected {labels}"
        assert state["submitted"]
        self.labels[slot] = tuple(labels)

    def _act(self, slot: str, kind: str, step: int | None, new: Any) -> dict[str, Any]:
        time.sleep(self._chance.expovariate(1 / self.pause))
        body = {"kind": kind, "key": str(uuid4()), "step": step, "new": new, "seconds": 0.5, "guideline": 1}
        start = time.perf_counter()
        answer = self._ask("POST", f"/annotate/slots/{slot}/events", json.dumps(body))
        self.seconds.append(time.perf_counter() - start)
        self.acknowledged[body["key"]] = (answer["moment"], kind, step, new)
        state: dict[str, Any] = answer["state"]
        return state

    def _ask(self, method: str, path: str, body: str | None = None) -> Any:
        """The answer, read if it is JSON. Where patient, as often as it takes."""
        while True:
            try:
                return self._send(method, path, body)
            except (OSError, HTTPException):
                self._close()
                if not self.patient:
                    raise
                time.sleep(_AGAIN)

    def _send(self, method: str, path: str, body: str | None) -> Any:
        if self._connection is None:
            self._connection = HTTPConnection("127.0.0.1", self._port, timeout=_TIMEOUT)
        # The trace alone is requested, as the page's script does.
        part = {PART: "1"} if method == "GET" else {}
        self._connection.request(method, path, body, self._headers | part)
        response = self._connection.getresponse()
        data = response.read()
        if response.status in (502, 503) and self.patient:
            # A server behind a proxy was killed, or another process writes for long; the page sends it again, too.
            raise HTTPException(data.decode())
        if response.status != 200:
            raise AssertionError(f"{path}: {response.status} {data[:200]!r}")
        is_json = response.headers.get_content_type() == "application/json"
        return json.loads(data) if is_json else data.decode()

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def prepare(store, annotators, traces, overlap):
    """A campaign over so many traces, and so many people with the tokens of their logins."""
    with store.write() as session:
        writer = TraceWriter(session, DATASET, "jsonl", "made.jsonl")
        steps = random.Random(0)
        writer.add([(str(i), _trace(i, steps.randint(1, 6))) for i in range(traces)])
        writer.finish("made.jsonl", "0" * 64)
    # The store may hold those of an earlier run.
    run = uuid4().hex[:8]
    boss = add_user(store, f"boss {run}", Role.ADMIN, None)
    plan = CampaignPlan(name=f"at once {run}", dataset=DATASET, guideline="Say what is right.", overlap=overlap)
    campaign = create_campaign(store, plan, boss)
    people = [add_user(store, f"annotator {run} {i}", Role.ANNOTATOR, None) for i in range(annotators)]
    return campaign, [(user, open_login(store, user)) for user in people]


def _trace(number, steps):
    return Trace.of(f"Problem {number}", [f"Step {step} of {number}." for step in range(steps)], id=str(number))


def label_together(store, port, campaign, people, disturb=None):
    """Let everybody label until every slot is filled, while `disturb`, where it is given, does what it does; it is
    given what tells the share of slots that are filled."""

    def share() -> float:
        found = campaign_progress(store, campaign.id)
        return 1.0 if done.is_set() else found.submitted / found.slots

    annotators = [Annotator(port, user, token, campaign, disturb is not None) for user, token in people]
    done = threading.Event()
    with ThreadPoolExecutor(len(annotators) + 1) as pool:
        work = [pool.submit(annotator.work, done.is_set) for annotator in annotators]
        disturbance = pool.submit(disturb, share) if disturb is not None else None
        try:
            _wait(store, campaign, annotators)
        finally:
            done.set()
        for future in (*work, *([disturbance] if disturbance is not None else [])):
            future.result()
    return annotators


def _wait(store, campaign, annotators):
    """Until every slot is filled or nobody goes on."""
    while True:
        found = campaign_progress(store, campaign.id)
        if found.submitted == found.slots or all(annotator.errors for annotator in annotators):
            return
        time.sleep(0.1)


def faults(store, campaign, annotators):
    """What is not as it must be: slots, the log against what was acknowledged, answers against what was said."""
    found = [error for annotator in annotators for error in annotator.errors]
    with store.read() as session:
        turns = select(SlotRow.item_id, SlotRow.user_id, SlotRow.state)
        slots = session.execute(turns.where(SlotRow.campaign_id == campaign.id)).all()
        acts = select(EventRow.user_id, EventRow.key, EventRow.moment, EventRow.kind, EventRow.step, EventRow.new)
        events = session.execute(acts.where(EventRow.campaign_id == campaign.id)).all()
    found += _slot_faults(slots, campaign)
    log = {(user, key): (moment.isoformat(), *act) for user, key, moment, *act in events}
    said = {(one.user.id, key): act for one in annotators for key, act in one.acknowledged.items()}
    found += [f"acknowledged and not in the log: {act}" for key, act in said.items() if log.get(key) != act]
    found += [f"in the log and not acknowledged: {log[key]}" for key in log.keys() - said.keys()]
    if len(events) != len(log):
        found.append(f"{len(events)} events under {len(log)} keys")
    with store.read() as session:
        held = select(SlotRow.item_id, SlotRow.user_id, SlotRow.public_id).where(SlotRow.campaign_id == campaign.id)
        public = {(item, user): slot for item, user, slot in session.execute(held)}
    answers = {
        public[answer.item.id, answer.user_id]: answer.labels for answer in iterate_annotations(store, campaign.id)
    }
    thought = {slot: labels for one in annotators for slot, labels in one.labels.items()}
    if answers != thought:
        found.append(f"{len(answers)} answers are not the {len(thought)} that were given")
    return found


def _slot_faults(slots, campaign):
    by_item: dict[int, list[int]] = {}
    for item, user, state in slots:
        by_item.setdefault(item, []).append(user)
        if state != "submitted":
            yield f"item {item} has a slot that is {state}"
    if len(by_item) != campaign.items:
        yield f"{len(by_item)} items, expected {campaign.items}"
    for item, users in by_item.items():
        if len(users) != campaign.overlap or len(set(users)) != campaign.overlap:
            yield f"item {item} was labelled by {sorted(users)}, expected {campaign.overlap} people"
