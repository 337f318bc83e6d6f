"""What leaving steps out does, asked for by several at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from stepsight.app.evidence import page
from stepsight.app.evidence.evidence import Evidence
from stepsight.app.evidence.page import LEFT_OUT, LeftOuts, ReaderLeftError
from stepsight.app.score.entered import Entered
from stepsight.app.scoring.batcher import BusyError
from stepsight.app.server import build_app
from stepsight.core.errors import UserError
from stepsight.core.scores import Thresholds
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.app.held_up import check_end
from tests.messages import refused


@pytest.fixture
def evidence(evaluators):
    def evidence(steps=("It is 3.", "Check.", "Done."), runs=True):
        trace, scorer = Trace.of("What is 1 + 1?", list(steps)), evaluators.scorer("tiny")
        ask = (lambda: scorer) if runs else None
        return Evidence(scorer.score_one(trace), "tiny", evaluators.about("tiny"), Thresholds(), ask, ())

    return evidence


def test_it_is_worked_out_once(evidence):
    kept, one = LeftOuts(), evidence()
    first = kept.of(one)
    assert kept.of(evidence()) is first
    np.testing.assert_allclose(first.rows()[2], one.scorer().score_one(
        Trace.of("What is 1 + 1?", ["It is 3.", "Check."]), "offline").offline.probs, atol=1e-5)  # fmt: skip


def test_one_that_cannot_score_here_says_so(evidence):
    with refused():
        LeftOuts().of(evidence(runs=False))


def test_too_much_is_refused(evidence, monkeypatch):
    monkeypatch.setattr(page, "_MOST_TOKENS", 100)
    with refused():
        LeftOuts().of(evidence())


def test_the_work_ends_when_its_reader_leaves_and_begins_again_for_another(evidence, monkeypatch):
    """The second reader waits for the work of the first, who leaves after two passes."""
    whole, kept, one = Scorer.stream_left_out, LeftOuts(), evidence()
    begun, waits, asked = threading.Event(), threading.Event(), []

    def held(scorer, trace):
        begun.set()
        assert waits.wait(20)
        return whole(scorer, trace)

    def has_left():
        asked.append(True)
        return len(asked) > 2

    monkeypatch.setattr(page, "_LOOKS", 0)
    monkeypatch.setattr(Scorer, "stream_left_out", held)
    key = (one.about.fingerprint, one.trace.digest)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(kept.of, one, has_left)
        assert begun.wait(20)
        second = pool.submit(kept.of, one)
        while not kept._cache.claim(key)[0]._condition._waiters:
            pass
        waits.set()
        assert isinstance(first.exception(20), ReaderLeftError)
        assert len(second.result(20)) == 3


def test_the_work_ends_when_the_page_is_left(store, evaluators, monkeypatch):
    token = Entered("What is 1 + 1?", (("It is 3.",), ("Check.",)), evaluators=("tiny",)).token()
    check_end(build_app(store, evaluators), f"{LEFT_OUT}?s={token}", "stream_left_out", monkeypatch)


def test_where_many_wait_the_next_is_sent_away(evidence, monkeypatch):
    monkeypatch.setattr(page, "_WAITING", 2)
    kept, held = LeftOuts(), threading.Event()
    started = threading.Semaphore(0)

    def slow(scorer, trace):
        started.release()
        assert held.wait(20)
        raise UserError("stopped")

    monkeypatch.setattr(Scorer, "stream_left_out", slow)
    one, two, three = (evidence((f"{i}.", "b")) for i in range(3))
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(kept.of, one)]
        assert started.acquire(timeout=20)
        waiting.append(pool.submit(kept.of, two))
        while kept._places._value:
            pass
        with pytest.raises(BusyError):
            kept.of(three)
        held.set()
        assert all(isinstance(future.exception(), UserError) for future in waiting)
    # The places are free again.
    with refused():
        kept.of(three)
