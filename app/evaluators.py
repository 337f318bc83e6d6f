"""The evaluators that the pages score with: loaded once, results kept for a while."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from core.errors import UserError
from core.judgment import Judgment, Mode
from core.loading import load_evaluator, shipped_evaluators
from core.scorer import Scorer
from core.trace import Trace
from storage.evaluators import StoredEvaluator, register_loaded
from storage.store import Store

# Traces scored at the same time; each uses every core.
_AT_ONCE = 2
# Entries of kept triangles in all, 12 bytes each.
_KEPT = 2_000_000


class Evaluators:
    """Scores traces in hindsight mode with evaluators by name. Safe to use from several threads."""

    def __init__(self, folders: Sequence[str | Path] = (), *, shipped: bool = True) -> None:
        """`folders` are evaluators to offer, beside the shipped ones unless `shipped` is false.

        One whose name is taken goes by its path. Raises `UserError` where one cannot load.
        """
        self._scorers: dict[str, Scorer] = {}
        self._judgments: OrderedDict[tuple[str, str], Judgment] = OrderedDict()
        self._rows: dict[tuple[str, str], StoredEvaluator] = {}
        self._lock = threading.Lock()
        self._places = threading.BoundedSemaphore(_AT_ONCE)
        for spec in (*(shipped_evaluators() if shipped else ()), *folders):
            evaluator = load_evaluator(spec)
            if evaluator.name in self._scorers:
                evaluator = replace(evaluator, name=str(spec))
            self._scorers[evaluator.name] = Scorer(evaluator)
        if not self._scorers:
            raise UserError(
                "there is no evaluator to score with.", "Train one and give its folder with --evaluator."
            )

    @property
    def names(self) -> list[str]:
        """Bidirectional evaluators first: they are what the pages are for."""
        return sorted(self._scorers, key=lambda name: (self._scorers[name].evaluator.attention, name))

    def scorer(self, name: str) -> Scorer:
        """Raises `UserError` where there is no evaluator of that name."""
        if name not in self._scorers:
            raise UserError(f"There is no evaluator {name!r}.", f"Choose one of: {', '.join(self.names)}.")
        return self._scorers[name]

    def judge(self, name: str, trace: Trace) -> Judgment:
        """The judgment of a trace in hindsight mode. Raises `UserError` where the trace is too long."""
        scorer = self.scorer(name)
        key = (scorer.evaluator.fingerprint, trace.digest)
        with self._lock:
            kept = self._judgments.get(key)
        if kept is not None:
            return Judgment(trace, kept.mode, kept.result)
        with self._places:
            judgment = scorer.score_one(trace, Mode.HINDSIGHT)
        with self._lock:
            self._judgments[key] = judgment
            while sum(_size(kept) for kept in self._judgments.values()) > _KEPT:
                self._judgments.popitem(last=False)
        return judgment

    def register(self, store: Store, name: str) -> StoredEvaluator:
        """The evaluator's row in the store, written once: opening a trace must not wait for an import to end."""
        key = (store.name, name)
        if key not in self._rows:
            self._rows[key] = register_loaded(store, self.scorer(name).evaluator)
        return self._rows[key]


def _size(judgment: Judgment) -> int:
    """What a kept judgment counts: its triangle, and 500 for the trace it holds."""
    n = len(judgment.trace.substeps)
    return 500 + n * (n + 1) // 2
