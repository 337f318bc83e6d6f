"""Processes that are killed while they write, on SQLite and on PostgreSQL.

    python -m tests.bench.kills [--kills 100] [--database sqlite] [--annotators 8] [--seed 0]

lets people label without a pause, each act under a key that is sent again until it is answered, while a process of
one kind after the other gets SIGKILL at a random moment of its work:

- servers: `stepsight app`, while files are sent to it in parts and their imports are asked for
- workers: `stepsight work`, while it judges
- children: the process that reads an uploaded file for a worker, or its copy
- imports: `stepsight import`
- labels: the server that people label by
- fetches: a worker that fetches an evaluator from a hub and opens it
- backups: `stepsight backup`

Then all that was acknowledged is looked for: the parts of a file, every row of an import that was asked for,
judgments, labels in the log and in each backup that was made after them, and the files of a fetched evaluator, by
their hashes. Prints for each kind the kills, and what was acknowledged, lost, doubled and partial; a backup that
was killed leaves no file or a whole one. Exits with 1 where anything was lost, doubled or partial.
"""

import argparse
import os
import random
import re
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from stepsight.app.jobs.worker import Worker
from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.hubs.hub_cache import cache_of_hub
from stepsight.core.judgment import Mode
from stepsight.storage.backup import check_backup
from stepsight.storage.database.jobs_schema import Job, State, Task
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.schema import DatasetRow, TraceRow, TriangleRow
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.jobs.imports import FileImport, import_upload
from stepsight.storage.jobs.jobs import get_job, list_jobs, resume_job, start_job
from stepsight.storage.jobs.preview import prepare as prepare_reader
from stepsight.storage.judgments.evaluators import list_evaluators
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role, add_user
from stepsight.storage.traces.queries import find_dataset
from tests.annotators import Annotator, prepare
from tests.app.processes import family, is_alive, silence, until
from tests.bench.senders import Fetching, Sender
from tests.checkpoints import write_evaluator
from tests.forked import Forked
from tests.hub import Hub, point_to
from tests.labelling_server import LabellingServer, labelling_server
from tests.postgresql import postgresql_server
from tests.storage.jobs.samples import send
from tests.storage.samples import add, many, plain_row, write_lines

KINDS = ("servers", "workers", "children", "imports", "labels", "fetches", "backups")
LEARNT = ("workers", "children", "imports", "fetches", "backups")
DATABASES = ("sqlite", "postgresql")
_ROWS = 1500
_JUDGED = "to be judged"
# Of a fetched file, for each piece: it comes in half a second.
_PAUSE = 0.005


@dataclass
class Tally:
    """Of one kind: how often it was killed, how often it ended first, what was acknowledged, and what is wrong."""

    kills: int = 0
    ended: int = 0
    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    partial: int = 0

    @property
    def is_sound(self) -> bool:
        return not (self.lost or self.doubled or self.partial)


