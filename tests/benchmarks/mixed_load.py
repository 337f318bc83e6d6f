"""An hour of everything at once, on one server.

python -m tests.benchmarks.mixed_load [--minutes 60] [--scorers 8] [--browsers 20] [--annotators 10]

starts `stepsight app` on a new store with people, a campaign and a dataset that a job judges meanwhile. Scorers are
programs that post one solution after the other, browsers open pages, annotators label. Prints p50 and p95 of each
and of each page, errors, and the memory of the server, minute by minute. Exits with 1 at an error, a p95 of pages
or labelling over 1 s, memory over 1.1 GB, or memory that grows by more than a tenth after the first sixth of the
time.
"""

import argparse
import json
import random
import re
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import urlencode

from stepsight.app.access.rights import COOKIE
from stepsight.core.judgment import Mode
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role, add_user
from stepsight.storage.traces.writer import TraceWriter
from stepsight.training.synth.corpus import generate
from tests.benchmarks.annotators import Annotator, prepare
from tests.benchmarks.viewers import percentile, served

LIMIT = 1.0
MOST_MEMORY = 1.1e9
GROWTH = 1.1
DATASET = "synthetic"
# Seconds that a person takes between two acts, and a program between two requests.
_READS, _ACTS, _ASKS = 3.0, 2.0, 0.2
# A program sends a long solution once in so many requests.
_LONG = 20
# How a page says that it is not whole yet and to be asked for again, and the seconds after which its script does;
# one that shows the last figures until newer ones are there names seconds of its own.
AGAIN, _AGAIN = re.compile(rb"data-again(?!=\"\d)"), 0.8
WHOLE = "whole"
_PAGES = ("/browse?dataset=gallery", "/", "/jobs", "/data", "/evaluators")


@dataclass
class Requests:
    """The seconds of each request of one kind, how many were put off, and what failed."""

    seconds: list[float] = field(default_factory=list)
    put_off: int = 0
    errors: list[str] = field(default_factory=list)

    def line(self, name: str) -> str:
        """Them in words."""
        if not self.seconds:
            return f"{name}: none, {len(self.errors)} errors"
        p50, p95 = (1000 * percentile(self.seconds, share) for share in (0.5, 0.95))
        off = f", {self.put_off:,} asked to come again" if self.put_off else ""
        return f"{name}: {len(self.seconds):,}, p50 {p50:.0f} ms, p95 {p95:.0f} ms, {len(self.errors)} errors{off}"


