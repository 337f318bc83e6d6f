"""Chats as traces."""

from typing import Any

from stepsight.storage.importers.chat import KIND, SHAREGPT
from tests.cases import each
from tests.messages import refused

ASKED = {"role": "user", "content": "What is 2 + 3 + 4?"}


def answer(content: object) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def test_the_last_answer_is_the_solution_and_the_question_before_it_the_problem() -> None:
    before = [{"role": "system", "content": "Reason."}, {"role": "user", "content": "Hello"}, answer("Hello.")]
    row = {"id": 7, "messages": [*before, ASKED, answer("Step 1: 2 + 3 = 5.\nStep 2: 5 + 4 = 9.")], "source": "x"}
    trace = KIND.parse(row, "f line 1")
    assert (trace.id, trace.problem) == ("7", "What is 2 + 3 + 4?")
    assert [step.text for step in trace.steps] == ["2 + 3 = 5.", "5 + 4 = 9."]
    assert trace.meta == {"source": "x", "messages": before}


def test_a_content_may_come_in_parts_with_tokens_after_steps() -> None:
    parts = [{"type": "text", "text": "2 + 3 = 5.<extra_0>"}, {"type": "text", "text": "5 + 4 = 9.<extra_0>"}]
    trace = KIND.parse({"messages": [ASKED, answer(parts)]}, "f line 1")
    assert [step.text for step in trace.steps] == ["2 + 3 = 5.", "5 + 4 = 9."]


def test_a_chat_under_the_names_of_sharegpt_is_read() -> None:
    before, asked = {"from": "system", "value": "Reason."}, {"from": "human", "value": "What is 2 + 3 + 4?"}
    solved = {"from": "gpt", "value": "Step 1: 2 + 3 = 5.\nStep 2: 5 + 4 = 9."}
    trace = SHAREGPT.parse({"id": "a", "conversations": [before, asked, solved]}, "f line 1")
    assert (trace.problem, [step.text for step in trace.steps]) == (asked["value"], ["2 + 3 = 5.", "5 + 4 = 9."])
    assert trace.meta == {"conversations": [before]}
    with refused():
        SHAREGPT.parse({"conversations": [solved]}, "f line 1")


@each(
    "messages",
    [
        "Hello",
        [3],
        [answer("9")],
        [ASKED],
        [ASKED, answer(3)],
        [ASKED, answer([{"image": "x"}])],
        [ASKED, answer("+")],
    ],
)
def test_a_chat_without_a_solution_is_refused(messages: object) -> None:
    with refused():
        KIND.parse({"messages": messages}, "f line 1")