class Killing:
    """What is killed on the store at `path`, in `folder`, and what is known to be stored for good."""

    def __init__(
        self, store: Store, address: str, server: LabellingServer, hub: Hub, folder: Path, seed: int, traces: int
    ) -> None:
        self.store, self.server, self.folder, self.traces = store, server, folder, traces
        self._address = address
        self.tallies = {kind: Tally() for kind in KINDS}
        self.whole_backups = 0
        self.acknowledged: Callable[[], dict[str, str]] = dict
        self._chance = random.Random(seed)
        self._rows = write_lines(folder / "rows.jsonl", [plain_row(number) for number in range(_ROWS)])
        self._imports = 0
        # The datasets that have all of their rows, and the jobs that were asked to make others, by their names.
        self._whole: list[str] = []
        self._asked: dict[str, int] = {}
        boss = add_user(store, "sender", Role.ADMIN, None)
        self._sender = Sender(boss, open_login(store, boss), self._rows.read_bytes())
        self._hub = hub
        self._fetching = Fetching(store, hub, folder / "published")
        self._evaluator = write_evaluator(folder / "tiny", max_position_embeddings=1024)
        add(store, many(traces), _JUDGED)
        # For how long each works, at most until it is killed; learnt from one that is let go on.
        self._lasts = dict.fromkeys(LEARNT, 60.0)
        self._job: Job | None = None
        self._judged: dict[int, Any] = {}

    def learn(self) -> None:
        """See how long those take that nobody ends."""
        prepare_reader()
        until(_readers)
        for kind in LEARNT:
            start = time.monotonic()
            getattr(self, f"_kill_{kind}")(spared=True)
            self._lasts[kind] = time.monotonic() - start

    def kill(self, kind: str) -> None:
        """Begin work of a kind, and kill it; what it left is looked at, and mended as people would."""
        getattr(self, f"_kill_{kind}")()

    def finish(self) -> None:
        """Let all jobs end, and count what there is of everything."""
        # A job over which three workers ended fails when the next one takes it up.
        for _ in range(2):
            for job in self._open_jobs():
                if job.state == State.FAILED:
                    resume_job(self.store, job.id)
            self._work(*Task).communicate()
        if self._job is not None:
            self._look_at_job()
            self.tallies["workers"].partial += len(self._judged) != self.traces
        self._look_at_fetched()
        for kind, names in (("imports", self._whole), ("servers", self._sender.jobs), ("children", self._asked)):
            self.tallies[kind].acknowledged += _ROWS * len(names)
            for name in names:
                self._count_import(name, kind, is_whole=True)
        self.tallies["workers"].partial += sum(job.state != State.DONE for job in self._open_jobs())

    def _open_jobs(self) -> list[Job]:
        return [job for job in list_jobs(self.store, 10_000) if job.state != State.DONE]

    def _kill_servers(self) -> None:
        """What was sent to it is there when it is back; files are gone on with."""
        tally = self.tallies["servers"]
        # Its worker reads them, and does whatever is to be done.
        hub = {"HF_ENDPOINT": self._hub.url, "HF_HUB_CACHE": str(cache_of_hub())}
        with Forked(None, ["app", "--db", self._address, "--port", 0], os.environ | hub) as process:
            told = ""
            while "Ctrl-C" not in told:
                line = process.stderr.readline() if process.stderr else ""
                assert line, told
                told += line
            found = re.search(r"http://127\.0\.0\.1:(\d+)", told)
            assert found is not None
            others: list[int] = []

            def end() -> None:
                others.extend(family(process.pid)[1:])
                process.kill()

            self._sender.send(int(found[1]), threading.Timer(self._chance.uniform(0.05, 1), end).start)
        tally.kills += 1
        tally.acknowledged = self._sender.answers
        # Its worker ends by itself.
        until(lambda: not any(map(is_alive, others)))
        tally.lost += self._sender.count_lost(self.store)

    def _kill_children(self, *, spared: bool = False) -> None:
        prepare_reader()
        tally, name = self.tallies["children"], f"read-{len(self._asked)}"
        upload = send(self.store, self._sender.user.id, self._rows.read_bytes(), f"{name}.jsonl")
        wanted = FileImport(upload=upload.id, holds="traces", dataset=name, kind="plain")
        self._asked[name] = import_upload(self.store, wanted, self._sender.user.id).id
        worker = Worker(self.store, tasks=(Task.IMPORT,))
        with ThreadPoolExecutor(1) as pool:
            work = pool.submit(worker.work_one)
            if not spared:
                until(lambda: work.done() or len(_readers()) > 1)
                time.sleep(self._chance.uniform(0, self._lasts["children"]))
                readers = [] if work.done() else _readers()
                for one in self._chance.sample(readers, min(1, len(readers))):
                    with suppress(ProcessLookupError):
                        os.kill(one, signal.SIGKILL)
                tally.kills += bool(readers)
                tally.ended += not readers
            work.result()
        self._count_import(name, "children", is_whole=False)
        for job in self._open_jobs():
            if job.task == Task.IMPORT and job.state == State.FAILED:
                resume_job(self.store, job.id)
                worker.work_one()

    def _kill_labels(self) -> None:
        time.sleep(self._chance.uniform(0.05, 0.6))
        self.server.kill()
        self.tallies["labels"].kills += 1
        self.server.start()

    def _kill_imports(self, *, spared: bool = False) -> None:
        self._imports += 1
        name = f"import-{self._imports}"
        process = self._run("import", "jsonl", self._rows, "--dataset", name)
        if self._end(process, "imports", spared=spared):
            self._whole.append(name)
            return
        # All of it may be there: it was killed behind the commit.
        is_there = self._count_import(name, "imports", is_whole=False)
        again = self._run("import", "jsonl", self._rows, "--dataset", name)
        again.communicate()
        if again.returncode == 0 or is_there:
            self._whole.append(name)

    def _kill_workers(self, *, spared: bool = False) -> None:
        state = None if self._job is None else get_job(self.store, self._job.id).state
        if self._job is not None and state == State.FAILED:
            # Three workers in a row were killed before they had got on with it.
            resume_job(self.store, self._job.id)
        elif state in (None, State.DONE):
            self._begin_job()
        self._end(self._work(Task.JUDGE), "workers", spared=spared)
        self._look_at_job()

    def _kill_fetches(self, *, spared: bool = False) -> None:
        """By the job that a killed one left, as long as there is one."""
        self._fetching.begin()
        self._end(self._work(Task.FETCH), "fetches", spared=spared)
        self._look_at_fetched()

    def _look_at_fetched(self) -> None:
        tally = self.tallies["fetches"]
        partial, doubled = self._fetching.look()
        tally.partial += partial
        tally.doubled += doubled
        tally.acknowledged = len(self._fetching.whole)

    def _kill_backups(self, *, spared: bool = False) -> None:
        path = self.folder / f"{self.tallies['backups'].kills + self.tallies['backups'].ended}.backup"
        before = self.acknowledged()
        process = self._run("backup", path)
        is_done = self._end(process, "backups", spared=spared)
        tally = self.tallies["backups"]
        tally.acknowledged += is_done
        if path.exists():
            self._check_backup(path, before)
            path.unlink()
        elif is_done:
            tally.lost += 1

    def _check_backup(self, path: Path, before: dict[str, str]) -> None:
        tally = self.tallies["backups"]
        try:
            check_backup(path)
        except UserError:
            tally.partial += 1
            return
        with open_store(str(path)) as copy:
            log = dict(_logged(copy))
        tally.lost += sum(log.get(key) != moment for key, moment in before.items())
        self.whole_backups += 1

    def _begin_job(self) -> None:
        """Another evaluator each time: what is judged is not judged again."""
        number = self.tallies["workers"].acknowledged
        folder = write_evaluator(self.folder / f"tiny-{number}", seed=number, max_position_embeddings=1024)
        fingerprint = load_evaluator(folder).fingerprint
        dataset = find_dataset(self.store, _JUDGED)
        self._judged = {}
        self._job = start_job(
            self.store, dataset.id, evaluator=folder.name, spec=str(folder), fingerprint=fingerprint,
            mode=Mode.HINDSIGHT,
        )  # fmt: skip

    def _work(self, *tasks: Task) -> Forked:
        """Work until nothing of these tasks is left."""
        silence(self.store)
        source = "import sys; from tests.bench.kills import work_off; work_off(*sys.argv[1:])"
        return Forked(source, [self._address, self._hub.url, cache_of_hub(), *tasks])

    def _look_at_job(self) -> None:
        """That no judgment that was stored has gone, and none was made again."""
        assert self._job is not None
        tally, found = self.tallies["workers"], self._read_judged()
        tally.lost += sum(trace not in found for trace in self._judged)
        tally.doubled += sum(found.get(trace, made) != made for trace, made in self._judged.items())
        tally.acknowledged += len(found.keys() - self._judged.keys())
        self._judged = found

    def _read_judged(self) -> dict[int, Any]:
        assert self._job is not None
        made = select(TriangleRow.trace_id, TriangleRow.created).join_from(TriangleRow, TraceRow)
        made = made.where(TriangleRow.evaluator_id == self._evaluator_id())
        with self.store.read() as session:
            rows = session.execute(made).all()
        self.tallies["workers"].doubled += len(rows) - len({trace for trace, _ in rows})
        return dict(rows)

    def _evaluator_id(self) -> int:
        assert self._job is not None
        known = list_evaluators(self.store)
        return next((one.id for one in known if one.fingerprint == self._job.fingerprint), 0)

    def _count_import(self, name: str, kind: str, *, is_whole: bool) -> bool:
        """Whether a dataset is there; it has all of its rows then."""
        tally = self.tallies[kind]
        with self.store.read() as session:
            joined = select(func.count(TraceRow.id)).join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
            rows = session.scalar(joined.where(DatasetRow.name == name)) or 0
        tally.lost += max(0, _ROWS - rows) if is_whole else 0
        tally.doubled += max(0, rows - _ROWS)
        tally.partial += not is_whole and 0 < rows < _ROWS
        return rows > 0

    def _run(self, *arguments: object) -> Forked:
        return Forked(None, [*arguments, "--db", self._address])

    def _end(self, process: Forked, kind: str, *, spared: bool = False) -> bool:
        """Kill a process at a random moment, unless it is spared; whether it had ended by then, and well."""
        share = 2.0 if spared else self._chance.uniform(0.1, 1)
        moment = time.monotonic() + share * self._lasts[kind]
        while process.returncode is None and time.monotonic() < moment:
            time.sleep(0.005)
        tally = self.tallies[kind]
        if process.returncode is None:
            process.kill()
            tally.kills += 1
        else:
            tally.ended += 1
        process.communicate()
        return process.returncode == 0


