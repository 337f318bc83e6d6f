"""Servers, each a `stepsight app` of its own, behind nginx with the file that the manual has for it."""

import os
import re
import subprocess
import threading
import time
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path

import pytest

from stepsight.app.commands.serve import listen
from tests.forked import Forked
from tests.programs import find_nginx

FILE = Path(__file__).parents[1] / "docs" / "deployment" / "nginx.conf"
_SECONDS = 30
_STARTING = 180

# What nginx needs around a file of conf.d; where it is started by root, its workers too have to read this folder.
_AROUND = """{user}
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/stepsight.conf;
}}
"""


class AppServer:
    """`stepsight app` for the store at `address`, with its worker, on `port`; `lines` is what it wrote."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.port = _free_port()
        self.lines: list[str] = []
        self._ready = threading.Event()
        self._process: Forked | None = None
        self._readings: list[threading.Thread] = []

    def start(self) -> None:
        """Begin to start."""
        self._ready.clear()
        # As behind a proxy on this machine, which alone knows where requests come from.
        arguments = ["app", "--db", self.address, "--port", self.port, "--proxy", "127.0.0.1"]
        self._process = Forked(None, arguments)
        self._readings.append(threading.Thread(target=self._read, args=(self._process,), daemon=True))
        self._readings[-1].start()

    def wait(self) -> None:
        """Until it serves."""
        assert self._ready.wait(_STARTING), "".join(self.lines)
        assert any(f"http://127.0.0.1:{self.port} " in line for line in self.lines), "".join(self.lines)

    def kill(self) -> None:
        """SIGKILL, whatever it is doing; its worker finds that it is alone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            self._process = None

    def end(self) -> None:
        """Kill it, and wait until its workers have ended too, which write where it wrote."""
        self.kill()
        for reading in self._readings:
            reading.join(_STARTING)

    def _read(self, process: Forked) -> None:
        assert process.stderr is not None
        with process.stderr as lines:
            for line in lines:
                self.lines.append(line)
                if "Ctrl-C" in line:
                    self._ready.set()
        self._ready.set()


@contextmanager
def servers(address, count):
    """So many servers of one store, started at the same moment."""
    with ExitStack() as stack:
        started = [AppServer(address) for _ in range(count)]
        for server in started:
            stack.callback(server.end)
            server.start()
        for server in started:
            server.wait()
        yield started


@contextmanager
def proxied(ports, folder):
    """The port of an nginx in front of the servers at `ports`, which get requests in turn: what one of them did is
    asked of another. The test is skipped where nginx is not installed."""
    program = find_nginx()
    if program is None:
        pytest.skip("nginx is not installed")
    port = _free_port()
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(_AROUND.format(user=user, folder=folder), encoding="utf-8")
    (folder / "stepsight.conf").write_text(here(ports, port), encoding="utf-8")
    process = subprocess.Popen([program, "-p", folder, "-e", "stderr", "-c", folder / "nginx.conf"])
    try:
        _wait(process, port)
        yield port
    finally:
        process.terminate()
        process.wait(_SECONDS)


def here(ports, port):
    """The manual's file for servers at `ports` of this machine, without HTTPS, at `port`."""
    text = FILE.read_text(encoding="utf-8")
    server = re.search(r"\n +server 10\.0\.0\.11:7860 ([^\n]*);", text)
    assert server is not None
    lines = "".join(f"\n    server 127.0.0.1:{one} {server[1]};" for one in ports)
    for pattern, new in (
        (r"\n +server 10\.0\.0\.11:\d+ .*;", lines),
        (r"\n +server 10\.0\.0\.12:\d+ .*;", ""),
        (r"\n +hash .*;", ""),
        (r"\n +ssl_certificate\w* .*;", ""),
        (r"listen 443 ssl;", f"listen 127.0.0.1:{port};"),
    ):
        text, count = re.subn(pattern, new, text)
        assert count, pattern
    return text


def _free_port():
    with listen(0) as listener:
        port: int = listener.getsockname()[1]
    return port


def _wait(process, port):
    until = time.monotonic() + _SECONDS
    while True:
        assert process.poll() is None, "nginx ended"
        assert time.monotonic() < until, "nginx does not answer"
        connection = HTTPConnection("127.0.0.1", port, timeout=_SECONDS)
        try:
            connection.request("GET", "/healthz")
            connection.getresponse()
            return
        except OSError:
            time.sleep(0.02)
        finally:
            connection.close()
