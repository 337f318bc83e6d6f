"""Measurements of the datasets in a store, taken when a page requests them and cached until the data changes."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from stepsight.app.web.background_cache import LARGEST, BackgroundCache, Pending, Snapshot
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.keyed_cache import KeyedCache
from stepsight.core.metrics.bootstrap import DRAWS
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.metrics.table import StepTable
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import (
    StoredEvaluator,
    evaluators_of,
    read_versions,
    with_distinct_names,
)
from stepsight.storage.labelling.disputes import find_accepted
from stepsight.storage.traces.queries import Dataset
from stepsight.training.evaluate.baseline_check import BaselineCheck, check_row
from stepsight.training.evaluate.evaluation import Evaluation, GoldView, PairedComparison, compare, evaluate
from stepsight.training.evaluate.judging import with_thresholds
from stepsight.training.report.dataset import Excerpt, difference_section, excerpt
from stepsight.training.report.html import Section
from stepsight.training.report.report import write_up, write_up_patched
from stepsight.training.report.results import has_gold, has_shares, ordered

PATIENCE = 0.4
"""Seconds that a page waits for measurements before it is shown without them."""

# Bytes in memory per byte of a figure's JSON.
_FIGURE = 6
# The approximate size of a row of a summary, and the size of all summaries kept, in bytes.
_ROW = 6_000
_SUMMARIES = 32_000_000
_NONE = np.empty(0, np.int64)
_NO_STEPS = StepTable(
    ids=(),
    trace=_NONE,
    position=_NONE,
    label=_NONE,
    valid=_NONE,
    redundancy=np.empty(0, np.float32),
    probs=np.empty((0, 3), np.float32),
    solution=np.empty(0),
    groups=(),
)

Differences = Mapping[tuple[str, Mode, Errors], PairedComparison]
"""The comparison of an evaluator with a reference, by evaluator, mode and kind of error."""


@dataclass(frozen=True, eq=False)
class MeasuredDataset:
    """The measurements on a dataset, or on one group of its traces. The names of `evaluators` are those that the
    tables show. `subject` and `version` identify the data that was measured. If `evaluation` is on patched labels,
    `before` is that on the benchmark's own."""

    subject: Hashable
    version: Hashable
    evaluation: Evaluation
    evaluators: tuple[StoredEvaluator, ...]
    before: Evaluation | None = None

    @cached_property
    def modes(self) -> list[Mode]:
        """The modes in which evaluators have judged the dataset, starting with the mode that most evaluators have
        used. If no evaluator has judged it, the modes of the baselines."""
        rows = self.evaluation.rows
        judged = Counter(row.mode for row in rows if not row.is_baseline)
        return [mode for mode, _ in judged.most_common()] or list(dict.fromkeys(row.mode for row in rows))

    @cached_property
    def kinds(self) -> list[Errors]:
        """The kinds of error that the gold labels distinguish."""
        return list(dict.fromkeys(row.errors for row in self.evaluation.rows))

    @cached_property
    def groups(self) -> list[str]:
        """The names of the groups into which the benchmark divides its traces."""
        return sorted(set(self.evaluation.rows[0].subject.table.groups) - {""})

    @cached_property
    def names(self) -> list[str]:
        """The names of the evaluators that were measured, and of the baselines, which come last."""
        return list(dict.fromkeys(row.evaluator for row in ordered(self.evaluation.rows)))

    def checks(self) -> tuple[BaselineCheck, ...]:
        """Return the baseline checks of the evaluators' rows that have one."""
        checks = map(check_row, self.evaluation.rows)
        return tuple(check for check in checks if check is not None)

    @property
    def has_gold(self) -> bool:
        """True if the dataset has gold labels or shares to measure against."""
        return has_gold(self.evaluation) or has_shares(self.evaluation)


@dataclass(frozen=True)
class Summary:
    """The figures on a dataset with their intervals, their differences from a reference, and the baseline checks,
    without the resamples and steps that these come from."""

    newest: Snapshot[MeasuredDataset]
    minus: Differences
    checks: tuple[BaselineCheck, ...]


