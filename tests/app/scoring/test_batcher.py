"""The queue in front of a scorer."""

import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import numpy as np
import pytest

from stepsight.app.scoring import batcher as batchers
from stepsight.app.scoring.batcher import Batcher, BusyError, Semaphores, ShortError, client_context
from stepsight.app.web.failures import status_of
from stepsight.core.judgment import Mode
from stepsight.core.models import memory
from stepsight.core.trace import Trace
from tests.messages import refused


class Watched:
    """A scorer that notes the size of each call, and waits at the first one until it may go on."""

    def __init__(self, scorer):
        self.scorer, self.evaluator = scorer, scorer.evaluator
        self.tokens = scorer.tokens
        self.calls, self.at_work, self.go = [], threading.Event(), threading.Event()
        self.order = []

    def stream_encoded(self, traces, mode):
        self.calls.append((len(traces), mode))
        self.order += [trace.id for trace, _ in traces]
        self.at_work.set()
        while not self.go.wait(0.01):
            yield None
        yield from self.scorer.stream_encoded(traces, mode)


@pytest.fixture
def watched(evaluators):
    return Watched(evaluators.scorer("tiny"))


@pytest.fixture
def batcher(watched):
    return Batcher(watched, Semaphores(threading.Lock(), threading.Lock()), most=40)


def trace(number):
    return Trace.of(f"What is {number} + 3?", ["5."] * (1 + number % 3), id=str(number))


def test_traces_submitted_during_a_call_are_scored_in_the_next_one(batcher, watched):
    first = batcher.submit(trace(0), Mode.HINDSIGHT)
    assert watched.at_work.wait(30)
    others = [batcher.submit(trace(n), Mode.HINDSIGHT) for n in range(1, 11)]
    watched.go.set()
    judgments = [future.result(30) for future in (first, *others)]
    assert watched.calls == [(1, Mode.HINDSIGHT), (10, Mode.HINDSIGHT)]
    for number, judgment in enumerate(judgments):
        assert judgment.trace.id == str(number)
        alone = watched.scorer.score_one(trace(number))
        np.testing.assert_allclose(judgment.hindsight.packed, alone.hindsight.packed, atol=1e-5)


def test_modes_are_scored_apart_and_a_call_is_bounded(batcher, watched):
    batcher.submit(trace(0), Mode.ONLINE)
    assert watched.at_work.wait(30)
    modes = [list(Mode)[n % 2] for n in range(20)]
    others = [batcher.submit(trace(n), mode) for n, mode in enumerate(modes)]
    watched.go.set()
    assert [future.result(30).mode for future in others] == modes
    # 20 wait: a batch of 16, half of each mode, and one of the four that are left: two of each.
    assert watched.calls == [
        (1, Mode.ONLINE),
        *[(8, mode) for mode in modes[:2]],
        *[(2, mode) for mode in modes[:2]],
    ]


def test_a_full_queue_refuses_and_says_when_to_come_again(batcher, watched):
    batcher.submit(trace(0), Mode.OFFLINE)
    assert watched.at_work.wait(30)
    waiting = [batcher.submit(trace(n), Mode.OFFLINE) for n in range(20)]
    with refused(BusyError) as caught:
        batcher.submit(trace(21), Mode.OFFLINE)
    assert caught.value.seconds == 1
    with client_context("somebody else"):
        waiting.append(batcher.submit(trace(21), Mode.OFFLINE))
    # Those whom nobody waits for make room.
    assert waiting.pop(0).cancel()
    watched.go.set()
    assert all(future.result(30) for future in waiting)
    assert batcher.submit(trace(22), Mode.OFFLINE).result(30)


def test_a_trace_too_long_is_told_at_once_and_troubles_nobody_else(batcher, watched):
    watched.go.set()
    with refused():
        batcher.submit(Trace.of("q", ["7" * 20_000]), Mode.OFFLINE)
    assert batcher.submit(trace(1), Mode.OFFLINE).result(30)


def test_whom_nobody_waits_for_any_more_is_not_scored(batcher, watched):
    first = batcher.submit(trace(0), Mode.OFFLINE)
    assert watched.at_work.wait(30)
    gone, stays = batcher.submit(trace(1), Mode.OFFLINE), batcher.submit(trace(2), Mode.OFFLINE)
    assert gone.cancel()
    watched.go.set()
    assert first.result(30)
    assert stays.result(30).trace.id == "2"
    assert watched.calls == [(1, Mode.OFFLINE), (1, Mode.OFFLINE)]


def test_a_computation_ends_once_nobody_waits_for_it(batcher, watched):
    first = batcher.submit(trace(0), Mode.OFFLINE)
    assert watched.at_work.wait(30)
    assert not first.cancel()
    with pytest.raises(CancelledError):
        first.result(30)
    watched.go.set()
    assert batcher.submit(trace(1), Mode.OFFLINE).result(30)


