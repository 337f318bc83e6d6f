"""People, traces and campaigns that the tests of labelling share."""

from datetime import timedelta
from itertools import count
from typing import Any

from sqlalchemy import true, update

from stepsight.core.trace import Trace
from stepsight.core.validation import validate
from stepsight.storage.database.labelling_schema import SlotRow
from stepsight.storage.database.schema import ServerSecretRow, TraceRow, now
from stepsight.storage.database.store import NotFoundError, Store, insert_once
from stepsight.storage.labelling.annotation import Annotation, NewEvent
from stepsight.storage.labelling.campaigns import Campaign, create_campaign, get_campaign
from stepsight.storage.labelling.consensus import LabelledTraces
from stepsight.storage.labelling.plan import CampaignPlan
from stepsight.storage.labelling.queue import Assignment, assign_next
from stepsight.storage.labelling.record import RecordedEvent, read_annotation, record
from stepsight.storage.labelling.submissions import SubmittedAnnotation, iterate_annotations
from stepsight.storage.people.users import Role, User, add_user, find_user
from tests.storage.samples import add

DATASET = "sums"
GUIDELINE = "Say of each step whether it is right."
SECRET = b"of the tests"
PRMBENCH_KINDS = (
    *("redundency", "circular", "counterfactual", "step_contradiction", "domain_inconsistency", "confidence"),
    *("missing_condition", "deception"),
)
_KEYS = count(1)

TWO = Trace.of("What is 1 + 1?", ["It is a sum.", ["So 3.", "Done."]], ["pos", "neg"], id="two")
THREE = Trace.of("What is 2 + 2?", ["A sum.", "It is nice.", "So 4."], ["pos", "neu", "pos"], id="three")
ONE = Trace.of("What is 3 + 3?", ["It is 6."], id="one")
FOUR = Trace.of("What is 2 + 2?", ["It is 5.", "So 5.", "No, 2 + 2 is 4.", "So 4."], id="four")
TRACES = (TWO, THREE, ONE)


def person(store, name, role=Role.ANNOTATOR):
    """The person of that name, added where there is none; without a password, since hashing one takes long."""
    try:
        return find_user(store, name)
    except NotFoundError:
        return add_user(store, name, role, None)


def people(store, count):
    return [person(store, f"annotator {number}") for number in range(1, count + 1)]


def campaign(store, traces=TRACES, **changes):
    """A campaign over traces of the dataset `sums`, which are added unless None is given; in file order, with
    PRMBench's kinds of error."""
    if traces is not None:
        add(store, traces, DATASET)
    given: dict[str, Any] = {"name": "first", "dataset": DATASET, "guideline": GUIDELINE, "ordering": "file"}
    given |= {"error_kinds": PRMBENCH_KINDS}
    with store.write() as session:
        # What is drawn by chance is the same in every run.
        insert_once(session, ServerSecretRow, [{"name": "pseudonyms", "secret": SECRET}], "name")
    return create_campaign(
        store, validate(CampaignPlan, given | changes, "the plan"), person(store, "boss", Role.ADMIN)
    )


def take(store, of, user):
    """The person's next trace, which there has to be."""
    task = assign_next(store, of.id, user)
    assert task is not None
    return task


def key():
    """One that was not used before."""
    return f"key-{next(_KEYS)}"


def act(kind, step=None, new=None, **other):
    kinds = {"kind": kind} if kind else {}
    return NewEvent(**({"key": key(), "step": step, "new": new} | kinds | other))


def do(store, slot, user, kind, *about, **other):
    """Record an act under a fresh key: kind, then step and new as the kind takes them."""
    return record(store, slot, user, act(kind, *about, **other))


def label_all(store, task, user, labels):
    """Label the steps in order, revealing each next one where the campaign goes step by step, and submit."""
    for step, label in enumerate(labels):
        if step and task.campaign.view == "stepwise":
            do(store, task.slot, user, "reveal", None, step + 1)
        if label is not None:
            do(store, task.slot, user, "label", step, label)
    do(store, task.slot, user, "submit")


class Scene:
    """A campaign and the people who label in it, who are called by name; each does something in the trace that they
    took last."""

    def __init__(self, store: Store, traces: Any = TRACES, **changes: Any) -> None:
        self.store = store
        self.campaign: Campaign = campaign(store, traces, **changes)
        self.tasks: dict[str, Assignment] = {}
        self._people: dict[str, User] = {}

    def who(self, name: str) -> User:
        if name not in self._people:
            self._people[name] = person(self.store, name)
        return self._people[name]

    def next(self, by: str = "ann") -> Assignment | None:
        """The person's next trace, if there is one."""
        task = assign_next(self.store, self.campaign.id, self.who(by))
        self.tasks |= {} if task is None else {by: task}
        return task

    def take(self, by: str = "ann") -> Assignment:
        task = self.next(by)
        assert task is not None
        return task

    def do(
        self, kind: str, step: int | None = None, new: Any = None, by: str = "ann", **other: Any
    ) -> RecordedEvent:
        return do(self.store, self.tasks[by].slot, self.who(by), kind, step, new, **other)

    def undo(self, by: str = "ann", cause: str = "undo", **other: Any) -> RecordedEvent:
        return self.do("", by=by, cause=cause, **other)

    def label(self, labels: str = "", by: str = "ann") -> Assignment:
        """Label the person's next trace as in `"pos - neg"`, by default pos, and submit it."""
        task = self.take(by)
        given = labels.split() or ["pos"] * len(task.trace.steps)
        label_all(self.store, task, self.who(by), [None if label == "-" else label for label in given])
        return task

    def annotation(self, by: str = "ann") -> Annotation:
        return read_annotation(self.store, self.tasks[by].slot)

    def answers(self) -> list[SubmittedAnnotation]:
        return list(iterate_annotations(self.store, self.campaign.id))

    def expire(self, by: str = "ann") -> None:
        expire(self.store, self.tasks[by].slot)

    def change_trace(self, name: str = "", **values: Any) -> None:
        """As if the trace of that name, by default every one, had been imported anew."""
        with self.store.write() as session:
            traces = update(TraceRow).where(TraceRow.external_id == name if name else true())
            session.execute(traces.values({"digest": "0" * 64} | values))


def change_minds(store):
    """A stepwise campaign in which somebody called step 1 pos, and neg at step 3, and step 2 neg by a slip."""
    scene = Scene(store, [FOUR], view="stepwise")
    scene.take()
    for step in range(3):
        scene.do("label", step, "pos")
        scene.do("reveal", None, step + 2)
        if step == 1:
            scene.do("label", 0, "neg")
    for kind, step, new in (
        ("label", 1, "neg"),
        ("evidence", 1, None),
        ("label", 3, "pos"),
        ("submit", None, None),
    ):
        scene.do(kind, step, new)
    return scene


def together(store, campaign_id):
    """The traces of a campaign as all annotators label them."""
    return list(LabelledTraces(store, get_campaign(store, campaign_id)))


def expire(store, slot):
    """As if nothing had been heard of the slot's person for longer than the lease."""
    with store.write() as session:
        gone = update(SlotRow).where(SlotRow.public_id == slot).values(expires=now() - timedelta(seconds=1))
        session.execute(gone)
