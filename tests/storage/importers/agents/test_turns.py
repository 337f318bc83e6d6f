"""Messages of agents in every form."""

import json
from typing import Any

from stepsight.core.context import TraceContext
from stepsight.core.trace import Trace
from stepsight.storage.importers import find_kind
from stepsight.storage.importers.agents.chats import KIND, calls_tools
from stepsight.storage.importers.agents.unread import UnreadParts
from tests.cases import each
from tests.messages import refused

ASKED = {"role": "user", "content": "When was it founded?"}


def read(*messages: object, **fields: object) -> Trace:
    return KIND.parse({"id": "a", "messages": [ASKED, *messages], **fields}, "f line 1")


def context_of(trace: Trace) -> TraceContext:
    assert trace.context is not None
    return trace.context


def told(trace: Trace) -> list[tuple[int, str, str, str | None]]:
    """Place, heading, text and call of each message behind the question."""
    return [(one.before, one.heading, one.text, one.call) for one in context_of(trace).messages[1:]]


def test_openai_s_calls_and_results_are_read() -> None:
    calls = [
        {"id": "c1", "type": "function", "function": {"name": "search", "arguments": '{"q": "city"}'}},
        {"id": "c2", "type": "custom", "custom": {"name": "sh", "input": "ls"}},
    ]
    trace = read(
        {"role": "assistant", "content": None, "tool_calls": calls, "reasoning_content": "I need the city."},
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "1838"}]},
        {"role": "tool", "tool_call_id": "c2", "content": ""},
        {"role": "assistant", "content": "In 1838.", "refusal": None},
        tools=[{"type": "function"}],
    )
    assert trace.problem == "When was it founded?"
    assert trace.substeps == ('search({"q": "city"})\nsh(ls)', "In 1838.")
    assert told(trace) == [
        (0, "thought", "I need the city.", None),
        (1, "tool search", "1838", "c1"),
        (1, "tool sh", "", "c2"),
    ]
    assert [(one.step, one.id, one.name) for one in context_of(trace).calls] == [
        (0, "c1", "search"),
        (0, "c2", "sh"),
    ]
    assert trace.meta == {"tools": [{"type": "function"}]}


def test_claude_s_blocks_are_read_in_their_order() -> None:
    trace = read(
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Let me see.", "signature": "x"},
            {"type": "redacted_thinking", "data": "abc"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "t1", "name": "search", "input": {"q": "Zürich"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "no network"},
            {"type": "text", "text": "Go on."}]},
        {"role": "assistant", "content": "In 1838."},
        system="Be brief.",
    )  # fmt: skip
    assert trace.substeps == ('I look.\nsearch({"q": "Zürich"})', "In 1838.")
    assert [(one.role, one.text) for one in context_of(trace).messages[:2]] == [
        ("system", "Be brief."), ("user", "When was it founded?"),
    ]  # fmt: skip
    assert told(trace)[1:] == [
        (0, "thought", "Let me see.\n\n[redacted]", None),
        (1, "tool search", "[error] no network", "t1"),
        (1, "user", "Go on.", None),
    ]
    assert trace.meta == {}


def test_turns_in_a_row_and_empty_turns_are_steps() -> None:
    trace = read(
        {"role": "assistant", "content": "One."},
        {"role": "assistant", "content": "Two."},
        {"role": "assistant", "content": ""},
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
    )
    assert trace.substeps == ("One.", "Two.", "(an empty turn)", "f({})")


@each(
    "thinking",
    [
        {"content": "I look. ", "reasoning_content": "Where?\n\nAh."},
        {"content": "<think>Where?\n\nAh.</think>\n\nI look."},
        {
            "content": "<|channel|>analysis<|message|>Where?\n\nAh.<|end|>"
            "<|start|>assistant<|channel|>final<|message|>I look."
        },
        {"content": [{"type": "thinking", "thinking": "Where?\n\nAh."}, {"type": "text", "text": "I look."}]},
    ],
)
def test_thoughts_are_context_or_steps_before_their_turn(thinking: dict[str, Any]) -> None:
    call = {"id": "c1", "function": {"name": "f", "arguments": "{}"}}
    turn = {"role": "assistant", "tool_calls": [call], **thinking}
    row = {"id": "a", "messages": [ASKED, {"role": "assistant", "content": "Hm."}, turn, ASKED]}
    aside, judged = (find_kind("agent", choice).parse(row, "f line 1") for choice in ("aside", "judged"))
    assert aside == find_kind("agent").parse(row, "f line 1")
    assert [text.replace(" \n", "\n") for text in aside.substeps] == ["Hm.", "I look.\nf({})"]
    assert told(aside)[0] == (1, "thought", "Where?\n\nAh.", None)
    assert judged.substeps == ("Hm.", "Where?", "Ah.", aside.substeps[1])
    assert [(one.role, one.before) for one in context_of(judged).messages] == [("user", 0), ("user", 4)]
    assert [one.step for one in context_of(judged).calls] == [3]
    assert (aside.meta, judged.meta) == ({}, {"thought_steps": [2, 3]})


