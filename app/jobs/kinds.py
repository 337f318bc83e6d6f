"""The kinds of jobs: what a worker does for each, how its progress is described, and the evaluators for them, which
are loaded one at a time and within the free memory.

To add a kind, add it to `storage.database.jobs_schema.Task` and `KINDS`.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from stepsight.app.jobs.lease import JobLease, WorkerSignals
from stepsight.app.markup.text import duration
from stepsight.core.errors import UserError, counted
from stepsight.core.evaluator_summary import split_reading
from stepsight.core.evaluators.opening import fetch_evaluator, fetched_in, open_placement
from stepsight.core.judgment import Mode
from stepsight.core.models.location import is_shipped
from stepsight.core.models.memory import check_memory, has_room, memory_of
from stepsight.core.models.placement import Placement
from stepsight.core.paths import format_bytes
from stepsight.storage.database.jobs_schema import Job, State, Task
from stepsight.storage.database.store import Store
from stepsight.storage.jobs.imports import run_import
from stepsight.storage.jobs.jobs import Judging, read_fetch, read_judging
from stepsight.storage.judgments.evaluators import register_loaded
from stepsight.storage.judgments.judgments import count_missing, missing_traces, save_judgments
from stepsight.storage.traces.queries import find_dataset

if TYPE_CHECKING:
    from stepsight.core.scoring.scorer import Scorer

# How many seconds others have to release memory.
_ROOM = 10.0


class JobEvaluators:
    """Loads evaluators for jobs, and keeps the last one in memory. `place` and `ask_room` mean the same as for
    `Worker`."""

    def __init__(
        self, place: Placement | None, signals: WorkerSignals, ask_room: Callable[[int], None] | None
    ) -> None:
        self.place, self._signals, self._ask_room = place, signals, ask_room
        self._loaded: tuple[tuple[str, str], Scorer] | None = None

    def find_room(self, name: str, needed: int) -> None:
        """Ask for memory to be freed if too little is free for an evaluator called `name`. Raises `UserError` if
        that does not free enough."""
        deadline = time.monotonic() + _ROOM
        if self._ask_room is not None and not has_room(needed):
            self._ask_room(needed)
            while not has_room(needed) and time.monotonic() < deadline and not self._signals.wait(0.1):
                pass
        check_memory(name, needed)

    def rest(self) -> None:
        """Release the evaluator in memory unless it is a shipped one, because the server may need the memory."""
        if self._loaded is not None and not is_shipped(self._loaded[0][0]):
            self._loaded = None

    def scorer(self, job: Judging) -> "Scorer":
        """Return a scorer for the job's evaluator, reusing the last scorer if it is for the same evaluator. Raises
        `UserError` if the evaluator cannot be loaded."""
        if self._loaded is None or self._loaded[0] != (job.spec, job.fingerprint):
            self._loaded = None
            scorer = self._load(job)
            self._loaded = (job.spec, scorer.evaluator.fingerprint), scorer
        return self._loaded[1]

    def _load(self, job: Judging) -> "Scorer":
        """Load the evaluator of a job on the device and in the data type that the server uses for it. A shipped
        evaluator is loaded at `place` only if it was named when the server started."""
        # These imports load PyTorch, which a worker without a job does not need.
        from stepsight.core.evaluators.loading import load_evaluator, load_fetched
        from stepsight.core.scoring.scorer import Scorer

        place = self.place or Placement()
        folder, reading = split_reading(job.spec)
        fetched = fetched_in(folder)
        if fetched is not None:
            place = open_placement(fetched, place)
            if place.on_processor:
                self.find_room(fetched.name, memory_of(fetched, place.dtype))
            evaluator = load_fetched(fetched, place, reading)
        else:
            placement, shipped = (place.device, place.dtype, place.device_map), is_shipped(job.spec)
            evaluator = load_evaluator(job.spec, *(() if shipped else placement))
            if shipped and self.place is not None and evaluator.fingerprint != job.fingerprint:
                placed = load_evaluator(job.spec, *placement)
                evaluator = placed if placed.fingerprint == job.fingerprint else evaluator
        return Scorer(replace(evaluator, name=job.evaluator))


def fetch_model(store: Store, evaluators: JobEvaluators, job: Job, hold: JobLease) -> str:
    """Fetch a model and load it once as a check. Returns a description of the evaluator."""
    fetch, place = read_fetch(job.request), evaluators.place or Placement()
    fetched = fetch_evaluator(fetch.repo, fetch.revision, fetch.parts, hold.report, place, evaluators.find_room)
    return f"{fetched.name}: {fetched.format} format, inputs of up to {fetched.context:,} tokens."


def import_file(store: Store, evaluators: JobEvaluators, job: Job, hold: JobLease) -> str:
    """Import a file, and return a description of the outcome."""
    imported = run_import(store, job.request, hold.report)
    hold.name_dataset(imported.dataset_id, imported.left_out)
    return imported.summary


def judge(store: Store, evaluators: JobEvaluators, job: Job, hold: JobLease) -> str:
    """Judge the traces that the evaluator has not judged yet. Returns a remark if the evaluator has changed since
    the job was queued, or "".

    Raises `UserError` if its weights now have a different type, which makes it a different evaluator, or if a
    different job is doing the same work.
    """
    request, dataset = read_judging(job), find_dataset(store, job.dataset)
    scorer = evaluators.scorer(request)
    evaluator, remark = scorer.evaluator, ""
    if evaluator.fingerprint != request.fingerprint:
        if evaluator.dtype != request.dtype:
            raise UserError(
                f"{request.spec}: the job was started for another type of weights than {evaluator.dtype}.",
                "Start it again.",
            )
        hold.take_for(evaluator.fingerprint)
        remark = "The evaluator has changed since the job was started; its current version was used."
    row, mode = register_loaded(store, evaluator), Mode(request.mode)
    judged_in = store, dataset.id, row.id, mode
    hold.begin(dataset.traces, dataset.traces - count_missing(*judged_in))
    events = scorer.stream(missing_traces(*judged_in), mode, hold.leave_out)
    save_judgments(store, row.id, hold.watch(events))
    return remark


def _judging_progress(job: Job) -> str:
    """Describe the progress of an evaluator in words, such as `120 of 3,000 traces · 14.2 per second · 4 min left ·
    2 left out as too long`."""
    parts = [f"{job.done:,} of {job.total:,} traces"]
    if job.rate:
        parts.append(f"{job.rate:,.1f} per second" if job.rate >= 1 else f"{60 * job.rate:,.1f} per minute")
    if job.seconds_left is not None and job.state == State.RUNNING:
        parts.append(f"{duration(job.seconds_left)} left")
    if job.left_out:
        parts.append(f"{job.left_out:,} left out as too long")
    return " · ".join(parts)


def fetch_progress(job: Job) -> str:
    """Describe a fetch's progress, such as `1.2 GB of 3.1 GB · 24.0 MB per second · 2 min left`, or `3.1 GB` when
    it is done."""
    parts = [_bytes_done(job)]
    if job.rate:
        parts.append(f"{format_bytes(int(job.rate))} per second")
    if job.seconds_left and job.state == State.RUNNING:
        parts.append(f"{duration(job.seconds_left)} left")
    elif job.state == State.RUNNING and job.done >= job.total:
        parts.append("test-loading")
    return " · ".join(parts)


def _import_progress(job: Job) -> str:
    """Describe an import's progress, such as `1.2 MB of 3.4 MB · 2 bad rows left out`. Once it is done, the text is
    `3.4 MB · 2 bad rows left out`."""
    bad = f"{counted(job.left_out, 'bad row')} left out" if job.left_out else ""
    return " · ".join(filter(None, (_bytes_done(job) if job.total else "", bad)))


def _bytes_done(job: Job) -> str:
    whole = format_bytes(job.total)
    return whole if job.state == State.DONE else f"{format_bytes(job.done)} of {whole}"


class JobKind(NamedTuple):
    """A kind of job. `run` carries a job out and returns a description of the outcome, and `progress` describes
    what is done so far."""

    run: Callable[[Store, JobEvaluators, Job, JobLease], str]
    progress: Callable[[Job], str]


KINDS = {
    Task.JUDGE: JobKind(judge, _judging_progress),
    Task.FETCH: JobKind(fetch_model, fetch_progress),
    Task.IMPORT: JobKind(import_file, _import_progress),
}
