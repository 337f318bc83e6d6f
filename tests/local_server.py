"""A real HTTP server on this machine, whose requests are answered by a handler or by a function of a test."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class LocalServer:
    """Listens on a free port from the beginning, and answers while it is `running`."""

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @contextmanager
    def running(self) -> Iterator[Self]:
        thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            thread.join()
            self._server.server_close()


@dataclass(frozen=True)
class Request:
    """What was asked: the `number` of the request, from 1, its path, its headers by their names in small
    letters, and the value of the JSON in it. `handler` is for answers that no server should give."""

    number: int
    path: str
    headers: dict[str, str]
    body: Any
    handler: BaseHTTPRequestHandler


@dataclass(frozen=True)
class Reply:
    """An answer; a body that is not bytes is sent as JSON, and so is what a server says that fails."""

    status: int
    body: object = field(default_factory=lambda: {"error": {"code": 500, "message": "it failed"}})
    kind: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


class ScriptedServer(LocalServer):
    """Gives the `Reply` that `answer` returns for a request, and breaks the connection if that is None. `asked`
    are all requests so far."""

    def __init__(self, answer: Callable[[Request], Reply | None]) -> None:
        self.asked: list[Request] = []
        self._lock = threading.Lock()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            wbufsize = -1

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or "null")
                headers = {name.lower(): value for name, value in self.headers.items()}
                with server._lock:
                    server.asked.append(Request(len(server.asked) + 1, self.path, headers, body, self))
                    request = server.asked[-1]
                reply = answer(request)
                if reply is None:
                    self.close_connection = True
                    return
                content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
                self.send_response(reply.status)
                own = {"content-type": reply.kind, "content-length": str(len(content))} | reply.headers
                is_chunked = "transfer-encoding" in own
                for name, value in own.items():
                    if not (is_chunked and name == "content-length"):
                        self.send_header(name, value)
                self.end_headers()
                self.wfile.write(content)
                # A body that is shorter than its head says was cut off.
                self.close_connection = is_chunked or own["content-length"] != str(len(content))

            do_GET = do_POST  # noqa: N815

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        super().__init__(Handler)
