"""The demo: its events, its endpoint as a program calls it, and how a server starts and ends it."""

import json
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import gradio as gr
import pytest
from anyio import to_thread
from fastapi import FastAPI, Response
from fastapi.testclient import TestClient
from gradio_client import Client
from gradio_client.exceptions import AppError

from stepsight import demo
from stepsight.app.demo import mount
from stepsight.app.demo.interface import LAUNCHED, step_scores_html, style
from stepsight.app.demo.mount import PATH, DemoOnRequest
from stepsight.app.server import build_app
from stepsight.app.web.step_bars import TraceJudgments
from stepsight.core.judgment import Mode
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from tests.app.client import HERE
from tests.app.elements import INJECTION, read
from tests.app.held_up import hold_up
from tests.app.held_up import served as served_application
from tests.app.processes import until
from tests.serving import served

PROBLEM, STEPS = "What is 2 + 3?", ["2 + 3 = 5.", "So 5."]


@pytest.fixture(scope="module")
def client(evaluators):
    application = FastAPI()
    gr.mount_gradio_app(application, demo(evaluators, thresholds=Thresholds(0.25, 0.75)), path="/", **LAUNCHED)
    with served_application(application) as (host, port):
        yield Client(f"http://{host}:{port}", verbose=False, httpx_kwargs={"timeout": 600})


def event(interface, name):
    (function,) = [one.fn for one in interface.fns.values() if one.api_name == name]
    return function


def test_a_client_scores_a_text_or_steps_with_each_evaluator(client, evaluators):
    row = client.predict(PROBLEM, "1. 2 + 3 = 5.\n2. So 5.", api_name="/score")
    assert (row["problem"], row["steps"]) == (PROBLEM, STEPS)
    (record,) = row["judgments"]
    expected = evaluators.judge("tiny", Trace.of(PROBLEM, STEPS))
    assert [step["validity"] for step in record["online"]["steps"]] == pytest.approx(
        expected.online.validity, abs=1e-5
    )
    assert (record["evaluator"], record["thresholds"]) == ("tiny", {"validity": 0.25, "redundancy": 0.75})
    wrong = client.predict(PROBLEM, ["2 + 3 = 6."], api_name="/score")["judgments"]
    assert wrong[0]["conclusion"].startswith("Step 1 is wrong: 2 + 3 is 5, not 6. tiny ")
    names = ["tiny-causal", "tiny"]
    several = client.predict(PROBLEM, [STEPS[0], ["So", "5."]], names, 0.5, 0.5, api_name="/score")
    assert [one["evaluator"] for one in several["judgments"]] == names
    assert several["steps"] == [STEPS[0], ["So", "5."]]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"problem": 3}, "problem is 3, expected text."),
        ({"problem": " "}, "The problem is empty. Enter the problem, then score again."),
        ({"solution": {"steps": []}}, "solution is {'steps': []}, expected text or a list."),
        ({"solution": []}, "There are no steps. Paste a solution, then score again."),
        ({"evaluators": ["gone"]}, "There is no evaluator 'gone'. Choose one of: tiny, tiny-causal."),
        ({"evaluators": []}, "No evaluator is chosen. Choose one or more, then score again."),
        ({"validity": 7}, "validity is 7, expected 1 or less."),
        ({"solution": "a " * 1000}, "tokens"),
    ],
)
def test_a_client_that_sends_nonsense_gets_one_clear_answer(client, values, message):
    with pytest.raises(AppError) as caught:
        client.predict(**({"problem": PROBLEM, "solution": STEPS} | values), api_name="/score")
    assert message in str(caught.value)


def test_a_solution_that_is_scored_gives_the_value_of_the_component_and_its_record(evaluators):
    interface = demo(evaluators)
    values = (PROBLEM, "\n".join(STEPS), ["tiny"], 0.5, 0.15)
    *_, (shown, _) = event(interface, "judged")(None, gr.Progress(), *values)
    assert len(read(shown).all(cls="bar")) == 4
    row = json.loads(event(interface, "record")(None, *values))
    assert row == event(interface, "score")(None, PROBLEM, STEPS, ["tiny"], 0.5, 0.15)


def test_a_slider_scores_nothing_before_there_is_something_to_score(evaluators):
    ((nothing, _),) = event(demo(evaluators), "judged_again")(None, gr.Progress(), "", "", ["tiny"], 0.4, 0.15)
    assert nothing == gr.skip()


def test_scoring_ends_when_it_is_cancelled(tiny):
    evaluators, scorer = hold_up(tiny)
    running = event(demo(evaluators), "judged")(None, gr.Progress(), PROBLEM, "\n".join(STEPS), ["tiny"], 0.5, 0.15)
    assert next(running) == (gr.skip(), gr.skip())
    assert scorer.at_work.wait(30)
    running.close()
    assert scorer.ended.wait(120)


TRACE = Trace.of(f"What is $2 + 3$? {INJECTION}", ["2 + 3 = 6.", ["So", "6."]])


@pytest.fixture
def judgment(evaluators):
    return evaluators.judge("tiny", TRACE)


def shown(**judgments):
    columns = [
        TraceJudgments(name, Outputs.THREE_WAY, Thresholds(0.9, 0.1), modes, stored=True)
        for name, modes in judgments.items()
    ]
    return read(str(step_scores_html(columns)))