class Measurements:
    """Measures evaluators on datasets, on request. It is thread-safe.

    A result that takes long is `Pending` until it is ready, and concurrent requests share one computation. While
    judgments are being added, the last measurement remains in use, and a new measurement is started from time to
    time. `draws` is the number of resamples.
    """

    draws = DRAWS

    def __init__(self, store: Store, cache: BackgroundCache | None = None) -> None:
        self._store = store
        self._cache = cache or BackgroundCache()
        self._summaries = KeyedCache(_SUMMARIES)

    def measure(
        self, dataset: Dataset, group: str = "", patience: float = PATIENCE, *, patched: bool = False
    ) -> Snapshot[MeasuredDataset] | Pending:
        """Measure the baselines and every evaluator that has judged the dataset, on all traces or on one `group`.

        With `patched`, the labels are those that accepted disputes give. Raises `UserError` if the dataset is empty
        or too large, has no such group, or has no accepted dispute.
        """
        if not dataset.traces:
            raise UserError(f"{dataset.name} has no traces.", "Import a file into it.")
        if dataset.traces > LARGEST:
            raise UserError(
                f"{dataset.name} has {dataset.traces:,} traces; this page measures at most {LARGEST:,}.",
                "Choose a smaller one. The command line can write a report of this one.",
            )
        subject, version = self._state(dataset, group)
        accepted = find_accepted(self._store, dataset) if patched else None
        if patched and accepted is None:
            raise UserError(f"No dispute of {dataset.name} is accepted.", "Choose the benchmark's own gold.")
        patch = accepted[0] if accepted else None
        if patch is not None:
            subject = (subject, patch.digest)

        def make() -> MeasuredDataset:
            evaluators = with_distinct_names(evaluators_of(self._store, dataset.id))
            # Pages mark thresholds that were chosen on the dataset instead of refusing them.
            measured = [with_thresholds(self._store, dataset, evaluator, force=True) for evaluator in evaluators]
            plain = evaluate(self._store, GoldView(dataset, group), measured)
            if patch is None:
                return MeasuredDataset(subject, version, plain, tuple(evaluators))
            after = evaluate(self._store, GoldView(dataset, group, patch), measured)
            return MeasuredDataset(subject, version, after, tuple(evaluators), plain)

        return self._cache.newest(subject, version, make, _size, patience)

    def disputed(self, dataset: Dataset) -> frozenset[int]:
        """Return the database ids of the traces whose labels accepted disputes change."""
        accepted = find_accepted(self._store, dataset)
        return accepted[1] if accepted else frozenset()

    def summary(self, dataset: Dataset, reference: str = "", patience: float = PATIENCE) -> Summary | Pending:
        """Measure a dataset for an overview of many datasets, whose measurements would not fit in the cache. If
        `reference` is not "", the differences from it are included. Raises the same errors as `measure`."""
        subject, version = self._state(dataset)
        kept = self._summaries.find((subject, reference))
        if kept is not None and kept.version == version:
            summary: Summary = kept.result()
            return summary
        newest = self.measure(dataset, patience=patience)
        if isinstance(newest, Pending):
            return newest
        minus = self.minus(newest.result, reference, patience) if reference else {}
        if isinstance(minus, Pending):
            return minus
        summary = Summary(replace(newest, result=_without_draws(newest.result)), minus, newest.result.checks())
        if newest.is_current:
            rows = len(newest.result.evaluation.rows) + len(minus)
            self._summaries.get((subject, reference), version, lambda: summary, lambda _: _ROW * rows)
        return summary

    def is_measured(self, dataset: Dataset, reference: str = "") -> bool:
        """True if `summary` would return a result immediately, apart from the differences."""
        subject, _ = self._state(dataset)
        return self._cache.has_newest(subject) or self._summaries.find((subject, reference)) is not None

    def _state(self, dataset: Dataset, group: str = "") -> tuple[Hashable, Hashable]:
        """Return a key and a version of the data of a dataset.

        Measurements with a different key are useless. When judgments are added, only the version changes, and
        measurements with an earlier version may still be shown.
        """
        with self._store.read() as session:
            traces, verdicts = read_versions(session, dataset.id)
        # An evaluator that has just judged the dataset has its own thresholds, which do not affect those of others.
        thresholds = max((version.thresholds or 0 for version in verdicts.values()), default=0)
        judged = tuple((id, version.judgments) for id, version in verdicts.items())
        return ("measured", dataset.id, group, dataset.left_out, traces, thresholds), judged

    def excerpt(
        self, measured: MeasuredDataset, mode: Mode, errors: Errors, patience: float = PATIENCE
    ) -> Snapshot[Excerpt] | Pending:
        """Return the tables and figures for one mode and one kind of error."""
        subject = ("excerpt", measured.subject, mode, errors)
        make = lambda: excerpt(measured.evaluation, mode, errors)  # noqa: E731
        # Their JSON is generated here, and kept for the pages.
        size: Callable[[Excerpt], int] = lambda made: _FIGURE * sum(len(plot.data) for plot in made.plots)  # noqa: E731
        return self._cache.newest(subject, measured.version, make, size, patience)

    def minus(self, measured: MeasuredDataset, reference: str, patience: float = PATIENCE) -> Differences | Pending:
        """Return the comparisons of all rows with those of `reference`, the name of an evaluator or a baseline. The
        result is empty if the reference was not measured on the dataset."""
        key = ("minus", measured.subject, measured.version, reference)
        make = lambda: _differences_from(measured.evaluation, reference)  # noqa: E731
        return self._cache.get(key, make, lambda differences: 10_000, patience)

    def differences(
        self, measured: MeasuredDataset, reference: str, mode: Mode, errors: Errors, patience: float = PATIENCE
    ) -> Section | Pending | None:
        """Return a section on the differences from `reference` in one mode and for one kind of error, or None if no
        row has any."""
        minus = self.minus(measured, reference, patience)
        if isinstance(minus, Pending):
            return minus
        rows = ordered(row for row in measured.evaluation.rows if (row.mode, row.errors) == (mode, errors))
        compared = [(row, minus[key]) for row in rows if (key := (row.evaluator, mode, errors)) in minus]
        return difference_section(measured.evaluation, compared) if compared else None

    def report(self, measured: MeasuredDataset, patience: float = PATIENCE) -> str | Pending:
        """Return the full report on the dataset as a single HTML page."""
        key = ("report", measured.subject, measured.version)

        def make() -> str:
            if measured.before is None:
                return write_up([measured.evaluation], measured.evaluators).page
            return write_up_patched(measured.before, measured.evaluation, measured.evaluators).page

        return self._cache.get(key, make, len, patience)