def work_off(address, hub, cache, *tasks):
    """Carry out jobs, as a worker does, until none is left."""
    point_to(pytest.MonkeyPatch(), hub, Path(cache))
    with open_store(address) as store:
        worker = Worker(store, tasks=[Task(task) for task in tasks])
        while worker.work_one():
            pass


def _readers():
    """The child of this process that reads uploads, and its copy while that reads one."""
    return [one for one in family(os.getpid()) if b"core.files.child" in _command(one)]


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        # It has ended.
        return b""


def run(address, folder, kills, people, seed=0, traces=1000):
    """So many kills, as many of each kind, on a new store; workers judge so many traces."""
    with ExitStack() as stack:
        store = stack.enter_context(open_store(address))
        server = stack.enter_context(labelling_server(address))
        hub = Hub()
        hub.pause = _PAUSE
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("STEPSIGHT_CACHE", str(folder / "cache"))
        point_to(patch, hub.url, folder / "hub")
        stack.enter_context(hub.running())
        campaign, tokens = prepare(store, people, traces=60 * kills + 100, overlap=people)
        annotators = [Annotator(server.port, user, token, campaign, True) for user, token in tokens]
        killing = Killing(store, address, server, hub, folder, seed, traces)
        killing.acknowledged = lambda: _acknowledged(annotators)
        done = threading.Event()
        with ThreadPoolExecutor(people) as pool:
            work = [pool.submit(annotator.work, done.is_set) for annotator in annotators]
            try:
                killing.learn()
                _kill_all(killing, kills)
            finally:
                done.set()
            for future in work:
                future.result()
        killing.finish()
        _count_labels(killing, annotators)
        return killing


