"""How much of the server one request of POST /api/v1/score can have."""

import pytest

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.server import build_app
from stepsight.core.models import memory
from tests.app.client import asking
from tests.app.held_up import hold_up, posted, served
from tests.app.processes import until

STEPS = ["2 + 3 = 5."]


@pytest.fixture
def held(tiny):
    return hold_up(tiny)


def post(client, steps=STEPS, mode="offline"):
    return client.post("/api/v1/score", json={"problem": "What is 2 + 3?", "steps": steps, "mode": mode})


def test_too_many_tokens_are_refused_with_their_number(sqlite_store, tiny):
    evaluators = Evaluators([tiny], shipped=False, tokens=20_000)
    with asking(sqlite_store, evaluators) as client:
        refused = post(client, ["5."] * 300, "hindsight")
        assert refused.status_code == 422
        assert "20,000 at most" in refused.json()["error"]
        assert post(client, ["5."] * 300).status_code == 200


def test_a_request_over_its_time_gets_a_503_and_its_work_ends(sqlite_store, held):
    evaluators, scorer = held
    with asking(sqlite_store, evaluators, seconds=0.3) as client:
        late = post(client)
        assert late.status_code == 503
        assert "longer than the 0.3 s" in late.json()["error"]
        assert int(late.headers["retry-after"]) > 0
        assert scorer.ended.wait(120)
        scorer.go.set()
        assert post(client).status_code == 200


def test_nothing_is_begun_where_memory_is_short(sqlite_store, tiny, monkeypatch):
    with asking(sqlite_store, Evaluators([tiny], shipped=False)) as client:
        with monkeypatch.context() as patch:
            patch.setattr(memory, "free_memory", lambda: 10_000_000)
            refused = post(client)
        assert refused.status_code == 503
        assert int(refused.headers["retry-after"]) > 0
        assert "short of memory" in refused.json()["error"]
        assert post(client).status_code == 200


def test_work_ends_when_its_client_disconnects(sqlite_store, held):
    evaluators, scorer = held
    with served(build_app(sqlite_store, evaluators)) as address:
        with posted(address, "/api/v1/score", {"problem": "q", "steps": STEPS}):
            assert scorer.at_work.wait(30)
            assert not scorer.ended.is_set()
        assert scorer.ended.wait(120)
        until(lambda: not evaluators._batchers["tiny"].is_busy)
