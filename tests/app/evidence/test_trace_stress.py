"""The stress test of one trace: what is shown of its variants, what is refused, and when the work ends."""

import re

import pytest

from stepsight.app.browse.evaluator_choice import stress_offers
from stepsight.app.evidence import trace_stress
from stepsight.app.evidence.trace_stress import STRESS
from stepsight.app.score.entered import Entered
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.server import build_app
from stepsight.core.models.model import THREE_WAY
from stepsight.core.scores import Thresholds
from stepsight.core.trace import Trace
from tests.app.client import asking
from tests.app.held_up import check_end
from tests.storage.samples import add
from tests.vllm_server import Classifier, VllmServer

WILD = "<script>alert(1)</script>"
STEPS = (("2 + 3 = 5.",), (f"So it is 5. {WILD}",), ("The answer is 5.",))
EQUATIONS = "equations"


@pytest.fixture(scope="module")
def shipped():
    return Evaluators()


@pytest.fixture
def client(sqlite_store, shipped):
    with asking(sqlite_store, shipped) as client:
        yield client


def token(steps=STEPS, **more):
    return Entered("Add 2 and 3.", steps, **more).token()


def test_a_stored_trace_is_tested_and_what_finds_nothing_is_named(sqlite_store, client):
    (trace,) = add(sqlite_store, [Trace.of("Add 2 and 3.", [" ".join(step) for step in STEPS], id="sum")])
    found = client.get(f"{STRESS}?trace={trace.trace_id}&evaluator={EQUATIONS}")
    assert found.status_code == 200
    assert WILD not in found.text
    (turned,) = re.findall(r"The verdict must turn: (\d+ of \d+) as they must", found.text)
    # The rule finds a wrong number, sign or conclusion, and no foreign step, other answer or turned <.
    assert turned == "3 of 6"
    proved = [
        name for name, words in re.findall(r"<h4>(\S+)\n<span[^>]*>([^<]*)", found.text) if words == "as it must"
    ]
    assert proved[:3] == ["number-replaced", "sign-turned", "false-conclusion"]
    (empty,) = re.findall(r"Nothing to change in this solution: ([^<]*)\.", found.text)
    assert {"decimal-comma", "condition-dropped", "renamed-variable"} <= set(empty.split(", "))
    assert "2 other steps kept text and verdict." in found.text
    page = client.get(f"/browse?trace={trace.trace_id}")
    assert (
        f'<form class="choices" action="{STRESS}"><input type="hidden" name="trace" value="{trace.trace_id}">'
        in page.text
    )


def test_the_thresholds_of_a_solution_entered_by_hand_are_its_own(client):
    strict = token(evaluators=("mini-bidir",), thresholds=Thresholds(1.0, 0.15))
    assert "was called wrong before the change already." in client.get(f"{STRESS}?s={strict}").text


@pytest.mark.parametrize(
    ("query", "status", "words"),
    [
        ("evaluator=equations", 422, "names no trace"),
        (f"s={token()}&evaluator=gone", 404, "There is no evaluator"),
        (f"s={token(steps=(('…',),))}&evaluator=equations", 422, "no transform finds anything to change"),
    ],
)
def test_what_cannot_be_tested_is_refused(client, query, status, words):
    answer = client.get(f"{STRESS}?{query}")
    assert (answer.status_code, words in answer.json()["error"]) == (status, True)


def test_a_trace_that_is_too_long_for_the_page_is_refused(client, monkeypatch):
    monkeypatch.setattr(trace_stress, "MOST_TOKENS", 100)
    answer = client.get(f"{STRESS}?s={token()}&evaluator=mini-bidir")
    assert (answer.status_code, "more than this page does" in answer.json()["error"]) == (422, True)


def test_an_evaluator_behind_a_server_says_what_it_takes_before(tiny):
    server = VllmServer(Classifier(tiny, THREE_WAY), tiny, context=1024)
    with server.running() as url:
        offered = dict(stress_offers(Evaluators([tiny, server.address(url)], shipped=False)))
    assert offered == {"tiny": "tiny", "prm (vllm)": "prm (vllm) (at most 17 calls to a server)"}


def test_the_test_ends_when_the_page_is_left(store, evaluators, monkeypatch):
    path = f"{STRESS}?s={token()}&evaluator=tiny"
    check_end(build_app(store, evaluators), path, "offline_scores", monkeypatch)
