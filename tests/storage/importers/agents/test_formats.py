"""Logs of agents in the forms in which tools publish them; every one tells the same short story."""

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.importers import KINDS, read_traces
from stepsight.storage.importers.agents.unread import UnreadParts
from stepsight.storage.importers.recognition import recognise
from tests.cases import each
from tests.messages import refused

QUESTION, QUERY = "When was the city founded?", {"query": "city"}
ATIF = {
    "schema_version": "ATIF-v1.4", "session_id": "025B810F", "notes": "a test",
    "agent": {"name": "harbor-agent", "version": "1.0.0", "model_name": "gemini-2.5-flash"},
    "steps": [
        {"step_id": 1, "timestamp": "2025-10-11T10:30:00Z", "source": "user", "message": QUESTION},
        {"step_id": 2, "source": "agent", "message": "I search.", "reasoning_content": "Two steps.",
         "tool_calls": [{"tool_call_id": "c1", "function_name": "search", "arguments": QUERY}],
         "observation": {"results": [{"source_call_id": "c1", "content": "1838"}]},
         "metrics": {"prompt_tokens": 520}},
        {"step_id": 3, "source": "agent", "message": "In 1838."},
    ],
    "final_metrics": {"total_steps": 3},
}  # fmt: skip
THREAD = [
    {"role": "user", "parts": [{"type": "text", "content": QUESTION}]},
    {"role": "assistant", "finish_reason": "tool_call", "parts": [
        {"type": "reasoning", "content": "Two steps."}, {"type": "text", "content": "I search."},
        {"type": "tool_call", "id": "c1", "name": "search", "arguments": QUERY}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "1838"}]},
    {"role": "assistant", "finish_reason": "stop", "parts": [{"type": "text", "content": "In 1838."}]},
]  # fmt: skip
SAMPLE = {
    "id": 7, "epoch": 1, "input": QUESTION, "target": "1838",
    "messages": [
        {"role": "user", "content": QUESTION, "source": "input"},
        {"role": "assistant", "model": "m", "source": "generate",
         "content": [{"type": "reasoning", "reasoning": "Two steps."}, {"type": "text", "text": "I search."}],
         "tool_calls": [{"id": "c1", "function": "search", "arguments": QUERY, "type": "function"}]},
        {"role": "tool", "content": "attachment://0f3a", "tool_call_id": "c1", "function": "search"},
        {"role": "assistant", "content": "In 1838."},
    ],
    "scores": {"match": {"value": "C", "answer": "1838"}}, "metadata": {"level": 2},
    "attachments": {"0f3a": "1838"}, "events": [{"event": "model"}],
}  # fmt: skip
HEADER = {"version": 2, "status": "success", "eval": {"task": "cities", "model": "openai/gpt-5"}}


