"""The clock set back by an hour: nobody is shut out for it, nothing is held up, and what came last is the last."""

import threading
from datetime import timedelta

import pytest

from stepsight.app.jobs import worker as worker_module
from stepsight.app.jobs.worker import Worker
from stepsight.core.judgment import Mode
from stepsight.storage.database.jobs_schema import State
from stepsight.storage.jobs.jobs import LEASE, get_job, start_job, take_job, update_job
from stepsight.storage.labelling.adjudication import decide
from stepsight.storage.labelling.queue import assign_next, last_submitted
from stepsight.storage.labelling.record import read_annotation
from stepsight.storage.labelling.submissions import iterate_annotations
from stepsight.storage.people.logins import (
    FREE_BY_NAME,
    INVITATION_LASTS,
    LimitError,
    accept,
    begin_attempt,
    find_invitation,
    invite,
    log_in,
    open_login,
    renew,
    user_of,
)
from stepsight.storage.people.users import Role
from stepsight.storage.traces.queries import find_dataset
from tests.faults.clocks import HOUR, clock
from tests.storage.labelling.labelled_sums import item_of
from tests.storage.labelling.samples import campaign, do, key, label_all, people, person, take
from tests.storage.samples import add, many


@pytest.fixture
def time_of_day():
    with clock() as made:
        yield made


def test_logins_survive_a_clock_change_and_new_ones_succeed(store, time_of_day):
    ada = person(store, "ada")
    token = open_login(store, ada)
    time_of_day.set(-HOUR)
    assert user_of(store, token) == ada
    renew(store, token)
    assert user_of(store, open_login(store, ada)) == user_of(store, token) == ada


def test_an_invitation_can_be_accepted_and_still_ends(store, time_of_day):
    boss = person(store, "boss", Role.ADMIN)
    token = invite(store, Role.ANNOTATOR, "ada", boss)
    time_of_day.set(-HOUR)
    assert find_invitation(store, token).name == "ada"
    accept(store, token, "ada", "a long password")
    assert log_in(store, "ada", "a long password", "10.0.0.1")
    other = invite(store, Role.ANNOTATOR, "bob", boss)
    time_of_day.set(INVITATION_LASTS + HOUR)
    with pytest.raises(Exception, match=r"expired|no longer"):
        find_invitation(store, other)


def test_failed_logins_of_what_is_the_future_bring_no_longer_pause(store, time_of_day):
    for _ in range(FREE_BY_NAME + 1):
        try:
            begin_attempt(store, "ada", "10.0.0.1")
        except LimitError:
            time_of_day.set(timedelta(minutes=1))
    time_of_day.set(-HOUR)
    with pytest.raises(LimitError) as caught:
        begin_attempt(store, "ada", "10.0.0.1")
    assert caught.value.seconds <= 60
    # The pause goes by, and not the hour.
    time_of_day.set(timedelta(seconds=caught.value.seconds + 1))
    begin_attempt(store, "ada", "10.0.0.1")


def test_the_newest_label_wins_whatever_time_it_bears(store, time_of_day):
    made, (ada,) = campaign(store, overlap=1), people(store, 1)
    task = take(store, made, ada)
    do(store, task.slot, ada, "label", 0, "neg")
    time_of_day.set(-HOUR)
    do(store, task.slot, ada, "label", 0, "pos")
    do(store, task.slot, ada, "label", 1, "neu")
    assert read_annotation(store, task.slot).labels == ("pos", "neu")
    do(store, task.slot, ada, "submit")
    (annotation,) = iterate_annotations(store, made.id)
    assert annotation.labels == ("pos", "neu")


def test_the_newest_decision_stands_after_a_clock_change(store, time_of_day):
    made, (ada,) = campaign(store, overlap=1), people(store, 1)
    label_all(store, take(store, made, ada), ada, ["pos", "neg"])
    eve, item = person(store, "eve", Role.ADJUDICATOR), item_of(store, made, "two")
    decide(store, made.id, item, 0, "neg", "First.", eve, key())
    time_of_day.set(-HOUR)
    second = decide(store, made.id, item, 0, "neu", "Second.", eve, key())
    with pytest.raises(Exception, match="decided in the meantime"):
        decide(store, made.id, item, 0, "pos", "Of the page before.", eve, key(), second.event_id - 1)


def test_the_last_submission_is_the_one_that_came_last(store, time_of_day):
    made, (ada,) = campaign(store, overlap=1), people(store, 1)
    first = take(store, made, ada)
    label_all(store, first, ada, ["pos", "neg"])
    time_of_day.set(-HOUR)
    second = take(store, made, ada)
    label_all(store, second, ada, ["pos", "neu", "pos"])
    assert last_submitted(store, made.id, ada) == second.slot


def test_a_trace_that_somebody_left_is_not_kept_for_an_hour_more(store, time_of_day):
    made, (ada, bob) = campaign(store, overlap=1, lease=60), people(store, 2)
    left = take(store, made, ada)
    time_of_day.set(-HOUR)
    assert take(store, made, bob).item_id != left.item_id
    time_of_day.set(timedelta(seconds=61))
    seen = {take(store, made, bob).item_id}
    for user in (bob, person(store, "eve")):
        task = assign_next(store, made.id, user)
        assert task is not None
        seen.add(task.item_id)
    assert left.item_id in seen


def test_an_annotator_keeps_the_trace_through_a_clock_change(store, time_of_day):
    made, (ada, bob) = campaign(store, overlap=1, lease=60), people(store, 2)
    task = take(store, made, ada)
    time_of_day.set(-HOUR)
    assert take(store, made, bob).item_id != task.item_id
    do(store, task.slot, ada, "label", 0, "pos")
    assert take(store, made, ada).item_id == task.item_id


@pytest.fixture
def job(store):
    add(store, many(3))
    dataset = find_dataset(store, "sums")
    return start_job(store, dataset.id, evaluator="e", spec="e", fingerprint="f", mode=Mode.OFFLINE)


def test_a_job_whose_worker_is_gone_does_not_wait_for_the_hour(store, job, time_of_day):
    assert take_job(store, "gone").id == job.id
    time_of_day.set(-HOUR)
    assert take_job(store, "other").worker == "other"


def test_a_job_whose_worker_lives_stays_its_own(store, job, time_of_day):
    assert take_job(store, "first").id == job.id
    for hours in (-1, 2):
        time_of_day.set(hours * HOUR)
        assert update_job(store, job.id, "first", done=0, left_out=0)
        assert take_job(store, "second") is None
        assert get_job(store, job.id).worker == "first"


def test_a_worker_that_sees_the_clock_set_waits_for_the_next_heartbeats(store, job, time_of_day, monkeypatch):
    """Set forward or back, every heartbeat looks dead until it is written anew: within 2 s, and it waits 30."""
    second, shift = Worker(store, threading.Event()), timedelta(0)
    real, steady = worker_module.time.time, worker_module.time.monotonic
    monkeypatch.setattr(worker_module.time, "time", lambda: real() + shift.total_seconds())
    assert take_job(store, "first").id == job.id
    for hours in (1, -2):
        shift += hours * HOUR
        time_of_day.set(hours * HOUR)
        assert not second.work_one()
        assert get_job(store, job.id).worker == "first"
    # Later the heartbeat is still of before: nobody is there.
    passed = LEASE.total_seconds() + 1
    monkeypatch.setattr(worker_module.time, "monotonic", lambda: steady() + passed)
    monkeypatch.setattr(worker_module.time, "time", lambda: real() + shift.total_seconds() + passed)
    assert second.work_one()
    assert get_job(store, job.id).state == State.FAILED
