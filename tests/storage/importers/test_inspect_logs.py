"""Logs of Inspect, as archives and as JSON."""

import io
import json
import zipfile

import pyarrow as pa
import pytest

from stepsight.core.errors import UserError
from stepsight.storage.importers import KINDS, read_traces
from stepsight.storage.importers.recognition import recognise
from tests.cases import each
from tests.messages import refused

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
