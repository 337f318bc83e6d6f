"""The context of an agent's trace."""

import json
from dataclasses import replace
from typing import Any

from stepsight.core.context import (
    ContextMessage,
    ToolCall,
    TraceContext,
    reading_mark,
    said_text,
    shortened,
    turn_text,
)
from stepsight.core.files.jsonl import format_trace, parse_trace
from stepsight.core.trace import Trace
from tests.cases import each
from tests.messages import refused

MESSAGES = [
    {"before": 1, "role": "system", "text": "Use tools."},
    {"before": 1, "role": "user", "text": "When was it?"},
    {"before": 1, "role": "thought", "text": "Let me see."},
    {"before": 2, "role": "tool", "text": "1838", "name": "search", "call": "c1"},
    {"before": 3, "role": "user", "text": "Thanks."},
]
CALLS = [{"step": 1, "name": "search", "arguments": '{"query": "city"}', "id": "c1"}]
ROW: dict[str, Any] = {
    "id": "a",
    "problem": "When was it?",
    "steps": ['I look.\nsearch({"query": "city"})', "In 1838."],
    "labels": ["pos", "neg"],
    "context": {"messages": MESSAGES, "calls": CALLS},
}


def trace(**changes: object) -> Trace:
    return parse_trace(ROW | changes, "f line 1")


def test_a_context_is_written_as_it_was_read_and_is_part_of_the_digest() -> None:
    assert json.loads(json.dumps(format_trace(trace()))) == ROW
    without = Trace.of(ROW["problem"], ROW["steps"], ROW["labels"], id="a")
    assert trace().digest != without.digest
    assert trace().text_digest == without.text_digest
    # That of traces without a context is as it was before there were any.
    assert without.digest == "87d4855248094e141d0444929600e9abb36337d0df81adf0b37ee0a10ab96591"
    assert "context" not in format_trace(without)


def test_a_field_of_that_name_that_is_no_context_belongs_to_the_source() -> None:
    assert trace(context="A paragraph.").meta == {"context": "A paragraph."}
    assert trace(context={"page": 3}).context is None


def test_an_evaluator_reads_messages_but_no_thoughts_and_the_problem_once() -> None:
    read = trace()
    assert read.read_before(0) == "[system]\nUse tools."
    assert read.read_before(1) == "[tool search]\n1838"
    divided = trace(steps=[["I look.", "Now."], "In 1838."])
    assert [divided.read_before(i) for i in range(3)] == ["[system]\nUse tools.", "", "[tool search]\n1838"]
    assert divided.substep_context is not None
    assert [one.before for one in divided.substep_context.messages] == [0, 0, 0, 2, 3]


def test_a_long_result_keeps_its_beginning_and_its_end() -> None:
    assert shortened("x" * 2000) == "x" * 2000
    long = "a" * 1500 + "b" * 4_998_000 + "c" * 500
    short = "a" * 1500 + "\n[… 4,998,000 characters left out …]\n" + "c" * 500
    assert shortened(long) == short
    assert shortened(short) == short


def test_what_is_read_of_a_context_is_read_in_the_same_way() -> None:
    long = trace(
        context={"messages": [*MESSAGES, {"before": 2, "role": "tool", "text": "x" * 9000}], "calls": CALLS}
    )
    assert long.context is not None
    read = replace(long, context=long.context.as_read(long.problem))
    assert read.context is not None
    assert [one.role for one in read.context.messages] == ["system", "tool", "user", "tool"]
    assert max(len(one.text) for one in read.context.messages) < 2100
    assert [read.read_before(i) for i in range(2)] == [long.read_before(i) for i in range(2)]


def test_calls_are_lines_of_their_step_that_can_be_taken_off_again() -> None:
    calls = [ToolCall(0, "search", '{"q": 1}'), ToolCall(0, "open", "{broken")]
    text = turn_text("I look.", calls)
    assert text == 'I look.\nsearch({"q": 1})\nopen({broken)'
    assert said_text(text, calls) == "I look."
    assert said_text(turn_text("", calls), calls) == ""
    # White space stays as it came, whether anything else is said or not.
    assert [said_text(turn_text(said, calls), calls) for said in ("Hm. \n", "\n")] == ["Hm. \n", "\n"]
    assert [turn_text(said, []) for said in (" Hm.\n", " ")] == [" Hm.\n", " (an empty turn)"]
    assert [call.is_broken for call in calls] == [False, True]
    assert [call.code for call in calls] == ['{\n  "q": 1\n}', "{broken"]


def test_without_a_step_its_result_stands_before_the_next() -> None:
    context = TraceContext(
        (ContextMessage(1, "tool", "a"), ContextMessage(2, "user", "b")),
        (ToolCall(0, "f", ""), ToolCall(1, "g", "")),
    )
    left = context.without(0)
    assert [(one.before, one.text) for one in left.messages] == [(0, "a"), (1, "b")]
    assert [(one.step, one.name) for one in left.calls] == [(0, "g")]


@each(
    "context",
    [
        {"messages": ["x"]},
        {"messages": [{"before": 0, "role": "user", "text": "x"}]},
        {"messages": [{"before": 1, "role": "user", "text": None}]},
        {"messages": [{"before": 1, "role": "user", "text": "x", "label": "pos"}]},
        {"messages": [{"before": 4, "role": "user", "text": "x"}]},
        {"messages": [{"before": 1, "role": "tool", "text": "a\x00b"}]},
        {"messages": [{"before": 1, "role": "\ud800", "text": "x"}]},
        {"calls": [{"step": 3, "name": "f", "arguments": ""}]},
        {"calls": [{"step": 1, "name": "f", "arguments": "\x00"}]},
        {"messages": [], "turns": []},
    ],
)
def test_a_bad_context_is_refused(context: object) -> None:
    with refused():
        trace(context=context)


def test_the_rule_by_which_a_context_is_read_is_in_the_digest_kept_with_a_judgment() -> None:
    # Whoever changes the rule makes the judgments of traces with a context stale, and writes the new mark here.
    assert reading_mark() == "e2ca8f"
    assert trace().read_digest == reading_mark() + trace().digest[6:]
    without = Trace.of(ROW["problem"], ROW["steps"])
    assert without.read_digest == without.digest
