"""An hour of everything at once, on one server.

python -m tests.benchmarks.mixed_load [--minutes 60] [--scorers 8] [--browsers 20] [--annotators 10]

starts `stepsight app` on a new store with people, a campaign and two datasets that jobs judge meanwhile: one that
Results measures again and again, small enough for that page, then a large one. Scorers are programs that post one
solution after the other, browsers open pages, annotators label. Prints the memory of the server, p95 and errors by
the minute, and at the end, or once it is interrupted (Ctrl-C), p50 and p95 of each and of each page, and what the
server logged last where something failed. Exits with 1 at an error, a p95 of pages or labelling over 1 s, memory
over 1.1 GB, or memory that grows by more than a tenth after the first sixth of the time.
"""

import argparse
import json
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPConnection
from itertools import chain
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
DATASET, MEASURED = "synthetic", "measured"
# How many traces of each are judged in a minute, about: the first by mini-causal, the other by mini-bidir.
_RATES = {DATASET: 1_000, MEASURED: 150}
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


class Clock:
    """Tells how long the load goes on: for so many seconds, or until it is stopped."""

    def __init__(self, seconds: float) -> None:
        self._begun, self._seconds = time.monotonic(), seconds
        self._stopped = threading.Event()

    @property
    def passed(self) -> float:
        """The seconds since it began."""
        return time.monotonic() - self._begun

    def is_over(self) -> bool:
        return self._stopped.is_set() or self.passed >= self._seconds

    def stop(self, *signal: object) -> None:
        """Have everybody end what they are at."""
        self._stopped.set()

    def rest(self, seconds: float) -> None:
        """Wait so long, or until it is stopped."""
        self._stopped.wait(seconds)


def score(client: Client, chance: random.Random, clock: Clock) -> None:
    """A program that has solutions scored."""
    traces = list(generate(chance.randrange(10**6), 200))
    number = 0
    while not clock.is_over():
        number += 1
        trace = chance.choice(traces)
        steps = [f"{text} ({number})" for text in trace.substeps]
        if number % _LONG == 0:
            steps = (steps * 20)[:60]
        body = {"problem": trace.problem, "steps": steps, "mode": chance.choice(list(Mode)).value}
        client.ask("POST", "/api/v1/score", body)
        clock.rest(chance.expovariate(1 / _ASKS))


def browse(
    port: int, token: str, into: dict[str, Requests], chance: random.Random, clock: Clock, traces: Sequence[int]
) -> None:
    """A person who looks at one page after the other; `into` has the requests of each page, and how long it took
    until one was whole that came without its scores first, and was asked for again as the page's script does."""
    while not clock.is_over():
        trace = chance.choice(traces)
        query = urlencode({"dataset": DATASET, "q": str(chance.randint(1, 40)), "sort": "position"})
        own = (f"/browse?trace={trace}", f"/browse?trace={trace}", f"/evidence?trace={trace}", f"/browse?{query}")
        page = chance.choice([*own, f"/results?dataset={MEASURED}", *_PAGES])
        kind = page.split("=", maxsplit=1)[0]
        client = Client(port, token, into.setdefault(kind, Requests()))
        begun = time.monotonic()
        late = AGAIN.search(client.ask("GET", page))
        while late and not clock.is_over():
            clock.rest(_AGAIN)
            late = AGAIN.search(client.ask("GET", page))
        if not late:
            into.setdefault(f"{kind}, {WHOLE}", Requests()).seconds.append(time.monotonic() - begun)
        clock.rest(chance.expovariate(1 / _READS))


def fill(store: Store, name: str, seed: int, traces: int) -> None:
    """A dataset of synthetic traces."""
    with store.write() as session:
        writer = TraceWriter(session, name, "synthetic", "made")
        made: list[tuple[str, Trace]] = [(trace.id, trace) for trace in generate(seed, traces)]
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


