"""Comparing evaluators with the trivial baselines on a dataset, and the line that reports the result.

Beside a verdict on a solution that is not from a dataset, a second line says on how many of the measured datasets
the evaluator does not beat them.

The comparison runs in the background and is cached until labels or judgments change. A page shown before the result
is ready says so and refreshes itself.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from markupsafe import Markup

from stepsight.app.web.background_cache import LARGEST, BackgroundCache, Pending
from stepsight.app.web.html import macro
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.metrics.figures import METRICS
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import (
    StoredEvaluator,
    datasets_judged_by,
    evaluators_of,
    read_versions,
)
from stepsight.storage.traces.queries import Dataset, list_datasets
from stepsight.training.evaluate.baseline_check import BaselineCheck, check_baselines
from stepsight.training.evaluate.strength import read_card, shows_strength
from stepsight.training.report.tables import CellKind, show

_TEMPLATE = "baseline_check.html"
_MOST = 5
# The total size of results in bytes, enough for about 400.
_KEPT = 800_000


class BaselineChecks:
    """Compares evaluators of a store with the trivial baselines, in the background. It is thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store
        # One at a time, so that pages stay fast.
        self._cache = BackgroundCache(at_once=1, most=100, kept=_KEPT)

    def find(
        self, dataset: Dataset, evaluator: StoredEvaluator, mode: Mode, patience: float = 0.0
    ) -> BaselineCheck | Pending | None:
        """Return the comparison of an evaluator with the baselines, or None if they cannot be compared.

        Returns `Pending` if the result is not ready after `patience` seconds. While a job is judging the dataset,
        the result may be an earlier one.
        """
        if not dataset.errors + dataset.redundant or dataset.traces > LARGEST:
            return None
        with self._store.read() as session:
            traces, verdicts = read_versions(session, dataset.id, [evaluator.id])
        version = verdicts[evaluator.id]
        try:
            newest = self._cache.newest(
                (dataset.id, evaluator.id, mode, traces, version.thresholds),
                version.judgments,
                lambda: check_baselines(self._store, dataset, evaluator, mode),
                patience=patience,
            )
        except UserError:
            # The line is only a remark, so the page is shown without it.
            return None
        return newest if isinstance(newest, Pending) else newest.result

    def line(self, dataset: Dataset, evaluators: Sequence[StoredEvaluator], mode: str = Mode.OFFLINE) -> Markup:
        """Render a line that names the evaluators, out of those on the page, that do not beat the baselines. It is
        empty if there are none. While the comparison is being computed, it says so, and the page's script requests
        the page again."""
        checks = [self.find(dataset, row, Mode(mode)) for row in evaluators[:_MOST]]
        if any(isinstance(check, Pending) for check in checks):
            return macro(_TEMPLATE, "pending", dataset.name)
        return line_html(dataset.name, shortfalls(check for check in checks if isinstance(check, BaselineCheck)))

    def strength_html(self, fingerprints: Mapping[str, str]) -> Markup:
        """Render a line on the evaluators, given by name, that do not beat the baselines on half of the datasets
        measured, or on more. It is empty if there are none. The datasets are those of the model card and those of
        the store; a comparison that is not ready does not count yet."""
        weak = []
        for name, fingerprint in fingerprints.items():
            card = read_card(name)
            measured = replace(card, clears=card.clears | self._clears_by_dataset(fingerprint))
            if measured.is_weak:
                weak.append((name, measured, f"/evaluators#{card_id(fingerprint)}"))
        # The sentence begins with an evaluator that has both figures.
        weak.sort(key=lambda entry: not entry[1].exposed)
        return macro(_TEMPLATE, "strength", weak) if weak else Markup()

    def _clears_by_dataset(self, fingerprint: str) -> dict[str, bool]:
        judged = datasets_judged_by(self._store, fingerprint)
        clears = {}
        for dataset in list_datasets(self._store) if judged else ():
            stored = evaluators_of(self._store, dataset.id) if dataset.id in judged else ()
            for row in stored if shows_strength(dataset.name) else ():
                check = self.find(dataset, row, Mode.OFFLINE) if row.fingerprint == fingerprint else None
                if isinstance(check, BaselineCheck):
                    clears[dataset.name] = check.clears
        return clears


def shortfalls(checks: Iterable[BaselineCheck]) -> list[BaselineCheck]:
    """Return the checks of the evaluators that do not beat the baselines."""
    return [check for check in checks if not check.clears]


def line_html(dataset: str, checks: Sequence[BaselineCheck]) -> Markup:
    """Render a line that names the evaluators that do not beat the baselines, or nothing if there are none."""
    found = [(check, METRICS[check.figure].title, show(check.difference, CellKind.POINTS)) for check in checks]
    return macro(_TEMPLATE, "line", dataset, found)


def card_id(fingerprint: str) -> str:
    """Return the HTML id of an evaluator's card on the Evaluators page."""
    # The fingerprint of a score file may be any text, but an id must not contain spaces.
    return f"card-{hashlib.sha256(fingerprint.encode()).hexdigest()[:12]}"
