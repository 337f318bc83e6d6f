"""The queue: who gets which trace, and that nobody gets what they must not."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.exc import IntegrityError

from stepsight.core.trace import Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.labelling_schema import ItemRow, SlotRow
from stepsight.storage.database.people_schema import ServerSecretRow
from stepsight.storage.database.schema import TraceRow, now
from stepsight.storage.database.store import ConflictError, ForbiddenError, NotFoundError, open_store
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.labelling.progress import campaign_progress
from stepsight.storage.labelling.queue import assign_next, next_availability, open_slot
from stepsight.storage.labelling.record import read_annotation
from stepsight.storage.people.users import User
from tests.messages import refused
from tests.storage.labelling.samples import ONE, THREE, TWO, campaign, do, expire, label_all, people, person, take
from tests.storage.samples import add

SHORT = [Trace.of(f"Task {i}", ["One."], id=f"task {i}") for i in range(30)]
KNOWN = [Trace.of(f"Known {i}", ["One."], ["pos"], id=f"known {i}", meta={"generator": "x"}) for i in range(60)]


def label_next(store, made, user):
    """Take and submit the next trace; whether there was one."""
    task = assign_next(store, made.id, user)
    if task is not None:
        label_all(store, task, user, ["pos"] * len(task.trace.steps))
    return task is not None


def holders(store):
    """By item, the states of its slots."""
    with store.read() as session:
        found: dict[int, list[str]] = {}
        for item, state in session.execute(select(SlotRow.item_id, SlotRow.state).order_by(SlotRow.id)):
            found.setdefault(item, []).append(state)
        return found


def test_a_turn_says_nothing_but_the_text(store):
    made, user = campaign(store, [TWO], lease=60), person(store, "ann")
    task = take(store, made, user)
    assert task.trace.problem == "What is 1 + 1?"
    assert [step.substeps for step in task.trace.steps] == [("It is a sum.",), ("So 3.", "Done.")]
    assert (task.trace.labels, task.trace.has_gold) == ((None, None), False)
    assert (task.trace.id, dict(task.trace.meta), task.trace.position) == ("", {}, 0)
    assert (task.campaign, task.guideline) == (made, 1)
    assert task.expires is not None
    assert timedelta(seconds=30) < task.expires - now() <= timedelta(seconds=60)


def test_a_person_has_one_trace_at_a_time(store):
    made, user = campaign(store), person(store, "ann")
    first = take(store, made, user)
    assert take(store, made, user).slot_id == first.slot_id
    expire(store, first.slot_id)
    again = take(store, made, user)
    assert again.slot_id == first.slot_id
    assert again.expires is not None
    assert again.expires > now()


def test_from_two_windows_at_once_too(store):
    made, user = campaign(store), person(store, "ann")
    with ThreadPoolExecutor(6) as pool:
        slots = {task.slot_id for task in pool.map(lambda _: assign_next(store, made.id, user), range(12)) if task}
    assert len(slots) == 1


def test_traces_come_by_place_and_get_finished_first(store):
    made = campaign(store, overlap=2)
    one, other, third = people(store, 3)
    assert take(store, made, one).trace.problem == TWO.problem
    assert take(store, made, other).trace.problem == TWO.problem
    # Both slots of the first trace are taken.
    assert take(store, made, third).trace.problem == THREE.problem
    label_next(store, made, one)
    assert take(store, made, one).trace.problem == THREE.problem


def test_no_person_labels_a_trace_twice(store):
    made = campaign(store, [ONE], overlap=2)
    user, other = people(store, 2)
    assert label_next(store, made, user)
    assert assign_next(store, made.id, user) is None
    assert label_next(store, made, other)
    with store.read() as session:
        item = session.scalars(select(ItemRow.id)).one()
    second = {"campaign_id": made.id, "item_id": item, "number": 9, "user_id": user.id}
    with pytest.raises(IntegrityError), store.write() as session:
        session.add(SlotRow(**second, state="leased", expires=now()))


def test_people_at_once_fill_every_slot_once(store):
    made = campaign(store, SHORT, overlap=3, ordering="random")

    def work(user: User) -> int:
        done = 0
        while label_next(store, made, user):
            done += 1
        return done

    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(work, people(store, 6)))
    # One that finds the last rows locked may stop early, but then the others go on.
    assert sum(done) == 90
    assert set(map(tuple, holders(store).values())) == {("submitted",) * 3}
    assert campaign_progress(store, made.id).items_done == 30


def test_hidden_gold_items_come_as_often_as_the_campaign_says(sqlite_store):
    add(sqlite_store, [*SHORT, *KNOWN], "sums")
    made = campaign(sqlite_store, None, conditions=TraceFilter(text="Task"), gold_rate=0.25, seed=3)
    user = person(sqlite_store, "ann")
    problems = []
    while (task := assign_next(sqlite_store, made.id, user)) is not None:
        assert (task.trace.id, task.trace.dataset, task.trace.has_gold) == ("", "sums", False)
        problems.append(task.trace.problem)
        label_all(sqlite_store, task, user, ["pos"])
    gold = [problem for problem in problems if problem.startswith("Known")]
    assert len(problems) - len(gold) == 30
    # At one in four, 30 others come with 10; nobody gets one twice, nor one at the end.
    assert 4 <= len(gold) <= 18
    assert len(set(problems)) == len(problems)
    assert problems[-1].startswith("Task")
    found = campaign_progress(sqlite_store, made.id, user.id)
    assert (found.submitted, found.slots, found.mine, found.items_done, found.items) == (
        30,
        30,
        len(problems),
        30,
        30,
    )


def test_no_turn_is_known_by_its_public_id(sqlite_store):
    add(sqlite_store, [*SHORT, *KNOWN], "sums")
    made = campaign(sqlite_store, None, conditions=TraceFilter(text="Task"), gold_rate=0.5, seed=3)
    user = person(sqlite_store, "ann")
    ids: dict[str, list[str]] = {"Know": [], "Task": []}
    while (task := assign_next(sqlite_store, made.id, user)) is not None:
        ids[task.trace.problem[:4]].append(task.public_id)
        label_all(sqlite_store, task, user, ["pos"])
    gold, others = ids.values()
    assert (len(others), len(gold) > 10) == (30, True)
    # Those of each kind lie among those of the other, though slots of gold items are made late.
    assert min(gold) < max(others)
    assert min(others) < max(gold)
    assert gold != sorted(gold)
    assert others != sorted(others)


def test_which_turns_are_hidden_gold_cannot_be_worked_out_from_ids_and_seeds(tmp_path, sqlite_template):
    """Of two stores that are alike to the last id, and differ in the secret alone."""
    turns: list[list[object]] = []
    for secret in (b"one", b"another"):
        path = tmp_path / f"{secret.decode()}.db"
        path.write_bytes(sqlite_template.read_bytes())
        with open_store(str(path)) as store:
            add(store, [*SHORT, *KNOWN], "sums")
            with store.write() as session:
                session.add(ServerSecretRow(name="pseudonyms", secret=secret))
            made = campaign(store, None, conditions=TraceFilter(text="Task"), gold_rate=0.5, seed=3)
            user = person(store, "ann")
            turns.append([made.id, made.seed, user.id])
            for _ in range(20):
                task = take(store, made, user)
                turns[-1].append(task.trace.problem[:4])
                label_all(store, task, user, ["pos"])
    one, other = turns
    assert one[:3] == other[:3]
    assert one[3:] != other[3:]


def test_a_text_that_a_person_had_comes_last(store):
    """As another trace of the same campaign, with other line breaks and other gold."""
    again = Trace.of("What is  1 + 1?", ["It is a sum. So 3.", "Done."], ["neg", "neg"], id="again")
    made = campaign(store, [TWO, again, THREE])
    ann, ben = people(store, 2)
    seen = []
    while (task := assign_next(store, made.id, ann)) is not None:
        seen.append(task.trace.steps[-1].text)
        label_all(store, task, ann, ["pos"] * len(task.trace.steps))
    assert seen == ["So 3.\nDone.", "So 4.", "Done."]
    # For somebody else it is a trace as any other.
    more = campaign(store, None, name="second", overlap=2)
    label_all(store, take(store, more, ann), ann, ["pos", "pos"])
    assert take(store, more, ben).trace.steps[-1].text == "So 3.\nDone."


def test_no_hidden_gold_item_reads_as_a_trace_of_the_queue(store):
    copies = [Trace.of(one.problem, ["One."], ["pos"], id=f"copy of {one.id}") for one in SHORT]
    add(store, SHORT, "sums")
    add(store, [*copies, *KNOWN[:3]], "known")
    made = campaign(store, None, gold_rate=0.5, gold_dataset="known")
    with store.read() as session:
        problems = select(TraceRow.problem).join(ItemRow, ItemRow.trace_id == TraceRow.id)
        gold = session.scalars(problems.where(ItemRow.campaign_id == made.id, ItemRow.chosen == "gold")).all()
    assert sorted(gold) == ["Known 0", "Known 1", "Known 2"]


def test_a_turn_that_returns_keeps_its_number(store):
    made = campaign(store, [TWO], overlap=2)
    one, other = people(store, 2)
    left = take(store, made, one)
    do(store, left.slot_id, one, "label", 0, "neg")
    expire(store, left.slot_id)
    # It comes before the free one, and the log refers to it.
    assert take(store, made, other).slot_id == left.slot_id
    assert take(store, made, one).slot_id > left.slot_id


def test_a_gold_item_goes_to_everybody_and_back_to_nobody(store):
    add(store, [*SHORT, KNOWN[0]], "sums")
    made = campaign(store, None, conditions=TraceFilter(text="Task"), gold_rate=0.5)
    for user in people(store, 3):
        seen = [take(store, made, user)]
        while not seen[-1].trace.problem.startswith("Known"):
            label_all(store, seen[-1], user, ["pos"])
            seen.append(take(store, made, user))
        expire(store, seen[-1].slot_id)
    with store.read() as session:
        gold = select(func.count()).join(ItemRow, ItemRow.id == SlotRow.item_id).where(ItemRow.chosen == "gold")
        assert session.scalar(gold.select_from(SlotRow)) == 3
    # Skipping one leaves no slot for somebody else.
    last = people(store, 3)[2]
    do(store, take(store, made, last).slot_id, last, "skip", None, "No.")
    with store.read() as session:
        assert session.scalar(gold.select_from(SlotRow)) == 3


def test_a_trace_that_changed_is_passed_over(store):
    made, user = campaign(store, [TWO, ONE]), person(store, "ann")
    held = take(store, made, user)
    with store.write() as session:
        session.execute(update(TraceRow).where(TraceRow.external_id == "two").values(digest="changed"))
    assert take(store, made, user).trace.problem == ONE.problem
    with refused(ConflictError):
        open_slot(store, held.slot_id, user)
    assert campaign_progress(store, made.id).items_done == 0


def test_a_closed_campaign_gives_nothing_out(store):
    made, user = campaign(store), person(store, "ann")
    done = take(store, made, user)
    label_all(store, done, user, ["pos", "pos"])
    held = take(store, made, user)
    close_campaign(store, made.id)
    with refused(ConflictError):
        assign_next(store, made.id, user)
    with refused(ConflictError):
        open_slot(store, held.slot_id, user)
    # What was submitted can still be looked at.
    assert open_slot(store, done.slot_id, user).expires is None


def test_a_turn_is_opened_by_who_has_it(store):
    made = campaign(store, [ONE], overlap=2, lease=1000)
    user, other = people(store, 2)
    task = take(store, made, user)
    expire(store, task.slot_id)
    again = open_slot(store, task.slot_id, user)
    assert again.trace == task.trace
    assert again.expires is not None
    assert again.expires > now() + timedelta(seconds=900)
    with refused(ConflictError):
        open_slot(store, task.slot_id, other)
    with store.read() as session:
        free = session.scalars(select(SlotRow.id).where(SlotRow.state == "free")).one()
    with pytest.raises(ForbiddenError):
        open_slot(store, free, other)
    with pytest.raises(NotFoundError):
        open_slot(store, 2**40, other)
    with pytest.raises(NotFoundError):
        assign_next(store, 99, user)


def test_a_person_who_gets_a_lost_trace_again_continues(store):
    made = campaign(store, [TWO], overlap=2)
    one, other, third = people(store, 3)
    lost = take(store, made, one)
    do(store, lost.slot_id, one, "label", 0, "neu")
    expire(store, lost.slot_id)
    take(store, made, other)
    again = take(store, made, one)
    assert (again.slot_id == lost.slot_id, again.item_id == lost.item_id) == (False, True)
    assert read_annotation(store, again.slot_id).labels == ("neu", None)
    assert read_annotation(store, lost.slot_id).labels == (None, None)
    assert assign_next(store, made.id, third) is None


def test_availability_is_known_without_taking_a_trace(store):
    made = campaign(store, [TWO], overlap=1)
    ann, ben = people(store, 2)
    assert [next_availability(store, made, user) for user in (ann, ben)] == ["new", "new"]
    task = take(store, made, ann)
    assert [next_availability(store, made, user) for user in (ann, ben)] == ["held", "nothing"]
    expire(store, task.slot_id)
    assert [next_availability(store, made, user) for user in (ann, ben)] == ["held", "new"]
    label_all(store, task, ann, ["pos", "neg"])
    assert [next_availability(store, made, user) for user in (ann, ben)] == ["nothing", "nothing"]
    assert next_availability(store, close_campaign(store, made.id), ben) == "nothing"