@dataclass
class Load:
    """What the clients of all kinds met so far. `by_page` has the requests of each kind of page, and under a name
    that ends with `WHOLE` how long it took until one was whole."""

    annotators: Sequence[Annotator]
    scoring: Requests = field(default_factory=Requests)
    by_page: dict[str, Requests] = field(default_factory=dict)
    memory: list[int] = field(default_factory=list)

    @property
    def looking(self) -> Requests:
        """The pages of all kinds together."""
        kinds = dict(self.by_page)
        answers = [one for kind, one in kinds.items() if not kind.endswith(WHOLE)]
        return _together([one.seconds for one in answers], [one.errors for one in kinds.values()])

    @property
    def labelling(self) -> Requests:
        return _together([one.seconds for one in self.annotators], [one.errors for one in self.annotators])

    @property
    def errors(self) -> list[str]:
        return [*self.scoring.errors, *self.looking.errors, *self.labelling.errors]

    def watch(self, pid: int, clock: Clock) -> None:
        """Note the memory of a process every second, and print what there is every minute."""
        while not clock.is_over():
            self.memory.append(memory(pid))
            if len(self.memory) % 60 == 0:
                line = f"  {clock.passed / 60:.0f} min: {self.memory[-1] / 1e6:.0f} MB"
                for name, one in (("pages", self.looking), ("labels", self.labelling)):
                    line += f", {name} p95 {1000 * percentile(one.seconds, 0.95):.0f} ms" if one.seconds else ""
                print(f"{line}, {len(self.errors)} errors", flush=True)
            clock.rest(1)

    def report(self) -> bool:
        """Print everything; whether all that it has to hold holds."""
        print(self.scoring.line("scored"))
        print(self.looking.line("pages"))
        for page in sorted(self.by_page):
            print(f"  {self.by_page[page].line(page)}")
        print(self.labelling.line("acts of labelling"))
        settled, most = max(self.memory[: max(1, len(self.memory) // 6)]), max(self.memory)
        sizes = [f"{size / 1e6:.0f} MB" for size in (self.memory[0], settled, most)]
        print("memory: {} at first, {} at most in the first sixth, {} at most".format(*sizes))
        for error, times in Counter(self.errors).most_common(10):
            print(f"  {times} x {error}")
        slow = any(percentile(one.seconds, 0.95) > LIMIT for one in (self.looking, self.labelling) if one.seconds)
        return not (self.errors or slow or most > MOST_MEMORY or most > GROWTH * settled)


def _together(seconds: Iterable[Sequence[float]], errors: Iterable[Sequence[str]]) -> Requests:
    return Requests([*chain.from_iterable(seconds)], 0, [*chain.from_iterable(errors)])


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
        for seed, (name, rate) in enumerate(_RATES.items(), 31):
            fill(store, name, seed, int(rate * args.minutes))
        boss = open_login(store, add_user(store, "somebody", Role.ADMIN, None))
    with served(folder) as port:
        admin = Client(port, boss, Requests())
        rows = json.loads(admin.ask("GET", f"/api/v1/datasets/{DATASET}/traces?limit=500"))["traces"]
        for dataset, evaluator in ((MEASURED, "mini-bidir"), (DATASET, "mini-causal")):
            admin.ask("POST", "/api/v1/jobs", {"dataset": dataset, "evaluator": evaluator})
        clock = Clock(60 * args.minutes)
        signal.signal(signal.SIGINT, clock.stop)
        load = Load([Annotator(port, user, token, campaign, False, _ACTS) for user, token in people])
        work = [partial(load.watch, server_of(folder), clock)]
        for number in range(args.scorers):
            work.append(partial(score, Client(port, boss, load.scoring), random.Random(number), clock))
        traces = [row["trace"] for row in rows]
        for number in range(args.browsers):
            work.append(partial(browse, port, boss, load.by_page, random.Random(1_000 + number), clock, traces))
        work += [partial(annotator.work, clock.is_over) for annotator in load.annotators]
        threads = [threading.Thread(target=part) for part in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        jobs = json.loads(admin.ask("GET", "/api/v1/jobs"))
    holds = load.report()
    for job in reversed(jobs):
        print(f"job on {job['dataset']}: {job['state']}, {job['done']:,} of {job['total']:,} traces")
    if load.errors:
        print("\n".join((folder / "server.log").read_text(encoding="utf-8").splitlines()[-40:]))
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
