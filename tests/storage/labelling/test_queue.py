"""The queue: who gets which trace, and that nobody gets what they must not."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta

import pytest
from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError

from stepsight.core.trace import Trace
from stepsight.storage.browse.filters import TraceFilter
from stepsight.storage.database.labelling_schema import ItemRow, SlotRow
from stepsight.storage.database.schema import ServerSecretRow, TraceRow, now
from stepsight.storage.database.store import ConflictError, NotFoundError, open_store
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.labelling.progress import campaign_progress
from stepsight.storage.labelling.queue import assign_next, next_availability, open_slot
from tests.messages import refused
from tests.storage.labelling.samples import ONE, THREE, TRACES, TWO, Scene, campaign, label_all
from tests.storage.samples import add

SHORT = [Trace.of(f"Task {i}", ["One."], id=f"task {i}") for i in range(30)]
KNOWN = [Trace.of(f"Known {i}", ["One."], ["pos"], id=f"known {i}", meta={"generator": "x"}) for i in range(60)]


def hiding(store, known, gold_rate=0.5):
    """Thirty tasks, among which traces with gold are hidden."""
    add(store, [*SHORT, *known], "sums")
    return Scene(store, None, conditions=TraceFilter(text="Task"), gold_rate=gold_rate, seed=3)


def test_a_turn_says_nothing_but_the_text(store):
    scene = Scene(store, [TWO], lease=60)
    task = scene.take()
    assert task.trace.problem == "What is 1 + 1?"
    assert [step.substeps for step in task.trace.steps] == [("It is a sum.",), ("So 3.", "Done.")]
    assert (task.trace.labels, task.trace.has_gold) == ((None, None), False)
    assert (task.trace.id, dict(task.trace.meta), task.trace.position) == ("", {}, 0)
    assert task.campaign == scene.campaign
    assert timedelta(seconds=30) < (task.expires or now()) - now() <= timedelta(seconds=60)


@pytest.mark.parametrize("shown", [True, False])
def test_the_reference_answer_comes_where_the_campaign_shows_it(store, shown):
    answered = replace(TWO, meta={"ground_truth_answer": "2", "reason": "a secret"})
    task = Scene(store, [answered], shows_answer=shown).take()
    assert (task.answer, dict(task.trace.meta)) == ("2" if shown else None, {})


def test_a_person_has_one_trace_at_a_time_also_from_two_windows_at_once(store):
    scene = Scene(store)
    ann = scene.who("ann")
    with ThreadPoolExecutor(6) as pool:
        tasks = list(pool.map(lambda _: assign_next(store, scene.campaign.id, ann), range(12)))
    assert len({task and task.slot for task in tasks}) == 1
    scene.take()
    scene.expire()
    again = scene.take()
    assert tasks[0] is not None
    assert (again.slot, (again.expires or now()) > now()) == (tasks[0].slot, True)


def test_traces_come_by_place_and_get_finished_first(store):
    scene = Scene(store, overlap=2)
    # Both slots of the first trace are taken.
    assert [scene.take(name).trace.problem for name in ("ann", "bob", "cy")] == [
        TWO.problem,
        TWO.problem,
        THREE.problem,
    ]
    scene.label()
    assert scene.take().trace.problem == THREE.problem


def test_no_person_labels_a_trace_twice(store):
    scene = Scene(store, [ONE], overlap=2)
    task = scene.label()
    assert scene.next() is None
    scene.label(by="bob")
    second = {
        "campaign_id": scene.campaign.id,
        "item_id": task.item_id,
        "number": 9,
        "user_id": scene.who("ann").id,
    }
    with pytest.raises(IntegrityError), store.write() as session:
        session.add(SlotRow(**second, state="leased", expires=now()))


@pytest.mark.slow
def test_people_at_once_fill_every_slot_once(store):
    scene = Scene(store, SHORT, overlap=3, ordering="random")
    people = [scene.who(f"annotator {number}") for number in range(6)]

    def work(number: int) -> int:
        done, user = 0, people[number]
        while (task := assign_next(store, scene.campaign.id, user)) is not None:
            label_all(store, task, user, ["pos"])
            done += 1
        return done

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(work, range(6))) == 90
    with store.read() as session:
        submitted = (
            select(SlotRow.item_id, func.count()).where(SlotRow.state == "submitted").group_by(SlotRow.item_id)
        )
        assert [count for _, count in session.execute(submitted)] == [3] * 30
    assert campaign_progress(store, scene.campaign.id).items_done == 30


def test_hidden_gold_items_come_as_often_as_the_campaign_says_and_nothing_tells_them(sqlite_store):
    scene = hiding(sqlite_store, KNOWN)
    problems: list[str] = []
    ids: dict[str, list[str]] = {"Know": [], "Task": []}
    while (task := scene.next()) is not None:
        assert (task.trace.id, task.trace.dataset, task.trace.has_gold) == ("", "sums", False)
        problems.append(task.trace.problem)
        ids[task.trace.problem[:4]].append(task.slot)
        scene.label()
    gold, others = ids.values()
    # At one in two, 30 others come with 30; nobody gets one twice, nor one at the end.
    assert (len(others), 15 <= len(gold) <= 40) == (30, True)
    assert len(set(problems)) == len(problems)
    assert problems[-1].startswith("Task")
    progress = campaign_progress(sqlite_store, scene.campaign.id, scene.who("ann").id)
    assert (progress.submitted, progress.slots, progress.items_done, progress.items) == (30, 30, 30, 30)
    assert progress.mine == len(problems)
    # The ids of each kind lie among those of the other, though slots of gold items are made late.
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
            with store.write() as session:
                session.add(ServerSecretRow(name="pseudonyms", secret=secret))
            scene = hiding(store, KNOWN)
            ids = [scene.campaign.id, scene.campaign.seed, scene.who("ann").id]
            turns.append([ids, *(scene.label().trace.problem[:4] for _ in range(20))])
    (one, *first), (other, *second) = turns
    assert (one == other, first == second) == (True, False)


def test_a_text_that_a_person_had_comes_last(store):
    """As another trace of the same campaign, with other line breaks and other gold."""
    again = Trace.of("What is  1 + 1?", ["It is a sum. So 3.", "Done."], ["neg", "neg"], id="again")
    scene = Scene(store, [TWO, again, THREE])
    seen = [scene.label().trace.steps[-1].text for _ in range(3)]
    assert seen == ["So 3.\nDone.", "So 4.", "Done."]
    # For somebody else it is a trace as any other.
    more = Scene(store, None, name="second", overlap=2)
    more.label()
    assert more.take("bob").trace.steps[-1].text == "So 3.\nDone."


def test_no_hidden_gold_item_reads_as_a_trace_of_the_queue(store):
    copies = [Trace.of(one.problem, ["One."], ["pos"], id=f"copy of {one.id}") for one in SHORT]
    add(store, SHORT, "sums")
    add(store, [*copies, *KNOWN[:3]], "known")
    campaign(store, None, gold_rate=0.5, gold_dataset="known")
    with store.read() as session:
        problems = select(TraceRow.problem).join(ItemRow, ItemRow.trace_id == TraceRow.id)
        gold = session.scalars(problems.where(ItemRow.chosen == "gold")).all()
    assert sorted(gold) == ["Known 0", "Known 1", "Known 2"]


def test_a_turn_that_returns_comes_before_a_free_one_and_keeps_its_number(store):
    scene = Scene(store, [TWO], overlap=2)
    left = scene.take().slot
    scene.do("label", 0, "neg")
    scene.expire()
    assert scene.take("bob").slot == left
    assert scene.take().slot != left


def test_a_gold_item_goes_to_everybody_and_back_to_nobody(store):
    scene = hiding(store, KNOWN[:1])
    for name in ("ann", "bob", "cy"):
        while not scene.take(name).trace.problem.startswith("Known"):
            scene.label(by=name)
        scene.expire(name)
    gold = select(func.count()).select_from(SlotRow).join(ItemRow, ItemRow.id == SlotRow.item_id)
    # Skipping one leaves no slot for somebody else.
    scene.do("skip", None, "No.", by="cy")
    with store.read() as session:
        assert session.scalar(gold.where(ItemRow.chosen == "gold")) == 3


def test_a_trace_that_changed_is_passed_over(store):
    scene = Scene(store, [TWO, ONE])
    held = scene.take()
    scene.change_trace("two")
    assert scene.take().trace.problem == ONE.problem
    with refused(ConflictError):
        open_slot(store, held.slot, scene.who("ann"))
    assert campaign_progress(store, scene.campaign.id).items_done == 0


def test_a_closed_campaign_gives_nothing_out(store):
    scene = Scene(store)
    done, held = scene.label(), scene.take()
    close_campaign(store, scene.campaign.id)
    with refused(ConflictError):
        scene.next()
    with refused(ConflictError):
        open_slot(store, held.slot, scene.who("ann"))
    # What was submitted can still be looked at.
    assert open_slot(store, done.slot, scene.who("ann")).expires is None


def test_a_turn_is_opened_by_who_has_it(store):
    scene = Scene(store, [ONE], overlap=2, lease=1000)
    task, bob = scene.take(), scene.who("bob")
    scene.expire()
    again = open_slot(store, task.slot, scene.who("ann"))
    assert again.trace == task.trace
    assert (again.expires or now()) > now() + timedelta(seconds=900)
    with refused(ConflictError):
        open_slot(store, task.slot, bob)
    with pytest.raises(NotFoundError):
        assign_next(store, 99, bob)


def test_availability_is_known_without_taking_a_trace(store):
    scene = Scene(store, TRACES[:1])

    def available() -> list[str]:
        return [next_availability(store, scene.campaign, scene.who(name)) for name in ("ann", "bob")]

    assert available() == ["new", "new"]
    scene.take()
    assert available() == ["held", "nothing"]
    scene.expire()
    assert available() == ["held", "new"]
    scene.label()
    assert available() == ["nothing", "nothing"]
    assert next_availability(store, close_campaign(store, scene.campaign.id), scene.who("bob")) == "nothing"