def any_value(value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {"arrayValue": {"values": [any_value(one) for one in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": key, "value": any_value(one)} for key, one in value.items()]}}
    return {"stringValue": value}


def span(id: str, start: int, trace: str = "5b8e", **attributes: Any) -> dict[str, Any]:
    values = [
        {"key": f"gen_ai.{key.replace('__', '.')}", "value": any_value(one)} for key, one in attributes.items()
    ]
    return {"traceId": trace, "spanId": id, "startTimeUnixNano": str(start), "attributes": values}


def otlp(*spans: dict[str, Any]) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}).encode() + b"\n"


def conversation(count: int, id: str, *, as_text: bool = True) -> dict[str, Any]:
    sent, made = [{**one} for one in THREAD[:count]], [THREAD[count]]
    for one in sent:
        one.pop("finish_reason", None)
    write = json.dumps if as_text else (lambda value: value)
    kept = {"request__model": "gpt-5", "input__messages": write(sent), "output__messages": write(made)}
    return span(id, 100 + count, operation__name="chat", **kept)


def archive(*names: str, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as out:
        out.writestr("_journal/start.json", json.dumps(HEADER))
        for name in names:
            out.writestr(name, json.dumps(SAMPLE))
        out.writestr("header.json", json.dumps(HEADER))
    return file.getvalue()


def zstandard(content: bytes) -> bytes:
    """The same archive with its files compressed as Inspect does it, which Python cannot yet."""
    made, old = io.BytesIO(), zipfile.ZipFile(io.BytesIO(content))
    with zipfile.ZipFile(made, "w") as out:
        for info in old.infolist():
            out.writestr(info.filename, pa.Codec("zstd").compress(old.read(info), asbytes=True))
    data = bytearray(made.getvalue())
    # Its method stands in the header of each file, and again in the directory; the size is not looked at.
    for info in zipfile.ZipFile(io.BytesIO(bytes(data))).infolist():
        data[info.header_offset + 8 : info.header_offset + 10] = (93).to_bytes(2, "little")
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        data[at + 10 : at + 12] = (93).to_bytes(2, "little")
        at = data.find(b"PK\x01\x02", at + 4)
    return bytes(data)


def read(name: str, content: bytes) -> list[Trace]:
    lines = content.splitlines(keepends=True) if not content.startswith(b"PK") else [*content.split(b"\n")]
    lines = [line + b"\n" for line in lines[:-1]] + [lines[-1]] if content.startswith(b"PK") else lines
    kind = recognise(content, iter(lines), name).kind
    return [trace for _, trace in read_traces(KINDS[kind], iter(lines), name)]


def event(name: str, **attributes: Any) -> dict[str, Any]:
    values = [{"key": key, "value": any_value(one)} for key, one in attributes.items()]
    return {"timeUnixNano": "1", "name": f"gen_ai.{name}", "attributes": values}


def with_events(*events: dict[str, Any]) -> bytes:
    return otlp(span("a", 1, operation__name="chat") | {"events": list(events)})


# As the conventions had them until version 1.36.
CALLS = json.dumps(
    [{"id": "c1", "type": "function", "function": {"name": "search", "arguments": json.dumps(QUERY)}}]
)
EVENTS = with_events(
    event("user.message", content=QUESTION),
    event("assistant.message", content="I search.", reasoning_content="Two steps.", tool_calls=CALLS),
    event("tool.message", content="1838", id="c1"),
    event("choice", index="0", finish_reason="stop", message=json.dumps({"content": "In 1838."})),
)
PROMPT = [
    {"role": "user", "content": QUESTION},
    {"role": "assistant", "content": "I search.", "reasoning": "Two steps.", "tool_calls": json.loads(CALLS)},
    {"role": "tool", "tool_call_id": "c1", "content": "1838"},
]
CONTENTS = with_events(
    event("content.prompt", **{"gen_ai.prompt": json.dumps(PROMPT)}),
    event(
        "content.completion", **{"gen_ai.completion": json.dumps([{"role": "assistant", "content": "In 1838."}])}
    ),
)
DETAILS = with_events(
    event("client.inference.operation.details",
          **{"gen_ai.input.messages": THREAD[:3], "gen_ai.output.messages": THREAD[3:]})
)  # fmt: skip


def spans(*, as_text: bool) -> bytes:
    return otlp(conversation(1, "a", as_text=as_text)) + otlp(conversation(3, "b", as_text=as_text), span("c", 1))


@each(
    "name, content, id",
    [
        ("run.json", json.dumps(ATIF, indent=2).encode(), "025B810F"),
        ("spans.jsonl", spans(as_text=True), "5b8e"),
        ("spans.jsonl", spans(as_text=False), "5b8e"),
        ("spans.jsonl", EVENTS, "5b8e"),
        ("spans.jsonl", CONTENTS, "5b8e"),
        ("spans.jsonl", DETAILS, "5b8e"),
        ("log.json", json.dumps({**HEADER, "samples": [SAMPLE]}).encode(), "7"),
        ("log.eval", archive("samples/7_epoch_1.json"), "7"),
        ("log.eval", zstandard(archive("samples/7_epoch_1.json")), "7"),
    ],
)
def test_the_story_is_the_same_in_every_form(name: str, content: bytes, id: str) -> None:
    (trace,) = read(name, content)
    assert (trace.id, trace.problem) == (id, QUESTION)
    assert trace.substeps == ('I search.\nsearch({"query": "city"})', "In 1838.")
    assert trace.context is not None
    assert [(one.before, one.heading, one.text, one.call) for one in trace.context.messages] == [
        (0, "user", QUESTION, None),
        (0, "thought", "Two steps.", None),
        (1, "tool search", "1838", "c1"),
    ]
    assert [(one.step, one.id, one.name, json.loads(one.arguments)) for one in trace.context.calls] == [
        (0, "c1", "search", QUERY)
    ]


def test_what_stands_beside_the_messages_is_metadata() -> None:
    (atif,) = read("run.json", json.dumps(ATIF).encode())
    assert atif.meta["final_metrics"] == {"total_steps": 3}
    assert atif.meta["agent"]["name"] == "harbor-agent"
    (sample,) = read("log.json", json.dumps({**HEADER, "samples": [SAMPLE]}).encode())
    assert sample.meta == {
        "task": "cities", "model": "openai/gpt-5", "target": "1838", "metadata": {"level": 2},
        "scores": {"match": {"value": "C", "answer": "1838"}},
    }  # fmt: skip
    (spans_,) = read("spans.jsonl", spans(as_text=True))
    assert spans_.meta == {"gen_ai.request.model": "gpt-5"}


IMAGE = {"type": "image", "image": "data:image/png;base64,iVBO"}
ODD = [
    {"role": "user", "content": [{"type": "text", "text": QUESTION}, IMAGE, IMAGE]},
    {"role": "critic", "content": "Not so."},
    {"role": "assistant", "content": [{"type": "hologram", "beam": 3}], "audio": {"id": "a1"},
     "tool_calls": [{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": [IMAGE]},
]  # fmt: skip
ODD_SPAN = [{"role": one["role"], "parts": one["content"]} for one in ODD[:1]] + [
    {"role": "critic", "parts": [{"type": "text", "content": "Not so."}]},
    {"role": "assistant", "parts": ODD[2]["content"], "audio": {"id": "a1"}},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": [IMAGE]}]},
]
ODD_STEPS = [
    {"source": "user", "message": ODD[0]["content"]}, {"source": "critic", "message": "Not so."},
    {"source": "agent", "message": ODD[2]["content"], "audio": {"id": "a1"},
     "observation": {"results": [{"content": [IMAGE]}]}},
]  # fmt: skip
BENCHMARK = {"query_index": 0, "sample_index": 0, "question": QUESTION, "data_source": "x", "step_labels": {"2": 1}}


@each(
    "name, content",
    [
        ("chat.jsonl", json.dumps({"id": "a", "messages": ODD}).encode()),
        ("run.json", json.dumps(ATIF | {"steps": ODD_STEPS}).encode()),
        ("log.json", json.dumps({**HEADER, "samples": [SAMPLE | {"messages": ODD}]}).encode()),
        ("spans.jsonl", otlp(span("a", 1, input__messages=json.dumps(ODD_SPAN)))),
        ("hotpotqa.jsonl", json.dumps(BENCHMARK | {"messages": ODD}).encode()),
    ],
)
def test_what_is_no_text_is_named_with_its_number(name: str, content: bytes) -> None:
    (trace,), unread = read(name, content), UnreadParts()
    unread.add(trace)
    assert unread.notes == (
        "Kept as a line with their kind, type and size: image (3).",
        "Of a kind that is not known, and kept as JSON: hologram (1).",
        "Messages of roles that are not known, kept under their own name: critic (1).",
        "Fields of messages that are not kept: audio (1).",
    )
    assert trace.context is not None
    assert [one.text.count("[image: image/png") for one in trace.context.messages] == [2, 0, 1]


def test_spans_without_messages_are_counted() -> None:
    (trace,), unread = (
        read("spans.jsonl", spans(as_text=True) + otlp(span("d", 2, operation__name="embeddings"))),
        UnreadParts(),
    )
    unread.add(trace)
    assert unread.notes == ("Spans without messages, passed over: embeddings (1), no operation of a model (1).",)


def test_two_conversations_of_a_trace_are_two_and_a_last_result_comes_from_its_own_span() -> None:
    other = [{"role": "user", "parts": [{"type": "text", "content": "Another?"}]}]
    alone = span("z", 50, input__messages=json.dumps(other), output__messages=json.dumps([THREAD[3]]))
    tool = span("t", 60, tool__name="search", tool__call__id="c1", tool__call__result='"1838"')
    first, second = read("spans.jsonl", otlp(alone, conversation(1, "a"), tool))
    assert (first.id, second.id, first.problem) == ("5b8e/z", "5b8e/a", "Another?")
    assert second.context is not None
    assert second.context.messages[-1].text == "1838"


def test_other_epochs_and_delegated_work_are_told_apart() -> None:
    again = {**SAMPLE, "epoch": 2}
    log = json.dumps({**HEADER, "samples": [SAMPLE, again]}).encode()
    assert [trace.id for trace in read("log.json", log)] == ["7", "7/2"]
    steps = json.loads(json.dumps(ATIF["steps"]))
    steps[1]["observation"]["results"] = [{f"{'sub'}agent_trajectory_ref": [{"session_id": "s2"}]}]
    (trace,) = read("run.json", json.dumps(ATIF | {"steps": steps}).encode())
    assert trace.context is not None
    assert trace.context.messages[-1].text.endswith('agent_trajectory_ref] {"session_id": "s2"}')


@each(
    "name, content",
    [
        ("run.json", json.dumps(ATIF | {"steps": [{"message": "x"}]}).encode()),
        ("spans.jsonl", otlp(span("a", 1))),
        ("spans.jsonl", json.dumps({"resourceSpans": 3}).encode()),
        ("log.eval", archive()),
        ("log.eval", archive("samples/7_epoch_1.json")[:-40]),
        ("log.json", json.dumps({**HEADER, "samples": [3]}).encode()),
        ("other.zip", archive("samples/7_epoch_1.json").replace(b"_journal/start.json", b"document/about.json")),
    ],
)
def test_what_is_no_such_log_is_refused(name: str, content: bytes) -> None:
    with refused():
        read(name, content)


def test_a_file_in_an_archive_is_read_within_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepsight.storage.importers.agents.inspect_logs.LARGEST", 100)
    with pytest.raises(UserError, match="unpacks to over"):
        read("log.eval", archive("samples/7_epoch_1.json"))
