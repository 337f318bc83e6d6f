"""The Model Context Protocol over standard input and output: JSON-RPC messages, one per line.

Served are the revisions up to 2025-11-25, in which a client begins with `initialize`, and 2026-07-28, in which
every request names its revision. Results have the fields that both require, since clients ignore those that are new
to them. Source: the specification of modelcontextprotocol.io, with its schema of each revision.
"""

import json
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, BinaryIO, Generic, TypeVar

from pydantic import BaseModel

from stepsight import __version__
from stepsight.core.errors import UserError
from stepsight.core.files.json_values import parse_json
from stepsight.core.validation import validate

HANDSHAKES = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
STATELESS = "2026-07-28"
LONGEST_LINE = 4_000_000
"""The largest message in bytes."""

_NAMESPACE = "io.modelcontextprotocol"
_PARSE_ERROR, _INVALID_REQUEST, _NO_METHOD, _INVALID_PARAMS, _INTERNAL = -32700, -32600, -32601, -32602, -32603
_UNKNOWN_VERSION = -32022
_SERVER = {"name": "stepsight", "title": "StepSight", "version": __version__}
_CAPABILITIES: Mapping[str, Any] = {"tools": {}}
# The list of tools stays the same as long as the server runs.
_CACHED = {"cacheScope": "private", "ttlMs": 3_600_000}

Message = dict[str, Any]
Arguments = TypeVar("Arguments", bound=BaseModel)


@dataclass(frozen=True)
class Tool(Generic[Arguments]):
    """A tool of the server. `call` raises `UserError` if it cannot do what is asked."""

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    result: type[BaseModel]
    call: Callable[[Arguments], BaseModel]

    @property
    def described(self) -> Message:
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": self.arguments.model_json_schema(),
            "outputSchema": self.result.model_json_schema(mode="serialization"),
            "annotations": {"readOnlyHint": True, "openWorldHint": False},
        }

    def answer(self, arguments: object) -> Message:
        """Return the result of a call. A mistake of the client is a result too, so that a model can correct it."""
        try:
            result = self.call(validate(self.arguments, arguments, "the arguments")).model_dump(mode="json")
        except UserError as error:
            told = str(error.without_options())
            return {"content": [{"type": "text", "text": told}], "isError": True}
        text = json.dumps(result, ensure_ascii=False)
        return {"content": [{"type": "text", "text": text}], "structuredContent": result, "isError": False}


class _RefusedError(Exception):
    """A request that is answered with an error of the protocol."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error: Message = {"code": code, "message": message} | ({} if data is None else {"data": data})


class ToolServer:
    """A server of tools. Requests are answered one at a time, in their order.

    `tools` may still be loading: clients wait only seconds for the answer to their first request, which needs no
    tool.
    """

    def __init__(self, tools: "Future[Sequence[Tool[Any]]]", instructions: str) -> None:
        self._loading, self._instructions = tools, instructions

    @property
    def _tools(self) -> dict[str, Tool[Any]]:
        return {tool.name: tool for tool in self._loading.result()}

    def serve(self, requests: BinaryIO, answers: BinaryIO) -> None:
        """Answer requests until their stream ends. Raises `UserError` if the tools cannot be loaded."""
        while line := requests.readline(LONGEST_LINE + 1):
            answer: Message | None
            if len(line) > LONGEST_LINE:
                while line and not line.endswith(b"\n"):
                    line = requests.readline(LONGEST_LINE)
                answer = _failure(None, _INVALID_REQUEST, f"The message is longer than {LONGEST_LINE:,} bytes.")
            else:
                answer = self.answer(line)
            if answer is not None:
                answers.write(json.dumps(answer).encode() + b"\n")
                answers.flush()

    def answer(self, line: bytes) -> Message | None:
        """Return the answer to a message, or None if it is blank, a notification or itself an answer."""
        if not line.strip():
            return None
        try:
            message = parse_json(line)
        except ValueError as error:
            return _failure(None, _PARSE_ERROR, f"The message is not JSON: {error}.")
        if not isinstance(message, dict) or ("method" not in message and not {"result", "error"} & set(message)):
            return _failure(None, _INVALID_REQUEST, "The message is not a request of JSON-RPC.")
        number = message.get("id")
        if "method" not in message or number is None:
            return None
        params = message.get("params", {})
        try:
            if not isinstance(params, dict):
                raise _RefusedError(_INVALID_PARAMS, "params is not an object.")
            result = self._result(message["method"], params)
        except _RefusedError as error:
            return {"jsonrpc": "2.0", "id": number, "error": error.error}
        except UserError:
            raise
        except Exception:
            traceback.print_exc(file=sys.stderr)
            return _failure(number, _INTERNAL, "The server failed; its standard error says why.")
        result |= {"resultType": "complete", "_meta": {f"{_NAMESPACE}/serverInfo": _SERVER}}
        return {"jsonrpc": "2.0", "id": number, "result": result}

    def _result(self, method: object, params: Message) -> Message:
        meta = params.get("_meta")
        version = meta.get(f"{_NAMESPACE}/protocolVersion", STATELESS) if isinstance(meta, dict) else STATELESS
        if method != "initialize" and version != STATELESS:
            served = {"supported": [STATELESS], "requested": version}
            raise _RefusedError(_UNKNOWN_VERSION, "This revision of the protocol is not served.", served)
        match method:
            case "initialize":
                wanted = params.get("protocolVersion")
                chosen = wanted if wanted in HANDSHAKES else HANDSHAKES[0]
                return self._about({"protocolVersion": chosen, "serverInfo": _SERVER})
            case "server/discover":
                return self._about({"supportedVersions": [STATELESS], **_CACHED})
            case "ping":
                return {}
            case "tools/list":
                return {"tools": [tool.described for tool in self._tools.values()], **_CACHED}
            case "tools/call":
                tool = self._tools.get(str(params.get("name")))
                if tool is None:
                    names = ", ".join(self._tools)
                    raise _RefusedError(_INVALID_PARAMS, f"There is no such tool. The tools are {names}.")
                return tool.answer(params.get("arguments", {}))
        raise _RefusedError(_NO_METHOD, "There is no such method.")

    def _about(self, more: Message) -> Message:
        return {"capabilities": _CAPABILITIES, "instructions": self._instructions, **more}


def _failure(number: Any, code: int, message: str) -> Message:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
