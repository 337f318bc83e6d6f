"""Chats as traces."""

import json

from stepsight.storage.importers import find_kind, read_traces
from stepsight.storage.importers.chat import KIND, SHAREGPT
from tests.cases import each
from tests.messages import refused

ASKED = {"role": "user", "content": "What is 2 + 3 + 4?"}


def answer(content):
    return {"role": "assistant", "content": content}


def test_the_last_answer_is_the_solution_and_the_question_before_it_the_problem():
    before = [{"role": "system", "content": "Reason."}, {"role": "user", "content": "Hello"}, answer("Hello.")]
    row = {"id": 7, "messages": [*before, ASKED, answer("Step 1: 2 + 3 = 5.\nStep 2: 5 + 4 = 9.")], "source": "x"}
    trace = KIND.parse(row, "f line 1")
    assert (trace.id, trace.problem) == ("7", "What is 2 + 3 + 4?")
    assert [step.text for step in trace.steps] == ["2 + 3 = 5.", "5 + 4 = 9."]
    assert trace.meta == {"source": "x", "messages": before}


def test_a_chat_under_the_names_of_sharegpt_is_read():
    before, asked = {"from": "system", "value": "Reason."}, {"from": "human", "value": "What is 2 + 3 + 4?"}
    solved = {"from": "gpt", "value": "Step 1: 2 + 3 = 5.\nStep 2: 5 + 4 = 9."}
    trace = SHAREGPT.parse({"id": "a", "conversations": [before, asked, solved]}, "f line 1")
    assert (trace.problem, [step.text for step in trace.steps]) == (asked["value"], ["2 + 3 = 5.", "5 + 4 = 9."])
    assert trace.meta == {"conversations": [before]}


@each(
    "solved",
    [
        answer("<think>It is 8.\n\nNo, 9.</think>2 + 3 = 5.\n\nSo 9."),
        answer("2 + 3 = 5.\n\nSo 9.") | {"reasoning_content": "It is 8.\n\nNo, 9."},
        answer(
            [
                {"type": "thinking", "thinking": "It is 8.\n\nNo, 9."},
                {"type": "text", "text": "2 + 3 = 5.\n\nSo 9."},
            ]
        ),
    ],
)
def test_thoughts_are_set_aside_or_judged_wherever_they_stand(solved):
    row = {"id": "a", "messages": [ASKED, solved]}
    aside, judged = (find_kind("chat", choice).parse(row, "f line 1") for choice in ("aside", "judged"))
    assert aside == find_kind("chat").parse(row, "f line 1")
    assert aside.substeps == ("2 + 3 = 5.", "So 9.")
    assert aside.meta == {"thinking_set_aside": "It is 8.\n\nNo, 9."}
    assert judged.substeps == ("It is 8.", "No, 9.", "2 + 3 = 5.", "So 9.")
    assert judged.meta == {"thought_steps": 2}


def test_thinking_that_never_ends_is_judged_and_counted():
    endless = [answer("<think>It is 9."), answer("") | {"reasoning": "It is 9."}, answer("So <think> is 9.")]
    for name, key, role, content in (
        ("chat", "messages", "role", "content"),
        ("sharegpt", "conversations", "from", "value"),
    ):
        kind = find_kind(name)
        rows = [
            {
                key: [
                    {role: one["role"], content: one["content"]}
                    | {k: v for k, v in one.items() if k == "reasoning"}
                    for one in (ASKED, last)
                ]
            }
            for last in endless
        ]
        traces = [trace for _, trace in read_traces(kind, [json.dumps(row).encode() for row in rows], "f")]
        assert [trace.meta for trace in traces] == [{}, {"thought_steps": 1}, {}]
        (note,) = kind.notes()
        assert note.startswith("Thinking that never ends, in 2 rows: ")


def test_other_kinds_have_no_thoughts_to_choose_for():
    for name, choice in (("plain", "judged"), ("chat", "maybe")):
        with refused():
            find_kind(name, choice)


CALL = {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "city"}'}}
WITH_TOOLS = [
    {"role": "system", "content": "Use tools."},
    ASKED,
    {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "I need the city."},
    {"role": "tool", "tool_call_id": "c1", "name": "search", "content": "1838"},
    answer("<think>So that is it.</think>It is 9."),
]


def test_calls_of_tools_and_their_results_are_part_of_the_steps_of_a_solution():
    row = {"id": "a", "messages": WITH_TOOLS}
    aside, judged = (find_kind("chat", choice).parse(row, "f line 1") for choice in ("aside", "judged"))
    assert aside.problem == ASKED["content"]
    assert aside.substeps == ('search({"q": "city"})\n[tool search]\n1838', "It is 9.")
    assert aside.meta == {
        "messages": WITH_TOOLS[:1],
        "thinking_set_aside": "I need the city.\n\nSo that is it.",
    }
    assert judged.substeps == (f"I need the city.\n{aside.substeps[0]}", "So that is it.\nIt is 9.")
