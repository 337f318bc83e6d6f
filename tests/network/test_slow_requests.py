"""Thousands of requests that never end, from one address, while people label."""

import asyncio
import multiprocessing
import re
import resource
import statistics
from contextlib import contextmanager, suppress

import pytest

from stepsight.storage.database.store import open_store
from tests.annotators import faults, label_together, prepare
from tests.app.processes import until
from tests.forked import FORK, Forked

pytestmark = pytest.mark.slow

CONNECTIONS = 2_000
SECONDS = 1.0
"""The most that 95 % of the labels may take."""
LOG = 1_000_000

# Sent at once, and then piece by piece, a piece every `DRIP` seconds.
KINDS = {
    "headers": (b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"X-More: again\r\n"),
    "bodies": (b"POST /api/v1/score HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n\r\n", b" "),
    "idle": (b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b""),
}
DRIP = 3.0

# The server as a small machine starts it, with few files.
SOURCE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (1024, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
from stepsight.app.commands.cli import main
sys.exit(main(sys.argv[1:]))
"""


class Attack:
    """So many clients that each keep a connection busy, and open it again as soon as it is closed."""

    def __init__(self, port: int, opened: "multiprocessing.sharedctypes.Synchronized[int]") -> None:
        self._port, self._opened = port, opened

    async def run(self) -> None:
        await asyncio.gather(*(self._client(*KINDS[kind]) for kind in [*KINDS] * (CONNECTIONS // len(KINDS))))

    async def _client(self, first: bytes, piece: bytes) -> None:
        while True:
            with suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
                self._opened.value += 1
                writer.write(first)
                drip = asyncio.create_task(self._drip(writer, piece))
                with suppress(OSError):
                    while await reader.read(1 << 16):
                        pass
                drip.cancel()
                writer.close()
            await asyncio.sleep(1)

    async def _drip(self, writer: asyncio.StreamWriter, piece: bytes) -> None:
        while piece:
            await asyncio.sleep(DRIP)
            writer.write(piece)


def attack(port: int, opened: "multiprocessing.sharedctypes.Synchronized[int]") -> None:
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    asyncio.run(Attack(port, opened).run())


@contextmanager
def attacked(port):
    """Attack the server at `port`, from when as many connections were opened as clients there are."""
    opened = FORK.Value("l", 0)
    process = FORK.Process(target=attack, args=(port, opened), daemon=True)
    process.start()
    try:
        until(lambda: opened.value >= CONNECTIONS - len(KINDS), 60)
        yield
    finally:
        process.kill()
        process.join()


def test_labels_are_stored_within_a_second_and_little_is_logged(tmp_path):
    log = tmp_path / "log"
    name = str(tmp_path / "store.db")
    argv = ["app", "--db", name, "--port", 0]
    with open_store(name) as store:
        campaign, people = prepare(store, annotators=5, traces=20, overlap=3)
        with log.open("w") as file, Forked(SOURCE, argv, stderr=file.fileno()) as server:
            try:
                until(lambda: "Ctrl-C" in log.read_text())
                port = int(re.search(r"http://127\.0\.0\.1:(\d+)", log.read_text())[1])
                with attacked(port):
                    # Whoever is cut off sends it again, as the page does.
                    annotators = label_together(store, port, campaign, people, lambda share: None)
            finally:
                server.kill()
        assert faults(store, campaign, annotators) == []
    took = [seconds for one in annotators for seconds in one.seconds]
    assert statistics.quantiles(took, n=20)[-1] < SECONDS
    assert log.stat().st_size < LOG
