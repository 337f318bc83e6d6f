import threading
import time
from types import SimpleNamespace

import pytest

from stepsight.app.web.background_cache import BackgroundCache, Pending
from stepsight.core.errors import UserError
from stepsight.core.keyed_cache import OVERHEAD
from tests.messages import refused


def test_it_is_made_once_for_all_who_ask():
    made, go, cache = [], threading.Event(), BackgroundCache()

    def make():
        made.append(1)
        assert go.wait(120)
        return "result"

    found = []

    def view():
        found.append(cache.get("a", make, patience=120))

    viewers = [threading.Thread(target=view) for _ in range(8)]
    for viewer in viewers:
        viewer.start()
    assert cache.get("a", make) == Pending()
    assert not cache.has_newest("a")
    go.set()
    for viewer in viewers:
        viewer.join(120)
    assert found == ["result"] * 8
    assert cache.get("a", make) == "result"
    assert cache.has_newest("a")
    assert made == [1]


def test_no_more_run_at_once_than_there_are_places_and_no_more_wait_than_may():
    running, most, go, lock = [0], [0], threading.Event(), threading.Lock()

    def make():
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        assert go.wait(120)
        with lock:
            running[0] -= 1
        return 1

    cache = BackgroundCache(at_once=2, most=4)
    for key in range(4):
        assert cache.get(key, make) == Pending()
    with pytest.raises(UserError, match="computing as much as it can"):
        cache.get(4, make)
    # Who asks for what is under way is not refused.
    assert cache.get(3, make) == Pending()
    go.set()
    assert [cache.get(key, make, patience=120) for key in range(4)] == [1] * 4
    assert most == [2]
    assert cache.get(4, make, patience=120) == 1


def test_the_least_recently_used_result_is_forgotten_first():
    cache = BackgroundCache(kept=100 + 2 * OVERHEAD)
    for key in "abc":
        cache.get(key, lambda: "x", lambda result: 40, patience=120)
    assert [cache.has_newest(key) for key in "abc"] == [False, True, True]
    cache.get("b", lambda: "again", patience=120)
    cache.get("d", lambda: "x", lambda result: 40, patience=120)
    assert [cache.has_newest(key) for key in "bcd"] == [True, False, True]
    # Those that are larger than all that is kept stay until the next but one, so that a page can have two of them.
    for key in "efg":
        assert cache.get(key, lambda: "x", lambda result: 1000, patience=120) == "x"
    assert [cache.has_newest(key) for key in "bdefg"] == [False, False, False, True, True]


def test_a_mistake_is_told_to_all_and_tried_again_later(monkeypatch):
    made = []

    def fail():
        made.append(1)
        raise UserError("It is too large.", "Take less.")

    cache = BackgroundCache()
    for _ in range(3):
        with refused():
            cache.get("a", fail, patience=120)
    assert made == [1]
    later = time.monotonic() + 60
    monkeypatch.setattr("stepsight.core.keyed_cache.time", SimpleNamespace(monotonic=lambda: later))
    assert not cache.has_newest("a")
    assert cache.get("a", lambda: 2, patience=120) == 2


def test_a_fault_of_ours_is_logged_and_told_without_its_words(caplog):
    with refused():
        BackgroundCache().get("a", lambda: 1 // 0, patience=120)
    assert "ZeroDivisionError" in caplog.text


def newest(cache, version, patience=120.0, make=None):
    return cache.newest("subject", version, make or (lambda: version), patience=patience)


def test_a_changing_subject_keeps_its_last_result_until_a_newer_one_is_there(monkeypatch):
    monkeypatch.setattr("stepsight.app.web.background_cache._REST", 0.0)
    cache, go, made = BackgroundCache(), threading.Event(), []

    def slow():
        made.append(1)
        assert go.wait(120)
        return "slow"

    assert not cache.has_newest("subject")
    assert newest(cache, 1, 0.0, slow) == Pending()
    # None is begun before the last one is done.
    assert newest(cache, 2, 0.0, slow) == Pending()
    go.set()
    first = newest(cache, 3, make=slow)
    assert (first.result, first.is_current, made) == ("slow", False, [1])
    assert cache.has_newest("subject")
    go.clear()
    waiting = newest(cache, 3, 0.0, slow)
    assert (waiting.result, waiting.is_current, waiting.moment) == ("slow", False, first.moment)
    go.set()
    second = newest(cache, 3)
    assert (second.result, second.is_current, made) == ("slow", True, [1, 1])
    assert second.moment > first.moment
    assert newest(cache, 3).is_current


def test_after_one_that_took_long_another_one_is_begun_late(monkeypatch):
    monkeypatch.setattr("stepsight.app.web.background_cache._REST", 1_000.0)
    cache = BackgroundCache()
    first = newest(cache, 1, make=lambda: time.sleep(0.05) or "long")
    assert first.is_current
    # 1,000 times as long, and 50 ms or more.
    assert first.again >= 50
    second = newest(cache, 2)
    assert (second.result, second.is_current) == ("long", False)
    # Nor does it keep others.
    assert cache.newest("other", 2, lambda: "there", patience=120).result == "there"
    monkeypatch.setattr("stepsight.app.web.background_cache._REST", 0.0)
    assert newest(cache, 2).result == 2


def test_a_newer_one_that_fails_is_told_and_a_forgotten_one_is_made_again(monkeypatch):
    monkeypatch.setattr("stepsight.app.web.background_cache._REST", 0.0)
    cache = BackgroundCache(kept=10)

    def fail():
        raise UserError("It is too large.")

    assert newest(cache, 1).is_current
    with refused():
        newest(cache, 2, make=fail)
    cache.get("large", lambda: 1, lambda _: 1_000, patience=120)
    cache.newest("other", 1, lambda: 1, lambda _: 1_000, patience=120)
    assert newest(cache, 3, make=lambda: "again").result == "again"


def test_one_that_was_dropped_is_waited_for_when_it_is_made_again(monkeypatch):
    monkeypatch.setattr("stepsight.app.web.background_cache._REST", 0.0)
    cache, go = BackgroundCache(kept=10), threading.Event()
    assert newest(cache, 1).is_current
    newest(cache, 1)
    for key in "ab":
        cache.get(key, lambda: 1, lambda _: 1_000, patience=120)
    assert not cache.has_newest("subject")

    def slow():
        assert go.wait(120)
        return "slow"

    assert newest(cache, 1, 0.0, slow) == Pending()
    assert not cache.has_newest("subject")
    go.set()
    assert newest(cache, 1).result == "slow"
