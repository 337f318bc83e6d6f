"""What people saw of traces whose labels they may still give or change."""

import pytest
from sqlalchemy import event, select

from stepsight.core.trace import Trace
from stepsight.storage.database import store as database
from stepsight.storage.database.labelling_schema import ExposureRow
from stepsight.storage.database.store import UnavailableError, open_store
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.labelling.results.annotations import iterate_annotations
from stepsight.storage.people import exposures
from stepsight.storage.people.exposures import (
    GOLD,
    LABELS,
    SCORES,
    exposures_of,
    is_something_hidden,
    note_exposure,
)
from stepsight.storage.people.users import Role, local_user
from tests.messages import refused
from tests.storage.labelling.samples import TRACES, TWO, campaign, do, label_all, person, take
from tests.storage.samples import add


def seen(store, user, trace):
    with store.read() as session:
        return exposures_of(session, user.id, trace.trace_id)


def count(store):
    with store.read() as session:
        return len(session.scalars(select(ExposureRow.text_digest)).all())


def test_an_exposure_is_recorded_once(store):
    one, other, _ = add(store, TRACES)
    campaign(store, None)
    ada, bob = person(store, "ada"), person(store, "bob")
    for _ in range(2):
        note_exposure(store, ada, [one.trace_id], SCORES, GOLD)
    note_exposure(store, ada, {other.trace_id}, LABELS)
    assert seen(store, ada, one) == {SCORES, GOLD}
    assert seen(store, ada, other) == {LABELS}
    assert seen(store, bob, one) == frozenset()
    assert count(store) == 3


def test_the_local_user_has_no_exposures_without_a_campaign(store):
    outside, *_ = add(store, [Trace.of("What is 4 + 4?", ["It is 8."], id="other")], "other")
    traces = add(store, TRACES)
    ids = [trace.trace_id for trace in traces]
    local = local_user(store)
    note_exposure(store, local, ids, GOLD)
    made = campaign(store, None)
    note_exposure(store, local, [outside.trace_id], GOLD)
    note_exposure(store, local, [], GOLD)
    close_campaign(store, made.id)
    note_exposure(store, local, ids, GOLD)
    assert count(store) == 0


@pytest.mark.parametrize("most", [1, 5_000])
def test_exposures_before_a_campaign_count_in_it(store, monkeypatch, most):
    """However many parts it is noted in."""
    monkeypatch.setattr(exposures, "_MOST", most)
    traces = add(store, TRACES)
    ada, bob = person(store, "ada"), person(store, "bob")
    note_exposure(store, ada, [trace.trace_id for trace in traces], SCORES, GOLD)
    assert [seen(store, ada, trace) for trace in traces] == [{SCORES, GOLD}] * len(traces)
    made = campaign(store, None, overlap=2)
    for user in (ada, bob):
        label_all(store, take(store, made, user), user, ["pos", "neg"])
    found = {answer.user: answer.exposed for answer in iterate_annotations(store, made.id)}
    assert found == {"ada": {SCORES, GOLD}, "bob": frozenset()}


def test_a_store_that_cannot_be_written_to_hides_what_is_to_be_labelled_and_nothing_else(sqlite_store, monkeypatch):
    monkeypatch.setattr(database, "_BRIEF_SECONDS", 0.05)
    monkeypatch.setattr(database, "_BUSY_SECONDS", 0.05)
    (outside,) = add(sqlite_store, [Trace.of("What is 4 + 4?", ["It is 8."], id="other")], "other")
    one, *_ = add(sqlite_store, TRACES)
    campaign(sqlite_store, None)
    ada = person(sqlite_store, "ada")
    with open_store(sqlite_store.name) as other, other.write():
        note_exposure(sqlite_store, ada, [outside.trace_id], GOLD)
        with refused(UnavailableError):
            note_exposure(sqlite_store, ada, [outside.trace_id, one.trace_id], GOLD)
    assert count(sqlite_store) == 0
    note_exposure(sqlite_store, ada, [outside.trace_id, one.trace_id], GOLD)
    assert count(sqlite_store) == 2


def test_exposures_to_submitted_traces_are_recorded_too(store):
    one, other, _ = add(store, TRACES)
    made = campaign(store, None, overlap=2)
    ada, bob = person(store, "ada"), person(store, "bob")
    task = take(store, made, ada)
    assert task.trace.trace_id == one.trace_id
    note_exposure(store, bob, [one.trace_id], GOLD)
    label_all(store, task, ada, ["pos", "neg"])
    note_exposure(store, ada, [one.trace_id, other.trace_id], GOLD)
    assert seen(store, ada, one) == {GOLD}
    assert seen(store, ada, other) == {GOLD}
    assert seen(store, bob, one) == {GOLD}


def test_an_answer_given_before_stays_blind_until_a_label_of_it_is_changed(store):
    made = campaign(store, [TWO], overlap=2)
    ada, bob = person(store, "ada", Role.ADJUDICATOR), person(store, "bob")
    task = take(store, made, ada)
    label_all(store, task, ada, ["pos", "pos"])
    label_all(store, take(store, made, bob), bob, ["pos", "neg"])
    note_exposure(store, ada, [task.trace.trace_id], LABELS)

    def exposed():
        return {answer.user: (answer.labels, answer.exposed) for answer in iterate_annotations(store, made.id)}

    blind = {"ada": (("pos", "pos"), frozenset()), "bob": (("pos", "neg"), frozenset())}
    assert exposed() == blind
    do(store, task.slot_id, ada, "reopen")
    do(store, task.slot_id, ada, "submit")
    assert exposed() == blind
    do(store, task.slot_id, ada, "reopen")
    do(store, task.slot_id, ada, "label", 1, "neg")
    do(store, task.slot_id, ada, "submit")
    assert exposed() == blind | {"ada": (("pos", "neg"), frozenset({LABELS}))}


def test_in_a_second_campaign_the_trace_is_still_ahead(store):
    one, *_ = add(store, TRACES)
    first = campaign(store, None)
    campaign(store, None, name="second")
    ada = person(store, "ada")
    label_all(store, take(store, first, ada), ada, ["pos", "neg"])
    note_exposure(store, ada, [one.trace_id], GOLD)
    assert seen(store, ada, one) == {GOLD}


def test_without_a_campaign_it_costs_the_local_user_one_query(store):
    (trace, *_) = add(store, TRACES)
    local = local_user(store)
    asked = []
    event.listen(store.engine, "before_cursor_execute", lambda *args: asked.append(args[2]))
    note_exposure(store, local, [trace.trace_id], SCORES, GOLD)
    assert len([statement for statement in asked if statement.startswith("SELECT campaigns")]) == 1
    assert [statement for statement in asked if "INSERT" in statement or "campaign_items" in statement] == []


@pytest.mark.parametrize("ids", [[0, -1, 2**31, 10**12], range(1, 12_001)])
def test_any_numbers_can_be_asked_about(store, ids):
    made = add(store, TRACES)
    campaign(store, None)
    ada = person(store, "ada")
    note_exposure(store, ada, ids, GOLD)
    assert count(store) == len({trace.trace_id for trace in made} & set(ids))


def test_something_is_hidden_while_an_open_campaign_is_blind(store):
    assert not is_something_hidden(store)
    made = campaign(store)
    assert is_something_hidden(store)
    close_campaign(store, made.id)
    assert not is_something_hidden(store)
