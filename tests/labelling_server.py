"""A server of the labelling routes behind the real middleware, which starts within a moment and can be killed.

It is forked from a process that has loaded everything, since loading takes seconds.
"""

import socket
import time
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from multiprocessing.process import BaseProcess

import uvicorn
from fastapi import FastAPI

from stepsight.app.annotate.pages import labelling_routes
from stepsight.app.commands.serve import listen
from stepsight.app.web.middleware import Access, Failures, Gate
from stepsight.storage.database.store import open_store
from tests.forked import FORK

_PATIENCE = 180


def build(store):
    """The routes that people label by, as the application has them."""
    application = FastAPI(openapi_url=None)
    application.add_middleware(Access, store=store)
    application.add_middleware(Gate)
    application.add_middleware(Failures)
    application.include_router(labelling_routes(store))
    return application


class LabellingServer:
    """Serves the store at `address` on `port`, from `start` on until it is killed."""

    def __init__(self, address: str) -> None:
        self.address = address
        listener = listen(0)
        self.port: int = listener.getsockname()[1]
        listener.close()
        self._process: BaseProcess | None = None

    def start(self) -> None:
        """Serve, and wait until an answer comes."""
        self._process = FORK.Process(target=_serve, args=(self.address, self.port), daemon=True)
        self._process.start()
        until = time.monotonic() + _PATIENCE
        while not self._answers():
            assert self._process.is_alive(), "the server ended"
            assert time.monotonic() < until, "the server does not answer"
            time.sleep(0.01)

    def kill(self) -> None:
        """SIGKILL, whatever it is doing."""
        assert self._process is not None
        self._process.kill()
        self._process.join()

    def _answers(self) -> bool:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request("GET", "/annotate/slots/0")
            return connection.getresponse().status < 500
        except (OSError, HTTPException):
            return False
        finally:
            connection.close()


@contextmanager
def labelling_server(address):
    """One that runs, and is killed at the end."""
    server = LabellingServer(address)
    try:
        server.start()
        yield server
    finally:
        server.kill()


def _serve(address, port):
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", port))
    listener.listen(128)
    with open_store(address) as store:
        uvicorn.Server(uvicorn.Config(build(store), log_level="error")).run(sockets=[listener])
