"""Chats as traces, and logs of Inspect."""

import io
import json
import zipfile

import pyarrow as pa
import pytest

from stepsight.core.errors import UserError
from stepsight.storage.importers import KINDS, find_kind, read_traces
from stepsight.storage.importers.chat import KIND, SHAREGPT
from stepsight.storage.importers.recognition import recognise
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


QUESTION, QUERY = "When was the city founded?", {"query": "city"}
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


def archive(*names, method=zipfile.ZIP_DEFLATED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as out:
        out.writestr("_journal/start.json", json.dumps(HEADER))
        for name in names:
            out.writestr(name, json.dumps(SAMPLE))
        out.writestr("header.json", json.dumps(HEADER))
    return file.getvalue()


def zstandard(content):
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


def read(name, content):
    lines = content.splitlines(keepends=True) if not content.startswith(b"PK") else [*content.split(b"\n")]
    lines = [line + b"\n" for line in lines[:-1]] + [lines[-1]] if content.startswith(b"PK") else lines
    kind = recognise(content, iter(lines), name).kind
    return [trace for _, trace in read_traces(KINDS[kind], iter(lines), name)]


@each(
    "name, content",
    [
        ("log.json", json.dumps({**HEADER, "samples": [SAMPLE]}).encode()),
        ("log.eval", archive("samples/7_epoch_1.json")),
        ("log.eval", zstandard(archive("samples/7_epoch_1.json", method=zipfile.ZIP_STORED))),
    ],
)
def test_the_solution_is_the_same_in_every_form(name, content):
    (trace,) = read(name, content)
    assert (trace.id, trace.problem) == ("7", QUESTION)
    assert trace.substeps == ('I search.\nsearch({"query": "city"})\n[tool]\n1838', "In 1838.")
    assert trace.meta == {
        "task": "cities", "model": "openai/gpt-5", "target": "1838", "scores": SAMPLE["scores"],
        "metadata": {"level": 2}, "thinking_set_aside": "Two steps.",
    }  # fmt: skip


@each(
    "name, content",
    [
        ("log.eval", archive()),
        ("log.eval", archive("samples/7_epoch_1.json")[:-40]),
        ("other.zip", archive("samples/7_epoch_1.json").replace(b"_journal/start.json", b"document/about.json")),
    ],
)
def test_what_is_no_such_log_is_refused(name, content):
    with refused():
        read(name, content)


def test_a_file_in_an_archive_is_read_within_a_bound(monkeypatch):
    monkeypatch.setattr("stepsight.storage.importers.inspect_logs.LARGEST", 100)
    with pytest.raises(UserError, match="unpacks to over"):
        read("log.eval", archive("samples/7_epoch_1.json"))
