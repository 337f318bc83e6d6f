"""Reading the log."""

from stepsight.storage.labelling.annotation import find_event, read_events, read_events_of_items
from stepsight.storage.labelling.results.decisions import decide
from tests.storage.labelling.samples import ONE, campaign, do, label_all, people, take


def test_a_log_is_one_persons_and_in_order(store):
    made = campaign(store, [ONE], overlap=2)
    one, other = people(store, 2)
    tasks = [take(store, made, user) for user in (one, other)]
    for label in ("pos", "neg"):
        for task, user in zip(tasks, (one, other), strict=True):
            do(store, task.slot_id, user, "label", 0, label)
    with store.read() as session:
        mine = read_events(session, tasks[0].item_id, one.id)
        logs = read_events_of_items(session, [tasks[0].item_id])
    assert [(event.user_id, event.new) for event in mine] == [(one.id, "pos"), (one.id, "neg")]
    assert set(logs) == {(tasks[0].item_id, one.id), (tasks[0].item_id, other.id)}
    assert logs[tasks[0].item_id, one.id] == mine


def test_decisions_are_found_by_key_and_are_no_part_of_an_answer(store):
    made = campaign(store, [ONE])
    (user,) = people(store, 1)
    task = take(store, made, user)
    label_all(store, task, user, ["pos"])
    decide(store, made.id, task.item_id, 0, "neg", "It is wrong.", user, "decision-1")
    with store.read() as session:
        found = find_event(session, user.id, "decision-1")
        assert [event.kind for event in read_events(session, task.item_id, user.id)] == ["label", "submit"]
        assert find_event(session, user.id, "decision-2") is None
        assert find_event(session, 99, "decision-1") is None
    assert found is not None
    assert (found.kind, found.slot_id, found.step) == ("decide", None, 0)
