"""The tools for programs with a language model, on a store and with small evaluators."""

import pytest

from stepsight.app.api.models import Context
from stepsight.app.mcp.tools import build_tools
from stepsight.core.files.jsonl import parse_trace
from tests.storage.samples import add


@pytest.fixture
def call(sqlite_store, evaluators):
    add(sqlite_store)
    tools = {tool.name: tool for tool in build_tools(Context(sqlite_store, evaluators, True, 60.0))}

    def called(name, **arguments):
        answer = tools[name].answer(arguments)
        return answer["content"][0]["text"] if answer["isError"] else answer["structuredContent"]

    return called


def test_steps_are_scored_as_by_the_evaluator(call, evaluators):
    found = call("score_steps", problem="What is 2 + 3?", steps=["2 + 3 = 6.", "So 6."], mode="hindsight")
    assert (found["evaluator"], found["mode"]) == (evaluators.default, "hindsight")
    assert [len(row) for row in found["hindsight"]] == [1, 2]
    assert [step["step"] for step in found["offline"]["steps"]] == [1, 2]


def test_the_messages_between_the_steps_of_an_agent_are_read(call, evaluators):
    asked = {"problem": "What is 2 + 3?", "steps": ["add(2, 3)", "So 6."]}
    context = {"messages": [{"before": 2, "role": "tool", "text": "5"}]}
    found = call("score_steps", **asked, context=context)
    trace = parse_trace({"id": "a", **asked, "context": context}, "")
    expected = evaluators.scorer(evaluators.default).score_one(trace, "offline").offline
    assert [one["pos"] for one in found["offline"]["steps"]] == pytest.approx(expected.pos.tolist(), abs=2e-5)
    assert found != call("score_steps", **asked)
    context["messages"][0]["before"] = 4
    assert call("score_steps", **asked, context=context).startswith("the trace has 2 steps, and its context")


def test_equations_are_worked_out(call):
    found = call("check_equations", problem="What is 2 + 3?", steps=["2 + 3 = 6.", ["1 + 1 = 2", "4 / 2 = 3"]])
    assert (found["checked"], found["failing"]) == (3, 2)
    assert [(one["step"], one["substep"], one["text"], one["right"]) for one in found["equations"]] == [
        (1, 1, "2 + 3 = 6", "5"), (2, 1, "1 + 1 = 2", ""), (2, 2, "4 / 2 = 3", "2"),
    ]  # fmt: skip
    assert found["equations"][0]["finding"] == "2 + 3 is 5, not 6"


def test_traces_are_found_with_their_steps_and_gold(call):
    found = call("find_traces", dataset="sums", gold="error", limit=1)
    assert (found["total"], len(found["traces"])) == (2, 1)
    trace = found["traces"][0]
    assert (trace["id"], trace["first_error"]) == ("error", 2)
    assert [step["label"] for step in trace["solution"]].index("neg") == 1


def test_a_call_with_10000_steps_gets_one_sentence(call):
    told = call("score_steps", problem="?", steps=["a"] * 10_000)
    assert told.endswith("expected a list of 1000 at most.")
    assert len(told) < 100
    assert call("check_equations", problem="?", steps=["a"] * 10_000) == told


def test_an_unknown_dataset_evaluator_or_empty_problem_is_told(call):
    assert call("find_traces", dataset="none").startswith("There is no dataset 'none'.")
    assert call("score_steps", problem="?", steps=["a"], evaluator="none").startswith("There is no evaluator")
    assert call("score_steps", problem="", steps=["a"]) == "the problem is empty. Give it a text."
