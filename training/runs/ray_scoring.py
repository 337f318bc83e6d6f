"""Scoring on Ray workers, each of which loads its own evaluator. The scores equal those of a single process.

Traces are read and tokenized in this process and distributed in the same windows that a single process would score.
The judgments arrive in order, so that one writer can store them.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import torch

from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.inference_servers.address import is_address
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.checkpoint_resolver import evaluator_folder, resolve_placement
from stepsight.core.models.evaluator import ModelEvaluator
from stepsight.core.models.evaluator_base import Evaluator
from stepsight.core.models.location import EQUATIONS, bare_spec, can_load, is_shipped
from stepsight.core.models.placement import Placement
from stepsight.core.prompts.encoding import Encoded
from stepsight.core.scoring.forward import PaddedForward
from stepsight.core.scoring.scorer import Scorer, encode_all, fastest_forward, suitable_pass, window_of
from stepsight.core.scoring.scorer_base import Skip
from stepsight.core.trace import Trace
from stepsight.training.runs.ray_engine import work_on_ray

Window = list[tuple[Trace, Encoded]]


def check_for_workers(spec: str, place: Placement) -> None:
    """Raise `UserError` if workers cannot load the evaluator, as it is behind a server or spread over devices."""
    if is_address(spec):
        raise UserError(
            f"{spec} is behind a server, which answers many requests at once for one process.",
            "Leave --engine out; ,requests=N behind the model's name sets how many.",
        )
    if place.device_map is not None:
        raise UserError("a worker of --engine ray has one device.", "Leave --device-map out.")


@dataclass(frozen=True)
class WorkerEvaluator:
    """A description from which a worker can load an evaluator.

    `spec` and `place` are the arguments of `load_evaluator`; `place` gives the device and the type of the weights
    on the worker. `fingerprint` is the fingerprint of the evaluator on this machine. `cores` is the number of
    processor cores of this machine, which determines how traces are batched.
    """

    spec: str
    fingerprint: str
    place: Placement
    cores: int

    @property
    def gpus(self) -> int:
        """The number of GPUs that each worker needs."""
        return 0 if self.place.on_processor else 1

    def load(self) -> Scorer:
        """Load the evaluator and return a scorer for it.

        Raises `UserError` if the evaluator is missing or differs from the one on the machine that distributes the
        work.
        """
        if Path(self.spec).is_absolute() and not can_load(self.spec):
            raise UserError(
                f"a worker finds no evaluator {self.spec!r}.", "It has to lie at the same path on every machine."
            )
        evaluator = load_evaluator(self.spec, self.place.device, self.place.dtype)
        if evaluator.fingerprint != self.fingerprint:
            raise UserError(f"the evaluator {self.spec!r} differs on a worker.", "Copy it there.")
        forward = fastest_forward(evaluator, self.cores) if isinstance(evaluator, ModelEvaluator) else None
        return Scorer(evaluator, forward)


def load_for_workers(spec: str, place: Placement) -> tuple[Evaluator, WorkerEvaluator]:
    """Load an evaluator on the CPU of this machine, and return it with its description for workers.

    This copy only encodes traces and computes no scores. Raises `UserError` in the same cases as `load_evaluator`
    and `check_for_workers`.
    """
    check_for_workers(spec, place)
    if spec != EQUATIONS:
        # Workers' devices may support another type than this machine's processor.
        place = resolve_placement(place, evaluator_folder(spec))
    evaluator = load_evaluator(spec, "cpu", place.dtype)
    bare = bare_spec(spec)
    if not is_shipped(spec) and Path(bare).is_dir():
        # Workers have another current folder.
        spec = spec.replace(bare, str(Path(bare).resolve()), 1)
    # Each worker sees its own device only.
    place = replace(place, device="cpu" if place.on_processor else "cuda")
    return evaluator, WorkerEvaluator(spec, evaluator.fingerprint, place, torch.get_num_threads())


class RayScorer:
    """A scorer that distributes traces over Ray workers, each with its own copy of an evaluator.

    `evaluator` is the copy in this process.
    """

    def __init__(self, spec: str, place: Placement, workers: int) -> None:
        """Load the evaluator without starting any workers. Raises `UserError` in the same cases as
        `load_for_workers`."""
        self.evaluator, self._theirs = load_for_workers(spec, place)
        self._workers = workers

    def score(
        self, traces: Iterable[Trace], mode: Mode | str = Mode.OFFLINE, on_skip: Skip | None = None
    ) -> Iterator[Judgment]:
        """Like `Scorer.score`, but also raises `UserError` in the same cases as `work_on_ray`."""
        windows = _windows(encode_all(self.evaluator, traces, on_skip), self._window)
        make = partial(_window_scorer, self._theirs, Mode(mode))
        with closing(work_on_ray(make, windows, self._workers, self._theirs.gpus)) as scored:
            for judgments in scored:
                yield from judgments

    @property
    def _window(self) -> int:
        if not isinstance(self.evaluator, ModelEvaluator):
            return window_of(type(None))
        return window_of(PaddedForward if self._theirs.gpus else suitable_pass(self.evaluator))


AnyScorer = Scorer | RayScorer


def _windows(encoded: Iterator[tuple[Trace, Encoded]], size: int) -> Iterator[Window]:
    while window := list(islice(encoded, size)):
        # The inputs for prefixes are encoded by the worker: what encodes them is the tokenizer, with every trace.
        yield [(trace, replace(one, prefix=None, windows=())) for trace, one in window]


def _window_scorer(theirs: WorkerEvaluator, mode: Mode) -> Callable[[Window], list[Judgment]]:
    scorer = theirs.load()
    evaluator = scorer.evaluator
    if isinstance(evaluator, ModelEvaluator) and (
        evaluator.window is not None or (evaluator.sees_later_steps and evaluator.is_causal)
    ):
        return lambda window: list(scorer.score((trace for trace, _ in window), mode))
    return lambda window: list(scorer.score_encoded(window, mode))


def open_scorer(spec: str, place: Placement, workers: int | None) -> Scorer | RayScorer:
    """Return a scorer that runs on `workers` Ray workers or, if `workers` is None, in this process at `place`.
    Raises `UserError` in the same cases as `load_evaluator` and `load_for_workers`."""
    if workers is not None:
        return RayScorer(spec, place, workers)
    return Scorer(load_evaluator(spec, place.device, place.dtype, place.device_map))