def test_clients_are_served_in_turn(batcher, watched):
    batcher.submit(trace(0), Mode.OFFLINE)
    assert watched.at_work.wait(30)
    with client_context("many"):
        many = [batcher.submit(trace(n), Mode.OFFLINE) for n in range(1, 19)]
    with client_context("few"):
        few = [batcher.submit(trace(n), Mode.OFFLINE) for n in (101, 102)]
    watched.go.set()
    assert all(future.result(30) for future in many + few)
    assert watched.order[1:6] == ["1", "101", "2", "102", "3"]


def test_a_short_one_does_not_wait_for_a_long_one(evaluators):
    """The long one waits for the short one, so that it cannot have been first."""
    scorer = evaluators.scorer("tiny")
    short_is_there = threading.Event()

    class Waiting:
        evaluator, tokens = scorer.evaluator, scorer.tokens

        def stream_encoded(self, traces, mode):
            if len(traces[0][0].steps) > 3:
                assert short_is_there.wait(30)
            return scorer.stream_encoded(traces, mode)

    batcher = Batcher(Waiting(), Semaphores(threading.Lock(), threading.Lock()))
    with client_context("one"):
        long = batcher.submit(Trace.of("q", ["5."] * 200), Mode.HINDSIGHT)
    with client_context("other"):
        assert batcher.submit(trace(1), Mode.OFFLINE).result(30)
    short_is_there.set()
    assert len(long.result(30).hindsight) == 200


def test_a_request_that_would_compute_too_much_is_refused_with_the_numbers(watched):
    places = Semaphores(threading.Lock(), threading.Lock())
    batcher = Batcher(watched, places, tokens=5_000)
    with refused():
        batcher.submit(Trace.of("q", ["5."] * 150), Mode.HINDSIGHT)
    watched.go.set()
    assert batcher.submit(Trace.of("q", ["5."] * 150), Mode.OFFLINE).result(30)


def test_the_cost_of_a_trace_says_whether_hindsight_fits_into_a_request(watched):
    batcher = Batcher(watched, Semaphores(threading.Lock(), threading.Lock()), tokens=5_000)
    long, short = batcher.cost(Trace.of("q", ["5."] * 150)), batcher.cost(trace(2))
    assert (long.fits, short.fits) == (False, True)
    assert long.whole < long.limit == 5_000 < long.prefixes


def test_nothing_is_taken_where_memory_is_short(batcher, watched, monkeypatch):
    monkeypatch.setattr(memory, "free_memory", lambda: 50_000_000)
    with pytest.raises(ShortError, match="short of memory") as caught:
        batcher.submit(trace(1), Mode.OFFLINE)
    assert caught.value.seconds > 0
    assert status_of(caught.value) == 503


def test_a_fault_reaches_those_who_wait_and_the_next_is_scored(batcher, watched, monkeypatch):
    def fail(*_):
        raise RuntimeError("no memory")

    with monkeypatch.context() as patched:
        patched.setattr(watched, "stream_encoded", fail)
        with pytest.raises(RuntimeError, match="no memory"):
            batcher.submit(trace(1), Mode.OFFLINE).result(30)
    watched.go.set()
    assert batcher.submit(trace(1), Mode.OFFLINE).result(30)


def test_no_thread_is_left_when_nothing_waits(batcher, watched):
    watched.go.set()
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda n: batcher.submit(trace(n), Mode.OFFLINE).result(30), range(12)))
    patience = time.monotonic() + 120
    while batcher.is_busy and time.monotonic() < patience:
        time.sleep(0.01)
    assert not batcher.is_busy


def test_freed_memory_is_given_back_from_time_to_time_and_after_what_takes_long(batcher, watched, monkeypatch):
    given_back = threading.Semaphore(0)
    monkeypatch.setattr(batchers, "release_memory", given_back.release)
    watched.go.set()
    batcher.submit(trace(0), Mode.OFFLINE).result(30)
    batcher.drain()
    assert not given_back.acquire(blocking=False)
    monkeypatch.setattr(batchers, "_RELEASED_EVERY", 0.0)
    batcher.submit(trace(1), Mode.OFFLINE).result(30)
    assert given_back.acquire(timeout=30)
    batcher.drain()
    monkeypatch.setattr(batchers, "_RELEASED_EVERY", 1000.0)
    # Whatever needs more than this is long.
    monkeypatch.setattr(batchers, "_LONG", 0.0)
    batcher.submit(trace(2), Mode.OFFLINE).result(30)
    # A lane that has nothing left to do gives it back last of all.
    assert given_back.acquire(timeout=30)
