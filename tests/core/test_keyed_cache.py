from concurrent.futures import ThreadPoolExecutor
from threading import Event
from types import SimpleNamespace

import pytest

from stepsight.core.keyed_cache import OVERHEAD, KeyedCache

LIMIT = 1_000_000


class Loader:
    """Gives a new text of ten characters each time, and counts."""

    def __init__(self) -> None:
        self.loads = 0

    def __call__(self) -> str:
        self.loads += 1
        return f"{self.loads:010d}"


def test_an_entry_is_loaded_once_for_each_version():
    memory, load = KeyedCache(LIMIT), Loader()
    assert [memory.get("a", version, load, len) for version in (1, 1, 2, 2, 1)] == [
        "0000000001", "0000000001", "0000000002", "0000000002", "0000000003",
    ]  # fmt: skip
    assert memory.nbytes == 10 + OVERHEAD


def test_the_least_recently_used_entry_is_dropped_first():
    memory, load = KeyedCache(3 * (10 + OVERHEAD)), Loader()
    for key in ("a", "b", "c", "a", "d"):
        memory.get(key, 0, load, len)
    # Four of ten bytes each are too many: b goes, since a was asked for again.
    assert (load.loads, memory.nbytes) == (4, 3 * (10 + OVERHEAD))
    for key in ("a", "c", "d"):
        memory.get(key, 0, load, len)
    assert load.loads == 4
    assert memory.find("a") is not None
    memory.get("b", 0, load, len)
    assert (load.loads, memory.find("c")) == (5, None)


def test_an_entry_larger_than_all_is_kept_until_the_next():
    memory, load = KeyedCache(5), Loader()
    assert memory.get("a", 0, load, len) == memory.get("a", 0, load, len)
    memory.get("b", 0, load, len)
    assert memory.nbytes == 10 + OVERHEAD


def test_one_thread_loads_and_the_others_wait_for_it():
    memory, begun, go = KeyedCache(LIMIT), Event(), Event()
    loads = []

    def load() -> str:
        loads.append(1)
        begun.set()
        assert go.wait(120)
        return "loaded"

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(memory.get, "a", 0, load, len) for _ in range(8)]
        assert begun.wait(120)
        # Another key does not wait.
        assert memory.get("b", 0, lambda: "other", len) == "other"
        go.set()
        assert [one.result(120) for one in asked] == ["loaded"] * 8
    assert len(loads) == 1


def test_a_failed_load_leaves_nothing():
    memory = KeyedCache(LIMIT)
    with pytest.raises(ZeroDivisionError):
        memory.get("a", 0, lambda: 1 // 0, lambda found: 1)
    assert memory.get("a", 0, lambda: 1, lambda found: 1) == 1


def test_many_small_entries_are_held_to_the_limit_too():
    memory = KeyedCache(100 * OVERHEAD)
    for key in range(5_000):
        memory.get(key, 0, str, len)
    assert memory.nbytes <= 100 * OVERHEAD
    assert [memory.find(key) is None for key in (4_899, 4_900)] == [True, False]


def test_a_newer_version_waits_and_computations_under_way_are_not_dropped():
    memory, begun, go = KeyedCache(OVERHEAD), Event(), Event()

    def load() -> str:
        begun.set()
        assert go.wait(120)
        return "old"

    with ThreadPoolExecutor(2) as pool:
        old = pool.submit(memory.get, "a", 1, load, len)
        assert begun.wait(120)
        new = pool.submit(memory.get, "a", 2, lambda: "new", len)
        for key in "bcd":
            memory.get(key, 0, str, len)
        go.set()
        assert (old.result(120), new.result(120)) == ("old", "new")
    found = memory.find("a")
    assert found is not None
    assert (found.result(), found.version) == ("new", 2)
    assert memory.nbytes == 3 + OVERHEAD


def test_a_failure_is_raised_in_all_waiters_and_for_a_while(monkeypatch):
    memory = KeyedCache(LIMIT)
    first, is_ours = memory.claim("a")
    shared, is_theirs = memory.claim("a")
    assert (shared is first, is_ours, is_theirs) == (True, True, False)
    first.error_seconds = 60
    first.set_exception(ValueError("no"))
    for computation in (shared, memory.claim("a")[0]):
        with pytest.raises(ValueError, match="no"):
            computation.result()
    monkeypatch.setattr("stepsight.core.keyed_cache.time", SimpleNamespace(monotonic=lambda: first.error_until))
    assert memory.claim("a")[1]


def test_a_computation_that_is_dropped_stores_nothing():
    memory = KeyedCache(LIMIT)
    first, _ = memory.claim("a", size=len)
    memory.drop("a", first)
    second, is_ours = memory.claim("a", size=len)
    first.set_result("old")
    assert (is_ours, memory.find("a")) == (True, None)
    second.set_result("new")
    found = memory.find("a")
    assert found is not None
    assert found.result() == "new"
