"""A server of OpenAI's chat completions on this machine, whose answers a test writes.

Its shape is that of llama.cpp's `llama-server`.
"""

import json
import threading
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler
from typing import Any

from stepsight.core.critics.critic import _PROBLEM
from tests.local_server import LocalServer

Body = dict[str, Any]


@dataclass(frozen=True)
class Refusal:
    """An answer of another status, with a body of its own."""

    status: int
    body: bytes = b'{"error":{"code":500,"message":"it failed","type":"server_error"}}'
    kind: str = "application/json"


class ChatServer:
    """Keeps the bodies that it was `asked`, and their headers, but for those that try the server."""

    def __init__(self, answer: Callable[[Body], Any]) -> None:
        """`answer` gives, for a request, the text of the answer, a whole JSON value, or a `Refusal`."""
        self.asked: list[Body] = []
        self.tried: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self.answer = answer
        self._lock = threading.Lock()

    def reply(self, body: Body, headers: dict[str, str]) -> Refusal:
        """What the server sends."""
        with self._lock:
            tries = _PROBLEM in body["messages"][-1]["content"]
            (self.tried if tries else self.asked).append(body)
            self.headers.append(headers)
        said = self.answer(body)
        if isinstance(said, Refusal):
            return said
        return Refusal(200, json.dumps(completion(said) if isinstance(said, str) else said).encode())


def completion(text, ended="stop", **message):
    """An answer as llama.cpp's server gives it."""
    return {
        "choices": [
            {"finish_reason": ended, "index": 0, "message": {"role": "assistant", "content": text, **message}}
        ],
        "created": 1795459200,
        "model": "gemma",
        "system_fingerprint": "b11434",
        "object": "chat.completion",
        "usage": {"completion_tokens": 20, "prompt_tokens": 300, "total_tokens": 320},
        "id": "chatcmpl-1",
    }


def verdicts(labels, rationale="since it is so"):
    """An answer to our own prompt."""
    steps = {
        f"step_{number}": {"rationale": f"{rationale} {number}", "verdict": label}
        for number, label in enumerate(labels, start=1)
    }
    return json.dumps(steps)


def shown(body):
    """How many steps our own prompt shows."""
    return int(str(body["messages"][-1]["content"]).count("<step number="))


@contextmanager
def chat_server(answer):
    """The server, running."""
    chat = ChatServer(answer)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if self.path != "/v1/chat/completions":
                self._send(Refusal(404, b'{"error":{"code":404,"message":"File Not Found"}}'))
                return
            self._send(chat.reply(body, {name.lower(): value for name, value in self.headers.items()}))

        def _send(self, reply: Refusal) -> None:
            self.send_response(reply.status)
            self.send_header("content-type", reply.kind)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with LocalServer(Handler).running() as server:
        chat.url = f"{server.url}/v1"
        yield chat
