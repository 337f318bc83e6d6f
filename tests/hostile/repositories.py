"""Repositories of a hub that wants to harm who fetches from it: lists, refusals, redirects and contents that no hub
sends by mistake. The random ones are made from a seed."""

import gzip
import hashlib
import json
import random
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
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
SEEDS = range(20)
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


def damaged_list(seed: int) -> Answer:
    rng = random.Random(seed)
    body = bytearray(listed().body)
    for _ in range(rng.randint(1, 6)):
        body[rng.randrange(len(body))] = rng.randrange(32, 127)
    return Answer(body=bytes(body))


_NAMES = ("../evil", "/tmp/evil", "a/../../evil", "..", "a//b", "a\\..\\evil", "a\0b", "x" * 600, "", ".", "a/./b")
_SIZES: tuple[object, ...] = (-1, 1.5, "9", 2**70, [], {}, True)
_HASHES: tuple[object, ...] = ("../../../evil", "", None, 7, "A" * 40, "0" * 39, ["0" * 40])
_PLACES = (
    "/lab/hostile/resolve/x/again", "file:///etc/passwd", "ftp://127.0.0.1/x", "http://127.0.0.1:1/x", "http://[::1",
    "//",
)  # fmt: skip
_BODIES = (b"", b"null", b"[]", b"{", b"\xff", b"[" * 100_000, b'{"sha": 1}', b'{"siblings": 3}')


def with_file(**values: object) -> Answer:
    return listed(sibling("a.json", b"") | values)


BEHAVIOURS: dict[str, Behaviour] = {
    **{f"name {one!r:.20}": of_list(partial(lambda one: listed(sibling(one, b"")), one)) for one in _NAMES},
    **{f"size {one!r}": of_list(partial(with_file, size=one)) for one in _SIZES},
    **{f"blob {one!r}": of_list(partial(with_file, blobId=one)) for one in _HASHES},
    **{f"commit {one!r}": of_list(partial(listed, sha=one)) for one in _HASHES},
    **{f"list {one!r:.30}": of_list(partial(Answer, body=one)) for one in _BODIES},
    **{f"list at {one}": of_list(partial(elsewhere, one)) for one in _PLACES},
    **{f"weights at {one}": of_file(partial(elsewhere, one)) for one in _PLACES},
    **{f"damaged list {seed}": of_list(partial(damaged_list, seed)) for seed in SEEDS},
    "many files": of_list(lambda: listed(*[sibling(f"{number}.json", b"") for number in range(60_000)])),
    "stored apart at a path": of_list(
        lambda: listed(sibling("a.bin", b"") | {"lfs": {"sha256": "../x", "size": 1}})
    ),
    "a list without end": of_list(lambda: Answer(blocks=endless())),
    "a packed list": of_list(partial(packed, 1)),
    "a list packed twice": of_list(lambda: packed(2)),
    "a packed refusal": of_list(lambda: Answer(500, bomb(1), {"Content-Encoding": "gzip"})),
    "a refusal without end": of_list(lambda: Answer(403, blocks=endless())),
    "a card without end": of_file(lambda: Answer(blocks=endless()), "stepsight.json"),
    "a packed card": of_file(packed, "stepsight.json"),
    "weights without end": of_file(lambda: Answer(blocks=endless())),
    "packed weights": of_file(packed),
    "other weights": of_file(lambda: Answer(body=b"x" * len(CONTENT["model.safetensors"]))),
    "shorter weights": of_file(lambda: Answer(body=b"x")),
    "a refusal of the weights without end": of_file(lambda: Answer(403, blocks=endless())),
    "an odd tag": of_file(
        lambda: Answer(body=CONTENT["model.safetensors"], headers={"ETag": '"../../../../evil"'})
    ),
}
