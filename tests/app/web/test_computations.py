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
    # One that is larger than all that is kept stays until the next.
    assert computations.get("e", lambda: "x", lambda result: 1000, patience=10) == "x"
    assert [computations.has(key) for key in "bde"] == [False, False, True]


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
