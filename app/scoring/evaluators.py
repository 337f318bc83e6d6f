"""The evaluators that the pages score with: loaded once, requests batched, results kept for a while."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from pathlib import Path

from stepsight.app.scoring.batcher import Batcher
from stepsight.core.errors import UserError
from stepsight.core.formats.loading import load_evaluator
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.location import EQUATIONS, evaluator_folder, shipped_evaluators
from stepsight.core.models.placement import Placement, typed_name
from stepsight.core.scores import Thresholds
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.judgments.calibrations import find_thresholds
from stepsight.storage.judgments.evaluators import StoredEvaluator, register_loaded

# Traces scored at the same time; each uses every core.
_AT_ONCE = 2
# Entries of kept triangles in all, 12 bytes each.
_KEPT = 2_000_000
# Judgments begun that nobody has come back for.
_MOST_BEGUN = 64


class Evaluators:
    """Scores traces with evaluators by name. Safe to use from several threads."""

    def __init__(
        self, folders: Sequence[str | Path] = (), *, shipped: bool = True, place: Placement | None = None
    ) -> None:
        """`folders` are evaluators to offer, at `place`, beside the shipped ones unless `shipped` is false; those
        are small, and stay on the processor in float32.

        One whose name is taken goes by its path. Raises `UserError` where one cannot load.
        """
        self._scorers: dict[str, Scorer] = {}
        self._specs: dict[str, str] = {}
        self._dtypes: dict[str, str] = {}
        self._batchers: dict[str, Batcher] = {}
        self._judgments: OrderedDict[tuple[str, str], Judgment] = OrderedDict()
        self._begun: OrderedDict[tuple[str, str], Future[Judgment]] = OrderedDict()
        self._rows: dict[tuple[str, str], StoredEvaluator] = {}
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(_AT_ONCE)
        for name in (*shipped_evaluators(), EQUATIONS) if shipped else ():
            self._add(name, Placement())
        for folder in folders:
            self._add(folder, place or Placement())
        if not self._scorers:
            raise UserError(
                "there is no evaluator to score with.", "Train one and give its folder with --evaluator."
            )

    def _add(self, spec: str | Path, place: Placement) -> None:
        evaluator = load_evaluator(spec, place.device, place.dtype, place.device_map)
        if evaluator.name in self._scorers:
            evaluator = replace(evaluator, name=typed_name(str(spec), evaluator.dtype))
        scorer = Scorer(evaluator)
        self._scorers[evaluator.name] = scorer
        self._specs[evaluator.name] = _spec(spec)
        self._dtypes[evaluator.name] = evaluator.dtype
        self._batchers[evaluator.name] = Batcher(scorer, self._places)

    @property
    def names(self) -> list[str]:
        """The names of those that give scores, bidirectional ones first: they are what the pages are for."""
        return [name for name in self.all_names if self._scorers[name].evaluator.outputs.has_scores]

    @property
    def all_names(self) -> list[str]:
        """`names`, and then those that say what they have to say in words."""

        def order(name: str) -> tuple[bool, str, str]:
            evaluator = self._scorers[name].evaluator
            return evaluator.outputs.in_words, evaluator.attention, name

        return sorted(self._scorers, key=order)

    def scorer(self, name: str) -> Scorer:
        """The scorer of an evaluator. Raises `NotFoundError` where there is none of that name."""
        if name not in self._scorers:
            raise NotFoundError(
                f"There is no evaluator {name!r:.80}.", f"Choose one of: {', '.join(self.all_names)}."
            )
        return self._scorers[name]

    def spec(self, name: str) -> str:
        """What `load_evaluator` takes for it, in any process on this machine: a shipped name or a folder."""
        self.scorer(name)
        return self._specs[name]

    def dtype(self, name: str) -> str:
        """The type of its weights, such as float32."""
        self.scorer(name)
        return self._dtypes[name]

    def thresholds(self, store: Store, name: str) -> Thresholds:
        """The thresholds in force: calibrated ones where there are any, else the evaluator's own."""
        return find_thresholds(store, self.register(store, name).id)

    def judge(self, name: str, trace: Trace) -> Judgment:
        """The judgment of a trace in hindsight mode.

        Raises `UserError` where the trace is too long, `BusyError` where too many are waiting.
        """
        return self.submit(name, trace).result()

    def submit(self, name: str, trace: Trace, mode: Mode = Mode.HINDSIGHT) -> "Future[Judgment]":
        """The judgment to come; raises as `judge` does. Requests that come at once are scored together."""
        key = (self.scorer(name).evaluator.fingerprint, trace.digest)
        with self._lock:
            kept = self._judgments.get(key)
        if kept is not None:
            answered: Future[Judgment] = Future()
            answered.set_result(_of_mode(trace, kept, mode))
            return answered
        keep = partial(self._keep, key) if mode == Mode.HINDSIGHT else None
        return self._batchers[name].submit(trace, mode, keep)

    def begin(self, name: str, trace: Trace) -> "Future[Judgment]":
        """As `submit`, for who may leave before it is there and ask again: then the same one is given, and once
        more when it is there. It must not be cancelled."""
        key = (self.scorer(name).evaluator.fingerprint, trace.digest)
        with self._lock:
            begun = self._begun.get(key)
            if begun is not None:
                if begun.done():
                    del self._begun[key]
                return begun
        begun = self.submit(name, trace)
        with self._lock:
            self._begun[key] = begun
            while len(self._begun) > _MOST_BEGUN:
                self._begun.popitem(last=False)
        return begun

    def _keep(self, key: tuple[str, str], judgment: Judgment) -> None:
        with self._lock:
            self._judgments[key] = judgment
            while sum(_size(kept) for kept in self._judgments.values()) > _KEPT:
                self._judgments.popitem(last=False)

    def register(self, store: Store, name: str) -> StoredEvaluator:
        """The evaluator's row in the store, written once: opening a trace must not wait for an import to end."""
        key = (store.name, name)
        if key not in self._rows:
            self._rows[key] = register_loaded(store, self.scorer(name).evaluator)
        return self._rows[key]


def _spec(spec: str | Path) -> str:
    return str(spec) if str(spec) in (*shipped_evaluators(), EQUATIONS) else str(evaluator_folder(spec).resolve())


def _of_mode(trace: Trace, kept: Judgment, mode: Mode) -> Judgment:
    """A mode's judgment out of one in hindsight mode, which holds them all."""
    result = {Mode.HINDSIGHT: kept.result, Mode.ONLINE: kept.online, Mode.OFFLINE: kept.offline}[mode]
    assert result is not None
    return Judgment(trace, mode, result)


def _size(judgment: Judgment) -> int:
    """What a kept judgment counts: its triangle, and 500 for the trace it holds."""
    n = len(judgment.trace.substeps)
    return 500 + n * (n + 1) // 2
