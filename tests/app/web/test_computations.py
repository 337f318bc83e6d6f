import threading
import time

import pytest

from stepsight.app.web.computations import Computations, Pending
from stepsight.core.errors import UserError


def test_it_is_made_once_for_all_who_ask():
    made, go, computations = [], threading.Event(), Computations()

    def make():
        made.append(1)
        assert go.wait(10)
        return "result"

    found = []

    def view():
        found.append(computations.get("a", make, patience=10))

    viewers = [threading.Thread(target=view) for _ in range(8)]
    for viewer in viewers:
        viewer.start()
    assert computations.get("a", make) == Pending()
    assert not computations.has("a")
    go.set()
    for viewer in viewers:
        viewer.join(10)
    assert found == ["result"] * 8
    assert computations.get("a", make) == "result"
    assert computations.has("a")
    assert made == [1]


def test_no_more_run_at_once_than_there_are_places_and_no_more_wait_than_may():
    running, most, go, lock = [0], [0], threading.Event(), threading.Lock()

    def make():
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        assert go.wait(10)
        with lock:
            running[0] -= 1
        return 1

    computations = Computations(at_once=2, most=4)
    for key in range(4):
        assert computations.get(key, make) == Pending()
    with pytest.raises(UserError, match="computing as much as it can"):
        computations.get(4, make)
    # Who asks for what is under way is not refused.
    assert computations.get(3, make) == Pending()
    go.set()
    assert [computations.get(key, make, patience=10) for key in range(4)] == [1] * 4
    assert most == [2]
    assert computations.get(4, make, patience=10) == 1


def test_what_was_used_longest_ago_is_forgotten_first():
    computations = Computations(kept=100)
    for key in "abc":
        computations.get(key, lambda: "x", lambda result: 40, patience=10)
    assert [computations.has(key) for key in "abc"] == [False, True, True]
    computations.get("b", lambda: "again", patience=10)
    computations.get("d", lambda: "x", lambda result: 40, patience=10)
    assert [computations.has(key) for key in "bcd"] == [True, False, True]
    # Those that are larger than all that is kept stay until the next but one, so that a page can have two of them.
    for key in "efg":
        assert computations.get(key, lambda: "x", lambda result: 1000, patience=10) == "x"
    assert [computations.has(key) for key in "bdefg"] == [False, False, False, True, True]


def test_a_mistake_is_told_to_all_and_tried_again_later(monkeypatch):
    made = []

    def fail():
        made.append(1)
        raise UserError("It is too large.", "Take less.")

    computations = Computations()
    for _ in range(3):
        with pytest.raises(UserError, match=r"It is too large\. Take less\."):
            computations.get("a", fail, patience=10)
    assert made == [1]
    monkeypatch.setattr("stepsight.app.web.computations._FAILED_SECONDS", 0.0)
    time.sleep(0.01)
    assert not computations.has("a")
    assert computations.get("a", lambda: 2, patience=10) == 2


def test_a_fault_of_ours_is_logged_and_told_without_its_words(caplog):
    with pytest.raises(UserError, match=r"This cannot be computed\."):
        Computations().get("a", lambda: 1 // 0, patience=10)
    assert "ZeroDivisionError" in caplog.text


def newest(computations, version, patience=10.0, make=None):
    return computations.newest("subject", version, make or (lambda: version), patience=patience)


def test_what_goes_on_changing_has_its_last_result_until_a_newer_one_is_there(monkeypatch):
    monkeypatch.setattr("stepsight.app.web.computations._REST", 0.0)
    computations, go, made = Computations(), threading.Event(), []

    def slow():
        made.append(1)
        assert go.wait(10)
        return "slow"

    assert not computations.has_newest("subject", 1)
    assert newest(computations, 1, 0.0, slow) == Pending()
    # None is begun before the last one is done.
    assert newest(computations, 2, 0.0, slow) == Pending()
    go.set()
    first = newest(computations, 3, make=slow)
    assert (first.result, first.is_current, made) == ("slow", False, [1])
    assert computations.has_newest("subject", 3)
    go.clear()
    waiting = newest(computations, 3, 0.0, slow)
    assert (waiting.result, waiting.is_current, waiting.moment) == ("slow", False, first.moment)
    go.set()
    second = newest(computations, 3)
    assert (second.result, second.is_current, made) == ("slow", True, [1, 1])
    assert second.moment > first.moment
    assert newest(computations, 3).is_current
    assert (computations.has(("subject", 1)), computations.has(("subject", 3))) == (False, True)


def test_after_one_that_took_long_another_one_is_begun_late(monkeypatch):
    monkeypatch.setattr("stepsight.app.web.computations._REST", 1_000.0)
    computations = Computations()
    first = newest(computations, 1, make=lambda: time.sleep(0.05) or "long")
    assert first.is_current
    assert 50 <= first.again <= 5_000
    second = newest(computations, 2)
    assert (second.result, second.is_current) == ("long", False)
    # Nor does it keep others.
    assert computations.newest("other", 2, lambda: "there", patience=10).result == "there"
    monkeypatch.setattr("stepsight.app.web.computations._REST", 0.0)
    assert newest(computations, 2).result == 2


def test_a_newer_one_that_fails_is_told_and_a_forgotten_one_is_made_again(monkeypatch):
    monkeypatch.setattr("stepsight.app.web.computations._REST", 0.0)
    computations = Computations(kept=10)

    def fail():
        raise UserError("It is too large.")

    assert newest(computations, 1).is_current
    with pytest.raises(UserError, match="It is too large"):
        newest(computations, 2, make=fail)
    computations.get("large", lambda: 1, lambda _: 1_000, patience=10)
    computations.newest("other", 1, lambda: 1, lambda _: 1_000, patience=10)
    assert newest(computations, 3, make=lambda: "again").result == "again"


def test_one_that_was_dropped_is_waited_for_when_it_is_made_again(monkeypatch):
    monkeypatch.setattr("stepsight.app.web.computations._REST", 0.0)
    computations, go = Computations(kept=10), threading.Event()
    assert newest(computations, 1).is_current
    newest(computations, 1)
    for key in "ab":
        computations.get(key, lambda: 1, lambda _: 1_000, patience=10)
    assert not computations.has_newest("subject", 1)

    def slow():
        assert go.wait(10)
        return "slow"

    assert newest(computations, 1, 0.0, slow) == Pending()
    assert not computations.has_newest("subject", 1)
    go.set()
    assert newest(computations, 1).result == "slow"
