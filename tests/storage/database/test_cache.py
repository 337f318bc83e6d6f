from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from stepsight.storage.database.cache import _OVERHEAD, StoreCache, cache_of
from stepsight.storage.database.store import Store


class Loader:
    """Gives a new text of ten characters each time, and counts."""

    def __init__(self) -> None:
        self.loads = 0

    def __call__(self) -> str:
        self.loads += 1
        return f"{self.loads:010d}"


def test_an_entry_is_loaded_once_for_each_version() -> None:
    memory, load = StoreCache(), Loader()
    assert [memory.get("a", version, load, len) for version in (1, 1, 2, 2, 1)] == [
        "0000000001", "0000000001", "0000000002", "0000000002", "0000000003",
    ]  # fmt: skip
    assert memory.nbytes == 10 + _OVERHEAD


def test_what_was_not_asked_for_longest_is_dropped_first() -> None:
    memory, load = StoreCache(limit=3 * (10 + _OVERHEAD)), Loader()
    for key in ("a", "b", "c", "a", "d"):
        memory.get(key, 0, load, len)
    # Four of ten bytes each are too many: b goes, since a was asked for again.
    assert (load.loads, memory.nbytes) == (4, 3 * (10 + _OVERHEAD))
    for key in ("a", "c", "d"):
        memory.get(key, 0, load, len)
    assert load.loads == 4
    memory.get("b", 0, load, len)
    assert load.loads == 5


def test_an_entry_larger_than_all_is_kept_until_the_next() -> None:
    memory, load = StoreCache(limit=5), Loader()
    assert memory.get("a", 0, load, len) == memory.get("a", 0, load, len)
    memory.get("b", 0, load, len)
    assert memory.nbytes == 10 + _OVERHEAD


def test_one_thread_loads_and_the_others_wait_for_it() -> None:
    memory, begun, go = StoreCache(), Event(), Event()
    loads = []

    def load() -> str:
        loads.append(1)
        begun.set()
        assert go.wait(10)
        return "loaded"

    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(memory.get, "a", 0, load, len) for _ in range(8)]
        assert begun.wait(10)
        # Another key does not wait.
        assert memory.get("b", 0, lambda: "other", len) == "other"
        go.set()
        assert [one.result(10) for one in asked] == ["loaded"] * 8
    assert len(loads) == 1


def test_a_failed_load_leaves_nothing() -> None:
    memory = StoreCache()
    with pytest.raises(ZeroDivisionError):
        memory.get("a", 0, lambda: 1 // 0, lambda found: 1)
    assert memory.get("a", 0, lambda: 1, lambda found: 1) == 1


def test_a_store_has_one_memory(sqlite_store: Store) -> None:
    assert cache_of(sqlite_store) is cache_of(sqlite_store)


def test_many_small_entries_are_held_to_the_limit_too() -> None:
    memory = StoreCache(limit=100 * _OVERHEAD)
    for key in range(5_000):
        memory.get(key, 0, str, len)
    assert memory.nbytes <= 100 * _OVERHEAD
    assert len(memory._entries) == len(memory._loading) == 100


def test_an_entry_may_be_dropped_or_loaded_while_it_is_loaded() -> None:
    memory, load = StoreCache(limit=2 * _OVERHEAD), Loader()
    memory.get("a", 0, load, len)

    def drops() -> str:
        for key in ("b", "c", "d"):
            memory.get(key, 0, str, len)
        assert "a" not in memory._entries
        # Its lock is gone with it, so that somebody else may be faster.
        memory.get("a", 1, load, len)
        return "slower"

    assert memory.get("a", 1, drops, len) == "slower"
    assert memory.nbytes == sum(held for _, _, held in memory._entries.values())