class Client:
    """Somebody who is logged in, with a connection of their own for each request, as proxies have it."""

    def __init__(self, port: int, token: str, into: Requests) -> None:
        self._port, self._into = port, into
        self._headers = {"Cookie": f"{COOKIE}-{port}={token}"}

    def ask(self, method: str, path: str, body: object = None) -> bytes:
        """Ask once and take the time; what is answered otherwise than it should be is an error."""
        headers = dict(self._headers)
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body), "application/json"
        start = time.perf_counter()
        connection = HTTPConnection("127.0.0.1", self._port, timeout=180)
        try:
            connection.request(method, path, data, headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status == 429:
                self._into.put_off += 1
                time.sleep(float(answer.headers["Retry-After"]))
            elif answer.status != 200:
                self._into.errors.append(f"{method} {path}: {answer.status} {text[:150]!r}")
            else:
                self._into.seconds.append(time.perf_counter() - start)
        except OSError as error:
            self._into.errors.append(f"{method} {path}: {type(error).__name__}: {error}"[:300])
            text = b""
        finally:
            connection.close()
        return text


def score(client: Client, chance: random.Random, until: float) -> None:
    """A program that has solutions scored."""
    traces = list(generate(chance.randrange(10**6), 200))
    number = 0
    while time.monotonic() < until:
        number += 1
        trace = chance.choice(traces)
        steps = [f"{text} ({number})" for text in trace.substeps]
        if number % _LONG == 0:
            steps = (steps * 20)[:60]
        body = {"problem": trace.problem, "steps": steps, "mode": chance.choice(list(Mode)).value}
        client.ask("POST", "/api/v1/score", body)
        time.sleep(chance.expovariate(1 / _ASKS))


def browse(
    port: int, token: str, into: dict[str, Requests], chance: random.Random, until: float, traces: Sequence[int]
) -> None:
    """A person who looks at one page after the other; `into` has the requests of each page, and how long it took
    until one was whole that came without its scores first, and was asked for again as the page's script does."""
    while time.monotonic() < until:
        trace = chance.choice(traces)
        query = urlencode({"dataset": DATASET, "q": str(chance.randint(1, 40)), "sort": "position"})
        own = (f"/browse?trace={trace}", f"/browse?trace={trace}", f"/evidence?trace={trace}", f"/browse?{query}")
        page = chance.choice([*own, f"/results?dataset={DATASET}", *_PAGES])
        kind = page.split("=", maxsplit=1)[0]
        client = Client(port, token, into.setdefault(kind, Requests()))
        begun = time.monotonic()
        late = AGAIN.search(client.ask("GET", page))
        while late and time.monotonic() < until:
            time.sleep(_AGAIN)
            late = AGAIN.search(client.ask("GET", page))
        if not late:
            into.setdefault(f"{kind}, {WHOLE}", Requests()).seconds.append(time.monotonic() - begun)
        time.sleep(chance.expovariate(1 / _READS))


def fill(store: Store, traces: int) -> None:
    """A dataset of synthetic traces."""
    with store.write() as session:
        writer = TraceWriter(session, DATASET, "synthetic", "made")
        made: list[tuple[str, Trace]] = [(trace.id, trace) for trace in generate(31, traces)]
        writer.add(made)
        writer.finish("made", "0" * 64)


def memory(pid: int) -> int:
    """The bytes of memory that a process holds."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the process has no memory")


def server_of(folder: Path) -> int:
    """The process of the server of the store in a folder."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if b"app" in words and str(folder / "store.db").encode() in words:
                return int(entry.name)
    raise AssertionError("the server is gone")


def watch(pid: int, until: float, sizes: list[int]) -> None:
    """The memory of a process every second."""
    begun = time.monotonic()
    while time.monotonic() < until:
        sizes.append(memory(pid))
        if len(sizes) % 60 == 0:
            print(f"  {(time.monotonic() - begun) / 60:.0f} min: {sizes[-1] / 1e6:.0f} MB", flush=True)
        time.sleep(1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--scorers", type=int, default=8)
    parser.add_argument("--browsers", type=int, default=20)
    parser.add_argument("--annotators", type=int, default=10)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        return _run(Path(name), args)


def _run(folder: Path, args: argparse.Namespace) -> int:
    with open_store(str(folder / "store.db")) as store:
        acts = int(60 * args.minutes / _ACTS * args.annotators)
        campaign, people = prepare(store, args.annotators, max(50, acts // 6), overlap=3)
        fill(store, int(1_000 * args.minutes))
        boss = open_login(store, add_user(store, "somebody", Role.ADMIN, None))
    scoring, looking, labelling = Requests(), Requests(), Requests()
    by_page: dict[str, Requests] = {}
    with served(folder) as port:
        pid = server_of(folder)
        admin = Client(port, boss, Requests())
        rows = json.loads(admin.ask("GET", f"/api/v1/datasets/{DATASET}/traces?limit=500"))["traces"]
        admin.ask("POST", "/api/v1/jobs", {"dataset": DATASET, "evaluator": "mini-causal"})
        until = time.monotonic() + 60 * args.minutes
        annotators = [Annotator(port, user, token, campaign, False, _ACTS) for user, token in people]
        sizes: list[int] = []
        work = [partial(watch, pid, until, sizes)]
        for number in range(args.scorers):
            work.append(partial(score, Client(port, boss, scoring), random.Random(number), until))
        traces = [row["trace"] for row in rows]
        for number in range(args.browsers):
            work.append(partial(browse, port, boss, by_page, random.Random(1_000 + number), until, traces))
        work += [partial(annotator.work, lambda: time.monotonic() >= until) for annotator in annotators]
        threads = [threading.Thread(target=part) for part in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        answers = [one for kind, one in by_page.items() if not kind.endswith(WHOLE)]
        looking.seconds = [value for one in answers for value in one.seconds]
        looking.errors = [error for one in by_page.values() for error in one.errors]
        labelling.seconds = [value for annotator in annotators for value in annotator.seconds]
        labelling.errors = [error for annotator in annotators for error in annotator.errors]
        (job,) = json.loads(admin.ask("GET", "/api/v1/jobs"))[:1]
    print(scoring.line("scored"))
    print(looking.line("pages"))
    for page in sorted(by_page):
        print(f"  {by_page[page].line(page)}")
    print(labelling.line("acts of labelling"))
    print(f"job: {job['state']}, {job['done']:,} of {job['total']:,} traces")
    settled = max(sizes[: max(1, len(sizes) // 6)])
    first, early, most = (f"{size / 1e6:.0f} MB" for size in (sizes[0], settled, max(sizes)))
    print(f"memory: {first} at first, {early} at most in the first sixth, {most} at most")
    errors = [*scoring.errors, *looking.errors, *labelling.errors]
    for error, times in Counter(errors).most_common(10):
        print(f"  {times} x {error}")
    slow = any(percentile(one.seconds, 0.95) > LIMIT for one in (looking, labelling))
    return int(bool(errors) or slow or max(sizes) > MOST_MEMORY or max(sizes) > GROWTH * settled)


if __name__ == "__main__":
    sys.exit(main())
