"""A real HTTP server on this machine that hands out files, and can be told to misbehave."""

from http.server import BaseHTTPRequestHandler

from tests.local_server import LocalServer


class PublicServer(LocalServer):
    """`files` by path; `requests` lists the paths that were asked for.

    Of a path in `cut` the next answers have only so many bytes each before the connection breaks; one in `chunked`
    is sent without its size. So many requests find it `busy`.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut: dict[str, list[int]] = {}
        self.busy = 0
        self.chunked: set[str] = set()
        self.requests: list[str] = []
        super().__init__(self._handler())

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        public = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                public.requests.append(self.path)
                if public.busy:
                    public.busy -= 1
                    self.send_response(503)
                    self.send_header("Retry-After", "0")
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                    return
                content = public.files.get(self.path)
                if content is None:
                    self.send_error(404)
                    return
                cut = public.cut.get(self.path)
                sent = content[: cut.pop(0)] if cut else content
                self.send_response(200)
                if self.path in public.chunked:
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    end = b"0\r\n\r\n" if sent == content else b""
                    self.wfile.write(f"{len(content):x}\r\n".encode() + sent + (b"\r\n" + end if end else b""))
                else:
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(sent)
                self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                """Say nothing."""

        return Handler