def _kill_all(killing, kills):
    most = Counter(KINDS[number % len(KINDS)] for number in range(kills))
    while any(killing.tallies[kind].kills < most[kind] for kind in KINDS):
        for kind in KINDS:
            if killing.tallies[kind].kills < most[kind]:
                killing.kill(kind)


def _acknowledged(annotators):
    """The moments of the events that the server said it stored, by key. A copy: people go on."""
    return {key: act[0] for one in annotators for key, act in list(one.acknowledged.items())}


def _logged(store):
    """The keys and the moments of the log's events."""
    with store.read() as session:
        events = session.execute(select(EventRow.key, EventRow.moment))
        return [(key, moment.isoformat()) for key, moment in events]


def _count_labels(killing, annotators):
    tally, said, events = killing.tallies["labels"], _acknowledged(annotators), _logged(killing.store)
    log = dict(events)
    tally.acknowledged = len(said)
    tally.lost += sum(log.get(key) != moment for key, moment in said.items())
    tally.doubled += len(events) - len(log) + len(log.keys() - said.keys())
    # What a person saw go wrong.
    for error in (error for one in annotators for error in one.errors):
        print(error)
        tally.partial += 1


def main():
    parser = argparse.ArgumentParser(description="Kills of whatever writes, under load.")
    parser.add_argument("--kills", type=int, default=100, help="on each database")
    parser.add_argument("--database", choices=DATABASES, action="append", help="default: each")
    parser.add_argument("--annotators", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    are_sound = [_report(one, args.kills, args.annotators, args.seed) for one in args.database or DATABASES]
    sys.exit(not all(are_sound))


def _report(database, kills, people, seed):
    """Kill on one database and print what came of it. True if nothing was lost, doubled or partial."""
    start = time.perf_counter()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        address = str(folder / "store.db")
        if database == "postgresql":
            address = stack.enter_context(postgresql_server()).make()
        killing = run(address, folder, kills, people, seed)
    for kind, tally in killing.tallies.items():
        print(
            f"{database}, {kind}: {tally.kills} kills ({tally.ended} ended first), {tally.acknowledged:,}"
            f" acknowledged, {tally.lost} lost, {tally.doubled} doubled, {tally.partial} partial"
        )
    total = sum(tally.kills for tally in killing.tallies.values())
    took = time.perf_counter() - start
    print(f"{total} kills in {took:.0f} s; {killing.whole_backups} backups were looked at and are whole")
    return all(tally.is_sound for tally in killing.tallies.values())


if __name__ == "__main__":
    main()
