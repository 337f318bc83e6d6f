"""Scoring a pool with workers on Ray Data, on this machine or on a cluster.

Each worker loads the evaluator and reads its chunks from the pool's files itself, which every machine has to have
at the same place. Scores come back in the pool's order; what a worker had that died, another one does.
"""

import json
import logging
import os
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.formats.loading import load_evaluator
from stepsight.core.models.placement import Placement
from stepsight.training.experiments.filtering.pool import Pool
from stepsight.training.experiments.filtering.scores import ScoreRow, score_row
from stepsight.training.experiments.filtering.scoring import ChunkScorer

# A worker that waits for a processor which all workers together hold waits for ever: reading needs some too.
_SPARE = 2
# Numbers of chunks and lines of scores are all that goes through it.
_OBJECT_STORE = 200_000_000
_MOST_BLOCKS = 1_000


def score_on_ray(
    pool: Pool, evaluator: str, fingerprint: str, place: Placement, numbers: Sequence[int], size: int, workers: int
) -> Generator[list[ScoreRow], None, None]:
    """Yield the scores of each of the chunks `numbers`, in their order.

    `evaluator` is what `load_evaluator` takes, and has to have that fingerprint wherever it is loaded. Each worker
    has one GPU of its own where `place` asks for one. Raises `UserError` where Ray is missing or has no room for so
    many workers, or one fails.
    """
    ray = import_ray()
    gpus = 1 if place.device.startswith("cuda") else 0
    where = Placement("cuda" if gpus else "cpu", place.dtype)
    with _running(ray, workers):
        check_room(ray.cluster_resources(), workers, gpus)
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order = True
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        count = min(len(numbers), _MOST_BLOCKS)
        scored = ray.data.range(len(numbers), override_num_blocks=count).map_batches(
            _RayWorker,
            batch_size=1,
            compute=ray.data.ActorPoolStrategy(size=workers),
            fn_constructor_kwargs={
                "pool": pool,
                "evaluator": evaluator,
                "fingerprint": fingerprint,
                "place": where,
                "numbers": numbers,
                "size": size,
            },
            num_cpus=1,
            num_gpus=gpus,
        )
        try:
            for row in scored.iter_rows():
                yield [score for values in json.loads(row["scores"]) if (score := score_row(values))]
        except ray.exceptions.RayError as error:
            raise UserError(
                f"a worker failed: {_reason(error)}", "The same command goes on where it stopped."
            ) from None


def import_ray() -> Any:
    """The library. Raises `UserError` naming the extra that brings it where it is missing."""
    # Nothing is sent to its makers, and only what stops a run is printed.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    try:
        import ray
        import ray.data
    except ImportError:
        raise UserError("--engine ray needs Ray.", "Run: pip install 'stepsight[ray]'") from None
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return ray


def check_room(resources: Mapping[str, float], workers: int, gpus: int) -> None:
    """Raises `UserError` where Ray would wait for ever, for GPUs or processors that are not there.

    `resources` are those of its machines, `gpus` what each worker needs.
    """
    needed = {"GPU": workers * gpus, "CPU": workers + 1}
    for kind, count in needed.items():
        there = int(resources.get(kind, 0))
        if there < count:
            raise UserError(f"Ray has {there} {kind}s, and --workers {workers} needs {count}.", "Give fewer.")


class _RayWorker:
    """What Ray Data starts on each worker and calls with a batch of one chunk."""

    def __init__(
        self, pool: Pool, evaluator: str, fingerprint: str, place: Placement, numbers: Sequence[int], size: int
    ) -> None:
        loaded = load_evaluator(evaluator, place.device, place.dtype)
        if loaded.fingerprint != fingerprint:
            raise UserError(f"the evaluator {evaluator!r} is another one on a worker.", "Copy it there.")
        self._numbers = numbers
        self._scorer = ChunkScorer(pool, loaded, size)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        chunks = (self._scorer(self._numbers[int(place)]) for place in batch["id"])
        return {"scores": [json.dumps([asdict(row) for row in rows]) for rows in chunks]}


@contextmanager
def _running(ray: Any, workers: int) -> Iterator[None]:
    """Ray, unless it runs already: on the cluster that RAY_ADDRESS names, else on this machine."""
    if ray.is_initialized():
        yield
        return
    options: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if not os.environ.get("RAY_ADDRESS"):
        options |= {"num_cpus": workers + _SPARE, "object_store_memory": _OBJECT_STORE, "include_dashboard": False}
    try:
        ray.init(**options)
    except Exception as error:
        # It raises nothing more particular.
        raise UserError(f"Ray did not start: {_reason(error)}", "The same command tries again.") from None
    # Ray tells of a worker that died on standard output, which is for results, and of some only as it ends.
    with redirect_stdout(sys.stderr):
        try:
            yield
        finally:
            ray.shutdown()


def _reason(error: BaseException) -> str:
    """The last line of what a worker wrote, without the traces of Ray's own calls."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip() if lines else type(error).__name__