def test_a_thought_that_never_ends_is_judged_with_its_turn_and_named() -> None:
    trace = read({"role": "assistant", "content": "<think>Where?\n\nAh."})
    assert trace.substeps == ("<think>Where?\n\nAh.",)
    counted = UnreadParts()
    counted.add(trace)
    assert counted.notes == ("Thinking that never ends, judged with all of its turn: <think> (1).",)


def test_broken_arguments_and_a_result_without_a_call_are_kept_as_they_are() -> None:
    call = {"id": "c1", "function": {"name": "f", "arguments": '{"q": "un'}}
    trace = read(
        {"role": "tool", "tool_call_id": "gone", "content": "left over"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
    )
    assert told(trace) == [(0, "tool", "left over", "gone")]
    (made,) = context_of(trace).calls
    assert (made.arguments, made.is_broken) == ('{"q": "un', True)


def test_a_result_of_5_mb_is_kept_whole_and_read_short() -> None:
    trace = read(
        {"role": "assistant", "content": "I look."},
        {"role": "tool", "content": "x" * 5_000_000},
        {"role": "assistant", "content": "So it is."},
    )
    assert len(told(trace)[0][2]) == 5_000_000
    assert len(trace.read_before(1)) == len("[tool]\n") + 2000 + len("\n[… 4,998,000 characters left out …]\n")


PNG = "data:image/png;base64,iVBO"


@each(
    "line, part",
    [
        ("[image_url: https://a.example/b.png]", {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}),
        ("[image_url: image/png;base64, 4 characters]", {"type": "image_url", "image_url": {"url": PNG}}),
        ("[image: image/png, 6 characters]",
         {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw"}}),
        ("[image: image/png;base64, 4 characters]", {"type": "image", "image": PNG}),
        ("[blob: image/png, image, 6 characters]",
         {"type": "blob", "modality": "image", "mime_type": "image/png", "content": "iVBORw"}),
        ("[input_audio: wav, 4 characters]",
         {"type": "input_audio", "input_audio": {"data": "UklG", "format": "wav"}}),
        ('[hologram] {"type": "hologram", "beam": 3}', {"type": "hologram", "beam": 3}),
        ('[a part without a type] {"beam": 3}', {"beam": 3}),
    ],
)  # fmt: skip
def test_pictures_are_named_without_their_data_and_unknown_parts_kept(line: str, part: dict[str, Any]) -> None:
    trace = read({"role": "user", "content": ["See:", part]}, {"role": "assistant", "content": [part]})
    assert told(trace) == [(0, "user", f"See:\n{line}", None)]
    assert trace.substeps == (line,)


def test_an_unknown_role_keeps_its_name() -> None:
    trace = read({"role": "handoff", "content": {"to": "b"}}, {"role": "assistant", "content": "Yes."})
    assert told(trace) == [(0, "handoff", '[a part without a type] {"to": "b"}', None)]


def test_a_chat_is_of_an_agent_if_it_calls_a_tool() -> None:
    plain = {"messages": [ASKED, {"role": "assistant", "content": "In 1838."}]}
    assert not calls_tools(plain)
    assert calls_tools({"messages": [*plain["messages"], {"role": "tool", "content": "x"}]})
    assert calls_tools({"messages": [{"role": "user", "content": [{"type": "tool_result", "content": "x"}]}]})


@each(
    "messages",
    [
        [ASKED],
        [{"role": "assistant", "content": "In 1838."}],
        [ASKED, 3],
        [ASKED, {"content": "x"}],
        [ASKED, {"role": "assistant", "content": 3}],
        [ASKED, {"role": "assistant", "content": "x", "tool_calls": "search"}],
        [ASKED, {"role": "assistant", "content": "x", "tool_calls": [{"id": "c1"}]}],
        [ASKED, {"role": "assistant", "content": "x"}, {"role": "tool", "content": "a\x00b"}],
    ],
)
def test_what_is_no_agent_s_chat_is_refused(messages: object) -> None:
    with refused():
        KIND.parse({"messages": messages}, "f line 1")
    assert json.dumps(messages)
