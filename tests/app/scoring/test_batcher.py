"""The queue in front of a scorer."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from stepsight.app.scoring.batcher import Batcher, BusyError
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.trace import Trace


class Watched:
    """A scorer that notes the size of each call, and waits at the first one until it may go on."""

    def __init__(self, scorer):
        self.scorer, self.evaluator = scorer, scorer.evaluator
        self.calls, self.at_work, self.go = [], threading.Event(), threading.Event()

    def score_encoded(self, traces, mode):
        self.calls.append((len(traces), mode))
        self.at_work.set()
        assert self.go.wait(30)
        return self.scorer.score_encoded(traces, mode)


@pytest.fixture
def watched(evaluators):
    return Watched(evaluators.scorer("tiny"))


@pytest.fixture
def batcher(watched):
    return Batcher(watched, threading.Lock(), most=20)


def trace(number):
    return Trace.of(f"What is {number} + 3?", ["5."] * (1 + number % 3), id=str(number))


def test_what_comes_while_it_works_is_scored_in_one_call(batcher, watched):
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
    with pytest.raises(BusyError, match="tiny has too many traces waiting") as caught:
        batcher.submit(trace(21), Mode.OFFLINE)
    # 20 traces at the 0.1 s that one is taken to need before any was timed.
    assert caught.value.seconds == 2
    watched.go.set()
    assert all(future.result(30) for future in waiting)
    assert batcher.submit(trace(22), Mode.OFFLINE).result(30)


def test_a_trace_too_long_is_told_at_once_and_troubles_nobody_else(batcher, watched):
    watched.go.set()
    with pytest.raises(UserError, match="reads at most 1,024"):
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


def test_a_fault_reaches_those_who_wait_and_the_next_is_scored(batcher, watched, monkeypatch):
    def fail(traces, mode):
        raise RuntimeError("no memory")

    with monkeypatch.context() as patched:
        patched.setattr(watched, "score_encoded", fail)
        with pytest.raises(RuntimeError, match="no memory"):
            batcher.submit(trace(1), Mode.OFFLINE).result(30)
    watched.go.set()
    assert batcher.submit(trace(1), Mode.OFFLINE).result(30)


def test_a_judgment_is_kept_before_anybody_learns_of_it(batcher, watched):
    watched.go.set()
    kept = []

    def keep(judgment):
        time.sleep(0.05)
        kept.append(judgment)

    assert [batcher.submit(trace(1), Mode.OFFLINE, keep).result(30)] == kept


def test_no_thread_is_left_when_nothing_waits(batcher, watched):
    watched.go.set()
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(lambda n: batcher.submit(trace(n), Mode.OFFLINE).result(30), range(12)))
    patience = time.monotonic() + 10
    while batcher._running and time.monotonic() < patience:
        time.sleep(0.01)
    assert not batcher._running
