"""The demo's events, and its endpoint as a program calls it."""

import json

import gradio as gr
import pytest
from fastapi import FastAPI
from gradio_client import Client
from gradio_client.exceptions import AppError

from stepsight import demo
from stepsight.app.demo.interface import LAUNCHED
from stepsight.core.scores import Thresholds
from stepsight.core.trace import Trace
from tests.app.elements import read
from tests.app.held_up import hold_up, served

PROBLEM, STEPS = "What is 2 + 3?", ["2 + 3 = 5.", "So 5."]


@pytest.fixture(scope="module")
def client(evaluators):
    application = FastAPI()
    gr.mount_gradio_app(application, demo(evaluators, thresholds=Thresholds(0.25, 0.75)), path="/", **LAUNCHED)
    with served(application) as (host, port):
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