def _without_draws(measured: MeasuredDataset) -> MeasuredDataset:
    rows = [
        replace(
            row,
            # Whether steps have shares still matters.
            subject=replace(
                row.subject,
                table=_NO_STEPS if row.subject.table.share is None else replace(_NO_STEPS, share=np.empty(0)),
            ),
            measured={name: replace(value, draws=None) for name, value in row.measured.items()},
        )
        for row in measured.evaluation.rows
    ]
    evaluation = replace(measured.evaluation, rows=rows, weights=np.empty((0, 0), np.uint8))
    return replace(measured, evaluation=evaluation, before=None)


def _differences_from(evaluation: Evaluation, reference: str) -> Differences:
    references = {(row.mode, row.errors): row for row in evaluation.rows if row.evaluator == reference}
    return {
        (row.evaluator, row.mode, row.errors): compare(row, references[row.mode, row.errors], evaluation.weights)
        for row in evaluation.rows
        if row.evaluator != reference and (row.mode, row.errors) in references
    }


def _size(measured: MeasuredDataset) -> int:
    rows = [row for one in (measured.evaluation, measured.before) if one is not None for row in one.rows]
    tables = {id(row.subject.table): row.subject.table.nbytes for row in rows}
    # Rows share the bootstrap draws of whatever is the same in both modes.
    draws = [value.draws for row in rows for value in row.measured.values() if value.draws is not None]
    return (
        sum(tables.values())
        + sum({id(part): part.nbytes for part in draws}.values())
        + measured.evaluation.weights.nbytes
    )
