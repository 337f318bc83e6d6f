"""Processes that are killed while they write: the server that people label by, imports, jobs and backups.

    python -m tests.bench.kills [--kills 100] [--annotators 8]

lets people label without a pause, each act under a key that is sent again until it is answered, while a process of
one of the four kinds after the other gets SIGKILL at a random moment of its work. Then all that was acknowledged is
looked for: labels in the log, every row of an import whose command ended well, judgments that were stored, and the
labels in each backup that was made after them. Prints for each kind the kills, and what was acknowledged, lost and
doubled; a backup that was killed leaves no file or a whole one. Exits with 1 where anything was lost, doubled or
partial.
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Mode
from stepsight.storage.backup.backup import check_backup
from stepsight.storage.database.labelling_schema import EventRow
from stepsight.storage.database.schema import DatasetRow, JudgmentRow, TraceRow
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.jobs.jobs import Job, State, get_job, resume_job, start_job
from stepsight.storage.judgments.evaluators import list_evaluators
from stepsight.storage.traces.queries import find_dataset
from tests.annotators import Annotator, prepare
from tests.app.processes import silence
from tests.checkpoints import write_evaluator
from tests.forked import Forked
from tests.labelling_server import LabellingServer, labelling_server
from tests.storage.samples import add, many, plain_row, write_lines

KINDS = ("labels", "imports", "jobs", "backups")
_ROWS = 1500
_JUDGED = "to be judged"


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

    def __init__(self, store: Store, server: LabellingServer, folder: Path, seed: int, traces: int) -> None:
        self.store, self.server, self.folder, self.traces = store, server, folder, traces
        self.tallies = {kind: Tally() for kind in KINDS}
        self.whole_backups = 0
        self.acknowledged: Callable[[], dict[str, str]] = dict
        self._chance = random.Random(seed)
        self._rows = write_lines(folder / "rows.jsonl", [plain_row(number) for number in range(_ROWS)])
        self._imports = 0
        self._whole: list[str] = []
        self._evaluator = write_evaluator(folder / "tiny", max_position_embeddings=1024)
        add(store, many(traces), _JUDGED)
        # For how long each works, at most until it is killed; learnt from one that is let go on.
        self._lasts = {"imports": 60.0, "jobs": traces / 250, "backups": 60.0}
        self._job: Job | None = None
        self._judged: dict[int, Any] = {}

    def learn(self) -> None:
        """See how long an import and a backup take that nobody ends."""
        for kind, begin in (("imports", self._kill_imports), ("backups", self._kill_backups)):
            start = time.monotonic()
            begin(spared=True)
            self._lasts[kind] = time.monotonic() - start

    def kill(self, kind: str) -> None:
        """Begin work of a kind, and kill it; what it left is looked at, and mended as people would."""
        getattr(self, f"_kill_{kind}")()

    def finish(self) -> None:
        """Let the job end, and count what there is of everything."""
        if self._job is not None:
            if get_job(self.store, self._job.id).state == State.FAILED:
                resume_job(self.store, self._job.id)
            self._work_off(None)
            self._look_at_job()
            job = get_job(self.store, self._job.id)
            self.tallies["jobs"].partial += job.state != State.DONE or len(self._judged) != self.traces
        for name in self._whole:
            self.tallies["imports"].acknowledged += _ROWS
            self._count_import(name, is_whole=True)

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
        is_there = self._count_import(name, is_whole=False)
        again = self._run("import", "jsonl", self._rows, "--dataset", name)
        again.communicate()
        if again.returncode == 0 or is_there:
            self._whole.append(name)

    def _kill_jobs(self) -> None:
        state = None if self._job is None else get_job(self.store, self._job.id).state
        if self._job is not None and state == State.FAILED:
            # Three workers in a row were killed before they had got on with it.
            resume_job(self.store, self._job.id)
        elif state in (None, State.DONE):
            self._begin_job()
        self._work_off(self._chance.uniform(0.3, 1) * self._lasts["jobs"])
        self._look_at_job()

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
        number = self.tallies["jobs"].acknowledged
        folder = write_evaluator(self.folder / f"tiny-{number}", seed=number, max_position_embeddings=1024)
        fingerprint = load_evaluator(folder).fingerprint
        dataset = find_dataset(self.store, _JUDGED)
        self._judged = {}
        self._job = start_job(
            self.store, dataset.id, evaluator=folder.name, spec=str(folder), fingerprint=fingerprint,
            mode=Mode.HINDSIGHT,
        )  # fmt: skip

    def _work_off(self, seconds: float | None) -> None:
        """Work for so long; without a limit until nothing is left."""
        silence(self.store)
        process = self._run("work", "--once")
        if seconds is None:
            process.communicate()
            return
        self._end(process, "jobs", seconds)

    def _look_at_job(self) -> None:
        """That no judgment that was stored has gone, and none was made again."""
        assert self._job is not None
        tally, found = self.tallies["jobs"], self._read_judged()
        tally.lost += sum(trace not in found for trace in self._judged)
        tally.doubled += sum(found.get(trace, made) != made for trace, made in self._judged.items())
        tally.acknowledged += len(found.keys() - self._judged.keys())
        self._judged = found

    def _read_judged(self) -> dict[int, Any]:
        assert self._job is not None
        made = select(JudgmentRow.trace_id, JudgmentRow.created).join_from(JudgmentRow, TraceRow)
        made = made.where(JudgmentRow.evaluator_id == self._evaluator_id())
        with self.store.read() as session:
            rows = session.execute(made).all()
        self.tallies["jobs"].doubled += len(rows) - len({trace for trace, _ in rows})
        return dict(rows)

    def _evaluator_id(self) -> int:
        assert self._job is not None
        known = list_evaluators(self.store)
        return next((one.id for one in known if one.fingerprint == self._job.fingerprint), 0)

    def _count_import(self, name: str, *, is_whole: bool) -> bool:
        """Whether a dataset is there; it has all of its rows then."""
        tally = self.tallies["imports"]
        with self.store.read() as session:
            joined = select(func.count(TraceRow.id)).join(DatasetRow, DatasetRow.id == TraceRow.dataset_id)
            rows = session.scalar(joined.where(DatasetRow.name == name)) or 0
        tally.lost += max(0, _ROWS - rows) if is_whole else 0
        tally.doubled += max(0, rows - _ROWS)
        tally.partial += not is_whole and 0 < rows < _ROWS
        return rows > 0

    def _run(self, *arguments: object) -> Forked:
        return Forked(None, [*arguments, "--db", self.store.name])

    def _end(self, process: Forked, kind: str, after: float | None = None, *, spared: bool = False) -> bool:
        """Kill a process at a random moment, unless it is spared; whether it had ended by then, and well."""
        share = 1.0 if spared else self._chance.uniform(0.1, 1.1)
        until = time.monotonic() + (after or share * self._lasts[kind])
        while process.returncode is None and time.monotonic() < until:
            time.sleep(0.005)
        tally = self.tallies[kind]
        if process.returncode is None:
            process.kill()
            tally.kills += 1
        else:
            tally.ended += 1
        process.communicate()
        return process.returncode == 0


def run(path: Path, folder: Path, kills: int, people: int, seed: int = 0, traces: int = 2000) -> Killing:
    """So many kills, a quarter of each kind, on a new store; jobs are over so many traces."""
    with ExitStack() as stack:
        store = stack.enter_context(open_store(str(path)))
        server = stack.enter_context(labelling_server(str(path)))
        campaign, tokens = prepare(store, people, traces=60 * kills + 100, overlap=people)
        annotators = [Annotator(server.port, user, token, campaign, True) for user, token in tokens]
        killing = Killing(store, server, folder, seed, traces)
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


def _kill_all(killing: Killing, kills: int) -> None:
    most = Counter(KINDS[number % len(KINDS)] for number in range(kills))
    while any(killing.tallies[kind].kills < most[kind] for kind in KINDS):
        for kind in KINDS:
            if killing.tallies[kind].kills < most[kind]:
                killing.kill(kind)


def _acknowledged(annotators: Sequence[Annotator]) -> dict[str, str]:
    """The moments of the events that the server said it stored, by key. A copy: people go on."""
    return {key: act[0] for one in annotators for key, act in list(one.acknowledged.items())}


def _logged(store: Store) -> list[tuple[str, str]]:
    """The keys and the moments of the log's events."""
    with store.read() as session:
        events = session.execute(select(EventRow.key, EventRow.moment))
        return [(key, moment.isoformat()) for key, moment in events]


