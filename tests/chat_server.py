"""A server of OpenAI's chat completions on this machine, whose answers a test writes.

Its shape is that of llama.cpp's `llama-server`.
"""

import json
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from stepsight.core.critics.critic import _PROBLEM
from tests.local_server import Reply, Request, ScriptedServer

Body = dict[str, Any]


class ChatServer:
    """Keeps the bodies that it was `asked`, and their headers, but for those that try the server."""

    def __init__(self, answer: Callable[[Body], Any]) -> None:
        """`answer` gives, for a request, the text of the answer, a whole JSON value, or a `Reply`."""
        self.asked: list[Body] = []
        self.tried: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self.answer = answer

    def reply(self, request: Request) -> Reply:
        if request.path != "/v1/chat/completions":
            return Reply(404, {"error": {"code": 404, "message": "File Not Found"}})
        tries = _PROBLEM in request.body["messages"][-1]["content"]
        (self.tried if tries else self.asked).append(request.body)
        self.headers.append(request.headers)
        said = self.answer(request.body)
        if isinstance(said, Reply):
            return said
        return Reply(200, completion(said) if isinstance(said, str) else said)


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
    with ScriptedServer(chat.reply).running() as server:
        chat.url = f"{server.url}/v1"
        yield chat
