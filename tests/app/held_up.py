"""A scorer that is held up, behind a real server, and who asks it and goes away."""

import json
import socket
import threading
from contextlib import contextmanager

import uvicorn

from stepsight.app.commands.serve import listen
from stepsight.app.scoring.batcher import Batcher, Semaphores
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.judgment import StepScore
from stepsight.core.scoring.scorer import Scorer


class Held:
    """A scorer that is held up in the middle of a call until it is let go or nobody waits for it. The online scores
    of the first sub-steps are `known` meanwhile."""

    known = ()
    next_steps = None

    def __init__(self, scorer):
        self.scorer = scorer
        self.at_work, self.go, self.ended = threading.Event(), threading.Event(), threading.Event()

    def __getattr__(self, name):
        return getattr(self.scorer, name)

    def stream_encoded(self, traces, mode):
        for substep, row in enumerate(self.known):
            yield StepScore(0, substep, row)
        self.at_work.set()
        try:
            while not self.go.wait(0.01):
                yield None
        finally:
            self.ended.set()
        yield from self.scorer.stream_encoded(traces, mode)


def hold_up(folder, most=None):
    """Evaluators of which the only one, in a folder, is held up, and its scorer; so many traces may wait."""
    evaluators = Evaluators([folder], shipped=False)
    scorer = Held(evaluators.scorer(folder.name))
    options = {} if most is None else {"most": most}
    places = Semaphores(threading.Lock(), threading.Lock())
    evaluators._offered[folder.name].batcher = Batcher(scorer, places, **options)
    return evaluators, scorer


@contextmanager
def served(application):
    """The address of a real server of the application."""
    listener = listen(0)
    server = uvicorn.Server(uvicorn.Config(application, log_level="error", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    try:
        yield listener.getsockname()
    finally:
        server.should_exit = True
        thread.join(30)


@contextmanager
def posted(address, path, body):
    """The connection on which a path was asked, whose answer is waited for while the block runs."""
    text = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(text)}\r\n\r\n"
    )
    with socket.create_connection(address) as client:
        client.settimeout(30)
        client.sendall(head.encode() + text)
        yield client


def check_end(app, path, method, monkeypatch):
    """A method of the scorer that yields events, for which a page waits, ends when the page is left."""
    begun, ended = threading.Event(), threading.Event()

    def held(*arguments):
        begun.set()
        try:
            while True:
                yield None
        finally:
            ended.set()

    monkeypatch.setattr(Scorer, method, held)
    with served(app) as address:
        with socket.create_connection(address) as client:
            client.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
            assert begun.wait(30)
            assert not ended.is_set()
        assert ended.wait(30)
