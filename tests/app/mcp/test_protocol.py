"""The Model Context Protocol as clients of both kinds of revisions speak it."""

import io
import json
from concurrent.futures import Future

import pytest
from pydantic import BaseModel, ConfigDict

from stepsight.app.mcp.protocol import LONGEST_LINE, Tool, ToolServer
from stepsight.core.errors import UserError
from tests.cases import each

VERSION = "io.modelcontextprotocol/protocolVersion"


class Sum(BaseModel):
    model_config = ConfigDict(extra="forbid")

    a: int
    b: int = 1


class Total(BaseModel):
    total: int


def add(asked: Sum) -> Total:
    if asked.a == 13:
        raise UserError("a is 13.", "Take 14 (--a).")
    if asked.a == 0:
        raise ZeroDivisionError
    return Total(total=asked.a + asked.b)


@pytest.fixture
def server() -> ToolServer:
    tools = Future()
    tools.set_result([Tool("add", "Add", "Add two numbers.", Sum, Total, add)])
    return ToolServer(tools, "Adds.")


def ask(server, method, number=1, **params):
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    answer = server.answer(json.dumps(request).encode())
    assert (answer["jsonrpc"], answer["id"]) == ("2.0", number)
    return answer


@each("wanted, chosen", [("2025-06-18", "2025-06-18"), ("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")])
def test_a_handshake_agrees_on_a_revision(server, wanted, chosen):
    result = ask(server, "initialize", protocolVersion=wanted, capabilities={}, clientInfo={})["result"]
    assert (result["protocolVersion"], result["serverInfo"]["name"]) == (chosen, "stepsight")
    assert result["capabilities"] == {"tools": {}}


def test_a_client_without_a_handshake_names_its_revision(server):
    found = ask(server, "server/discover", _meta={VERSION: "2026-07-28"})["result"]
    assert (found["supportedVersions"], found["resultType"]) == (["2026-07-28"], "complete")
    error = ask(server, "tools/list", _meta={VERSION: "2031-01-01"})["error"]
    assert (error["code"], error["data"]) == (-32022, {"supported": ["2026-07-28"], "requested": "2031-01-01"})


def test_a_tool_is_described_and_called(server):
    (tool,) = ask(server, "tools/list")["result"]["tools"]
    assert (tool["name"], tool["inputSchema"]["required"]) == ("add", ["a"])
    assert tool["outputSchema"]["required"] == ["total"]
    result = ask(server, "tools/call", "x", name="add", arguments={"a": 2})["result"]
    assert (result["structuredContent"], result["isError"]) == ({"total": 3}, False)
    assert json.loads(result["content"][0]["text"]) == {"total": 3}


@each(
    "arguments, told",
    [
        ({}, "the key a is missing."),
        ({"a": "x"}, "a is 'x', expected a whole number."),
        ({"a": 1, "c": 2}, "unknown key c. The keys are a, b."),
        ({"a": 13}, "a is 13. Take 14."),
        ([1], "the arguments is [1], expected keys with values."),
    ],
)
def test_a_call_that_cannot_be_answered_gets_one_sentence(server, arguments, told):
    result = ask(server, "tools/call", name="add", arguments=arguments)["result"]
    assert (result["isError"], result["content"]) == (True, [{"type": "text", "text": told}])


@each(
    "line, code",
    [
        (b"{", -32700),
        (b"[]", -32600),
        (b'{"id": 1}', -32600),
        (b'{"id": 1, "method": "resources/list"}', -32601),
        (b'{"id": 1, "method": "tools/list", "params": []}', -32602),
        (b'{"id": 1, "method": "tools/call", "params": {"name": "none"}}', -32602),
        (b'{"id": 1, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 0}}}', -32603),
    ],
)
def test_a_message_that_is_no_request_is_refused_by_its_kind(server, line, code):
    assert server.answer(line)["error"]["code"] == code


@each("line", [b"\n", b'{"method": "notifications/initialized"}', b'{"id": 1, "result": {}}'])
def test_what_asks_for_nothing_gets_no_answer(server, line):
    assert server.answer(line) is None


def test_a_stream_is_answered_line_by_line_and_goes_on_after_one_that_is_too_long(server):
    ping = b'{"jsonrpc": "2.0", "id": 7, "method": "ping"}\n'
    answers = io.BytesIO()
    server.serve(io.BytesIO(ping + b"x" * (3 * LONGEST_LINE) + b"\n" + ping), answers)
    first, long, last = map(json.loads, answers.getvalue().splitlines())
    assert first == last == {**first, "id": 7}
    assert (long["id"], long["error"]["code"]) == (None, -32600)


def test_tools_that_cannot_be_loaded_end_the_server():
    tools = Future()
    tools.set_exception(UserError("there is no evaluator."))
    server = ToolServer(tools, "")
    assert "result" in ask(server, "initialize")
    with pytest.raises(UserError, match="there is no evaluator"):
        ask(server, "tools/list")
