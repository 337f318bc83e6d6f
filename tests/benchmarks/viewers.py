"""Viewers of trace pages at the same time.

python -m tests.benchmarks.viewers [--viewers 50] [--seconds 20] [--pause 2.0]

starts `stepsight app` on a store with the gallery, and lets each viewer open one trace after another. A viewer
reads for `pause` seconds on average between two. Prints how many were opened, the errors, and how long a trace took
at the median and at p95. Exits with 1 at an error or a p95 over 1 s.
"""

import argparse
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path

ROOT = Path(__file__).parents[2]
_LIMIT = 1.0


class Viewers:
    """`count` viewers of a dataset on the server on `port`.

    `seconds` holds how long each trace took, `errors` what failed.
    """

    def __init__(self, port: int, count: int, pause: float, dataset: str = "gallery") -> None:
        self.port, self.count, self.pause = port, count, pause
        self.seconds: list[float] = []
        self.errors: list[str] = []
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        rows = json.loads(_get(connection, f"/api/v1/datasets/{dataset}/traces?limit=500"))["traces"]
        self.traces = [row["trace"] for row in rows]
        connection.close()

    def watch(self, seconds: float) -> None:
        """Let all of them look for that long."""
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=self._view, args=(number, until)) for number in range(self.count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _view(self, number: int, until: float) -> None:
        chance = random.Random(number)
        # They do not all come in the same moment, and do not all turn the page at once.
        time.sleep(chance.uniform(0, self.pause))
        while time.monotonic() < until:
            trace = chance.choice(self.traces)
            start = time.perf_counter()
            # The server closes one that was idle for a while, as a browser would notice.
            connection = HTTPConnection("127.0.0.1", self.port, timeout=30)
            try:
                shown = _get(connection, f"/browse?trace={trace}").decode()
                assert f'data-trace="{trace}"' in shown, f"trace {trace} is not shown"
                self.seconds.append(time.perf_counter() - start)
            except Exception as error:  # whatever a viewer would see is counted
                self.errors.append(f"{type(error).__name__}: {error}"[:200])
            finally:
                connection.close()
            time.sleep(chance.expovariate(1 / self.pause) if self.pause else 0)


def _get(connection: HTTPConnection, path: str) -> bytes:
    connection.request("GET", path)
    response = connection.getresponse()
    body = response.read()
    assert response.status == 200, f"{path}: status {response.status}"
    return body


@contextmanager
def served(folder: Path) -> Iterator[int]:
    """`stepsight app` on a new store in `folder`; yields its port. It logs into `server.log` there: a pipe that is
    not read fills, and the server stands still."""
    command = [sys.executable, "-m", "stepsight", "app", "--db", str(folder / "store.db"), "--port", "0"]
    log = folder / "server.log"
    with log.open("w") as written, subprocess.Popen(command, stderr=written, cwd=ROOT) as process:
        try:
            while "Ctrl-C" not in log.read_text(encoding="utf-8"):
                assert process.poll() is None, log.read_text(encoding="utf-8")
                time.sleep(0.05)
            yield int(re.findall(r"http://127\.0\.0\.1:(\d+)", log.read_text(encoding="utf-8"))[0])
        finally:
            process.terminate()


def percentile(values: list[float], share: float) -> float:
    """The value that `share` of the values do not exceed."""
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--viewers", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--pause", type=float, default=2.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as port:
        viewers = Viewers(port, args.viewers, args.pause)
        viewers.watch(args.seconds)
    median, p95 = statistics.median(viewers.seconds), percentile(viewers.seconds, 0.95)
    print(
        f"{args.viewers} viewers for {args.seconds:.0f} s: {len(viewers.seconds):,} traces opened, "
        f"{len(viewers.errors)} errors, median {1000 * median:.0f} ms, p95 {1000 * p95:.0f} ms"
    )
    for error in sorted(set(viewers.errors))[:5]:
        print(f"  {error}")
    return int(bool(viewers.errors) or p95 > _LIMIT)


if __name__ == "__main__":
    sys.exit(main())
