"""A model hub on this machine that speaks the protocol of the genuine one, asked by the hub's own client.

Files that the hub stores apart (weights) are led to another host, as the genuine one leads to its CDN; the others
come from the hub itself. It can be told to misbehave.
"""

import hashlib
import json
import re
import time
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote

import huggingface_hub

from tests.local_server import LocalServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"
_PIECE = 1 << 14


class Hub(LocalServer):
    """`folders` by the id of a model, or of a dataset behind `datasets:`, with what is below them; `asked` lists
    (method, path, Range, whether a token came) of what was asked.

    Of a file whose name is in `cut` only so many bytes are sent before the connection breaks, so many `times`; the
    last byte of one in `damaged` is another; a
    model in `gated` is given to who brings `token`. Each piece of a file waits `pause` seconds. `commits` are those
    of single models, where they are not at `commit`; `tags` are further names of any commit.
    """

    def __init__(self) -> None:
        self.folders: dict[str, Path] = {}
        self.gated: set[str] = set()
        self.token = "hf_ours"
        self.cut: dict[str, int] = {}
        self.times = 1
        self.damaged: set[str] = set()
        self.pause = 0.0
        self.commit = COMMIT
        self.beside: list[dict[str, object]] = []
        self.commits: dict[str, str] = {}
        self.tags: set[str] = set()
        self.asked: list[tuple[str, str, str | None, bool]] = []
        super().__init__(self._handler())

    @property
    def elsewhere(self) -> str:
        """The same server by another name, which to a client is another host."""
        return f"http://localhost:{self.port}"

    def sent(self, name: str) -> list[str | None]:
        """The Range headers with which the content of a file was asked for."""
        return [part for method, path, part, _ in self.asked if method == "GET" and path.endswith(f"/{name}")
                and (path.startswith("/stored/") or not _is_large(name))]  # fmt: skip

    def commit_of(self, repo: str) -> str:
        return self.commits.get(repo, self.commit)

    def resolved(self, repo: str, revision: str) -> str:
        """The commit that a revision of the model is."""
        return revision if len(revision) == len(COMMIT) else self.commit_of(repo)

    def knows(self, repo: str, revision: str) -> bool:
        return revision in ("main", self.commit_of(repo), *self.tags)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        return type("Handler", (_Handler,), {"hub": self})


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def do_GET(self) -> None:
        path = unquote(self.path.split("?")[0])
        has_token = self.headers.get("authorization") is not None
        self.hub.asked.append((self.command, path, self.headers.get("range"), has_token))
        # A dataset is asked for as a model is, with a word before its id.
        of_dataset = re.match(r"/(?:(api)/)?datasets/([^/]+)/([^/]+)/(.*)", path)
        if of_dataset:
            before = "/api/models" if of_dataset[1] else ""
            self._answer_for(f"{before}/datasets:{of_dataset[2]}/{of_dataset[3]}/{of_dataset[4]}")
            return
        self._answer_for(path)

    def _answer_for(self, path: str) -> None:
        parts = path.strip("/").split("/")
        if parts[:2] == ["api", "models"] and len(parts) == 6 and parts[4] in ("revision", "tree"):
            self._tell(f"{parts[2]}/{parts[3]}", parts[4], parts[5])
        elif len(parts) > 4 and parts[2] == "resolve":
            self._resolve(f"{parts[0]}/{parts[1]}", parts[3], "/".join(parts[4:]))
        elif parts[0] == "stored" and len(parts) > 3:
            self._give(self.hub.folders[f"{parts[1]}/{parts[2]}"] / "/".join(parts[3:]), {})
        else:
            self._answer(404, b"{}", {"X-Error-Code": "RepoNotFound"})

    do_HEAD = do_GET  # noqa: N815

    def _tell(self, repo: str, what: str, revision: str) -> None:
        folder = self.hub.folders.get(repo)
        if folder is None:
            self._answer(401, b"{}", {"X-Error-Code": "RepoNotFound", "X-Error-Message": "Repository not found"})
        elif not self.hub.knows(repo, revision):
            self._answer(404, b"{}", {"X-Error-Code": "RevisionNotFound"})
        elif what == "tree":
            self._answer(200, json.dumps([_entry(folder, path) for path in _files(folder)]).encode())
        else:
            siblings = [*(_sibling(folder, path) for path in _files(folder)), *self.hub.beside]
            gated = "auto" if repo in self.hub.gated else False
            values = {"id": repo, "sha": self.hub.resolved(repo, revision), "gated": gated, "siblings": siblings}
            self._answer(200, json.dumps(values).encode())

    def _resolve(self, repo: str, revision: str, name: str) -> None:
        path = self.hub.folders.get(repo, Path("/nowhere")) / name
        if repo in self.hub.gated and self.headers.get("authorization") != f"Bearer {self.hub.token}":
            status = 401 if self.headers.get("authorization") is None else 403
            self._answer(status, b"{}", {"X-Error-Code": "GatedRepo", "X-Error-Message": "Access is restricted"})
        elif not self.hub.knows(repo, revision) or not path.is_file():
            self._answer(404, b"{}", {"X-Error-Code": "EntryNotFound"})
        elif _is_large(name):
            linked = {"X-Linked-Size": str(path.stat().st_size), "X-Linked-ETag": f'"{_sha256(path)}"'}
            place = {"Location": f"{self.hub.elsewhere}/stored/{repo}/{name}"}
            commit = self.hub.resolved(repo, revision)
            self._answer(302, b"", linked | place | {"X-Repo-Commit": commit, "ETag": '"of the pointer"'})
        else:
            self._give(path, {"X-Repo-Commit": self.hub.resolved(repo, revision), "ETag": f'"{_git(path)}"'})

    def _give(self, path: Path, headers: dict[str, str]) -> None:
        content = path.read_bytes()
        if path.name in self.hub.damaged:
            content = content[:-1] + bytes([content[-1] ^ 1])
        part = self.headers.get("range")
        start = int(part.removeprefix("bytes=").split("-")[0]) if part else 0
        if start and start >= len(content):
            self._answer(416, b"", {})
            return
        sent = content[start:]
        if part:
            headers = headers | {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"}
        self.send_response(206 if part else 200)
        for name, value in (headers | {"Content-Length": str(len(sent)), "Accept-Ranges": "bytes"}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self._write(path.name, sent)

    def _write(self, name: str, content: bytes) -> None:
        cut = self.hub.cut.get(name) if self.hub.times > 0 else None
        if cut is not None:
            self.hub.times -= 1
            content = content[:cut]
            self.close_connection = True
        for start in range(0, len(content), _PIECE):
            try:
                self.wfile.write(content[start : start + _PIECE])
                self.wfile.flush()
            except OSError:
                return
            time.sleep(self.hub.pause)

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ((headers or {}) | {"Content-Length": str(len(body))}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def _files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _is_large(name):
    return name.endswith((".safetensors", ".bin"))


def _sibling(folder, path):
    name = path.relative_to(folder).as_posix()
    one: dict[str, object] = {"rfilename": name, "size": path.stat().st_size, "blobId": _git(path)}
    if _is_large(path.name):
        one["lfs"] = {"sha256": _sha256(path), "size": path.stat().st_size, "pointerSize": 134}
    return one


def _entry(folder, path):
    name = path.relative_to(folder).as_posix()
    one: dict[str, object] = {"type": "file", "path": name, "size": path.stat().st_size, "oid": _git(path)}
    if _is_large(path.name):
        one["lfs"] = {"oid": _sha256(path), "size": path.stat().st_size, "pointerSize": 134}
    return one


def _sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _git(path):
    content = path.read_bytes()
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()


def point_to(patch, address, cache):
    """Send the client of this process to an address, with a cache of its own: it reads both when it is imported."""
    patch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(cache))
    patch.setattr(huggingface_hub.constants, "ENDPOINT", address)
    template = address + "/{repo_id}/resolve/{revision}/{filename}"
    patch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    patch.setenv("NO_PROXY", "127.0.0.1,localhost")
    patch.delenv("HF_TOKEN", raising=False)
    # As small as the files of tests, and without pauses before a broken transfer goes on.
    patch.setattr(huggingface_hub.constants, "DOWNLOAD_CHUNK_SIZE", _PIECE)
    patch.setattr(huggingface_hub.file_download, "time", SimpleNamespace(sleep=lambda _: None))
    # A token that the person who runs the tests has is not sent to ours.
    patch.setattr(huggingface_hub.constants, "HF_TOKEN_PATH", str(cache / "no-token"))
