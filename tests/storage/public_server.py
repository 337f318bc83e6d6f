"""A real HTTP server on this machine that hands out files, and can be told to misbehave."""

from tests.local_server import Reply, Request, ScriptedServer


class PublicServer(ScriptedServer):
    """`files` by path; `requests` lists the paths that were asked for.

    Of a path in `cut` the next answers have only so many bytes each before the connection breaks; one in `chunked`
    is sent without its size. So many requests find it `busy`.
    """

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut: dict[str, list[int]] = {}
        self.busy = 0
        self.chunked: set[str] = set()
        super().__init__(self._reply)

    @property
    def requests(self) -> list[str]:
        return [request.path for request in self.asked]

    def _reply(self, request: Request) -> Reply:
        if self.busy:
            self.busy -= 1
            return Reply(503, b"", headers={"Retry-After": "0"})
        content = self.files.get(request.path)
        if content is None:
            return Reply(404, b"")
        cut = self.cut.get(request.path)
        sent = content[: cut.pop(0)] if cut else content
        if request.path not in self.chunked:
            return Reply(200, sent, headers={"content-length": str(len(content))})
        end = b"\r\n0\r\n\r\n" if sent == content else b"\r\n"
        return Reply(200, f"{len(content):x}\r\n".encode() + sent + end, headers={"transfer-encoding": "chunked"})