def test_a_judgment_is_shown_with_a_bar_for_each_step_and_mode_and_its_triangle(judgment):
    page = shown(tiny=dict.fromkeys(Mode, judgment))
    assert len(page.all(cls="bar")) == 6
    assert [cell.text for cell in page.one(cls="triangle").all("td", cls="online")] == [
        f"{value:.2f}" for value in judgment.online.validity
    ]
    assert "<img src=x onerror=alert(1)>" in page.one("div", cls="q").text


def test_several_judgments_stand_beside_each_other_under_their_names(judgment):
    offline = replace(judgment, mode=Mode.OFFLINE, result=judgment.offline)
    page = shown(one=dict.fromkeys(Mode, judgment), two={Mode.OFFLINE: offline})
    assert [one.all("strong")[0].text for one in page.one("ul", cls="answers").all("li")] == ["one", "two"]
    assert len(page.all(cls="bar")) == 9
    assert [one.text for one in page.all(cls="name")] == ["Hindsight, one"]


def test_the_style_sheet_is_no_template_and_lays_out_by_the_width_of_the_component():
    sheet = style()
    assert not re.search(r"`|\$\{|\{\{|@media \(m|\\", sheet.replace("\\\\", ""))
    assert "#ff8a5b" in sheet.partition(".dark & .step-scores")[2]


BODY = {"data": ["What is 2 + 3?", ["2 + 3 = 5."], ["tiny"], 0.5, 0.15]}


@pytest.fixture
def store(tmp_path):
    with open_store(str(tmp_path / "store.db")) as store:
        yield store


@pytest.fixture
def application(store, evaluators):
    return build_app(store, evaluators)


def demo_of(application):
    return next(route.app for route in application.routes if isinstance(getattr(route, "app", None), DemoOnRequest))


def test_the_demo_starts_on_request_and_ends_when_nobody_asks_any_more(application, monkeypatch):
    monkeypatch.setattr(mount, "_IDLE", 0.0)
    with TestClient(application, base_url="http://127.0.0.1", client=HERE) as client:
        client.get("/healthz")
        assert not demo_of(application).is_running
        for _ in range(2):
            assert "<gradio-app" in client.get(PATH).text
            until(lambda: not demo_of(application).is_running)


def test_a_program_scores_with_the_evaluators_of_the_server(store, evaluators):
    with served(store, evaluators) as address:
        client = Client(f"{address}{PATH}", verbose=False, httpx_kwargs={"timeout": 600})
        (record,) = client.predict(*BODY["data"], api_name="/score")["judgments"]
    assert record["fingerprint"] == evaluators.about("tiny").fingerprint


def test_every_script_of_gradios_page_has_the_nonce_of_its_policy(application):
    with TestClient(application, base_url="http://127.0.0.1", client=HERE) as client:
        for _ in range(2):
            page = client.get(PATH)
            policy = page.headers["content-security-policy"]
            (nonce,) = re.findall("'nonce-([^']+)' 'unsafe-eval'", policy)
            scripts = re.findall(r"<script\b[^>]*>", page.text)
            assert len(scripts) > 3
            assert all(f'<script nonce="{nonce}"' in script for script in scripts)
        assert "'unsafe-eval'" not in client.get("/").headers["content-security-policy"]


def test_an_unknown_event_or_page_ends_in_an_answer(application):
    with TestClient(application, base_url="http://127.0.0.1", client=HERE) as client:
        assert "<gradio-app" in client.get(f"{PATH}/", params={"page": "nowhere"}).text
        assert "404" in client.get(f"{PATH}/gradio_api/call/score/1").text


def test_a_client_has_a_few_event_streams_at_once(application, monkeypatch):
    held = threading.Barrier(9)

    async def stream(application, scope, receive, send):
        if "queue/data" in scope["path"]:
            await to_thread.run_sync(held.wait, 60)
        await Response("ended")(scope, receive, send)

    monkeypatch.setattr(mount, "_answer", stream)
    path = f"{PATH}/gradio_api/queue/data"
    with (
        TestClient(application, base_url="http://127.0.0.1", client=HERE) as client,
        ThreadPoolExecutor(8) as threads,
    ):
        streams = [threads.submit(client.get, path) for _ in range(8)]
        until(lambda: held.n_waiting == 8)
        assert client.get(path).status_code == 429
        assert client.get(f"{PATH}/config").status_code == 200
        held.wait(60)
        assert [stream.result().status_code for stream in streams] == [200] * 8


FILE = {"path": "/etc/hostname", "meta": {"_type": "gradio.FileData"}}


@pytest.mark.parametrize("body", ["", "[]", '{"data": NaN}', json.dumps({"data": [FILE]})])
def test_a_body_that_gradio_should_not_see_is_refused(application, body):
    with TestClient(application, base_url="http://127.0.0.1", client=HERE) as client:
        answer = client.post(f"{PATH}/gradio_api/call/score", content=body)
        assert answer.status_code == 422
        assert answer.json()["error"].startswith("The body is not")
        assert not demo_of(application).is_running


@pytest.mark.slow
def test_gradios_folder_is_private_and_goes_with_the_process():
    source = """
import os
os.umask(0)
from stepsight.app.demo.interface import prepare_gradio
prepare_gradio()
folder = os.environ["GRADIO_TEMP_DIR"]
print(folder, oct(os.stat(folder).st_mode))
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    folder, mode = done.stdout.split()
    assert mode == "0o40700"
    assert not Path(folder).exists()