def _count_labels(killing: Killing, annotators: Sequence[Annotator]) -> None:
    tally, said, events = killing.tallies["labels"], _acknowledged(annotators), _logged(killing.store)
    log = dict(events)
    tally.acknowledged = len(said)
    tally.lost += sum(log.get(key) != moment for key, moment in said.items())
    tally.doubled += len(events) - len(log) + len(log.keys() - said.keys())
    # What a person saw go wrong.
    tally.partial += sum(len(one.errors) for one in annotators)


def main() -> None:
    parser = argparse.ArgumentParser(description="Kills of whatever writes, under load.")
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--annotators", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        killing = run(folder / "store.db", folder, args.kills, args.annotators, args.seed)
    for kind, tally in killing.tallies.items():
        print(
            f"{kind}: {tally.kills} kills ({tally.ended} ended first), {tally.acknowledged:,} acknowledged,"
            f" {tally.lost} lost, {tally.doubled} doubled, {tally.partial} partial"
        )
    total = sum(tally.kills for tally in killing.tallies.values())
    took = time.perf_counter() - start
    print(f"{total} kills in {took:.0f} s; {killing.whole_backups} backups were looked at and are whole")
    sys.exit(not all(tally.is_sound for tally in killing.tallies.values()))


if __name__ == "__main__":
    main()
