"""A hub that answers as it is told, and odd answers for it."""

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote

from tests.local_server import LocalServer

REPO, COMMIT = "lab/hostile", "0123456789abcdef0123456789abcdef01234567"
CONTENT = {
    "config.json": b'{"architectures": ["Qwen2ForTokenClassification"]}',
    "stepsight.json": b'{"template": {"separator": "\\n"}}',
    "tokenizer.json": b"{}",
    "model.safetensors": b"\x02\0\0\0\0\0\0\0{}",
}
_BLOCK = b"\0" * (1 << 20)
# What a hub that sends without end sends at most.
_BLOCKS = 150


@dataclass
class Answer:
    """An answer: its body, or blocks that are sent one after the other, and its headers."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    blocks: Iterator[bytes] | None = None


Behaviour = Callable[[str, str], Answer | None]
"""Answers a request for (kind, name), where the kind is list or file, or leaves it to an honest hub."""


class HostileHub(LocalServer):
    """A hub with one repository of that `content`, under any name, that answers as `behaviour` says. `told` holds
    the Authorization headers that came to it under another name than its own."""

    def __init__(self, behaviour: Behaviour) -> None:
        self.behaviour, self.content = behaviour, CONTENT
        self.told: list[str] = []
        super().__init__(type("Handler", (_Handler,), {"hub": self}))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: HostileHub

    def do_GET(self) -> None:
        path = unquote(self.path.split("?")[0])
        if self.headers["host"].startswith("localhost") and self.headers.get("authorization"):
            self.hub.told.append(self.headers["authorization"])
        kind = "list" if path.startswith("/api/") else "file"
        name = path.rsplit("/", 1)[-1]
        answer = self.hub.behaviour(kind, name) or honest(kind, name, self.hub.content)
        self.send_response(answer.status)
        headers = answer.headers if answer.blocks else {"Content-Length": str(len(answer.body))} | answer.headers
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command == "GET":
            try:
                for block in answer.blocks or [answer.body]:
                    self.wfile.write(block)
            except OSError:
                # The other side has enough.
                return

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def sibling(name: str, content: bytes) -> dict[str, Any]:
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
    return {"rfilename": name, "size": len(content), "blobId": blob}


def listed(*siblings: object, sha: object = COMMIT, content: Mapping[str, bytes] = CONTENT) -> Answer:
    named = [sibling(name, body) for name, body in content.items()]
    return Answer(body=json.dumps({"sha": sha, "siblings": [*named, *siblings]}).encode())


def honest(kind: str, name: str, content: Mapping[str, bytes]) -> Answer:
    if kind == "list":
        return listed(content=content)
    return Answer(body=content[name]) if name in content else Answer(404, b"{}", {"X-Error-Code": "EntryNotFound"})


def of_list(answer: Callable[[], Answer]) -> Behaviour:
    return lambda kind, name: answer() if kind == "list" else None


def of_file(answer: Callable[[], Answer], wanted: str = "model.safetensors") -> Behaviour:
    return lambda kind, name: answer() if (kind, name) == ("file", wanted) else None


def endless() -> Iterator[bytes]:
    for _ in range(_BLOCKS):
        yield _BLOCK


@cache
def bomb(times: int) -> bytes:
    """The blocks packed so many times, in little memory."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    body = b"".join([*map(packer.compress, endless()), packer.flush()])
    return body if times == 1 else gzip.compress(body, 9)


def packed(times: int = 1) -> Answer:
    return Answer(body=bomb(times), headers={"Content-Encoding": ", ".join(["gzip"] * times)})


def elsewhere(place: str) -> Answer:
    return Answer(302, headers={"Location": place, "ETag": '"../../../../evil"', "X-Linked-ETag": '"../../evil"'})
