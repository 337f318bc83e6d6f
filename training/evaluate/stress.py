"""Running a stress test: draw traces of a file, judge the variants, and gather the measures and the output."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stepsight.core.errors import Check, ShowProgress, UserError, never_cancel
from stepsight.core.models.location import can_load
from stepsight.core.models.placement import Placement
from stepsight.core.stress.measure import StressedTrace, StressFigures, stress_record
from stepsight.core.stress.stress import NothingToChangeError, StressTest
from stepsight.core.stress.transforms import all_transforms
from stepsight.core.trace import Trace
from stepsight.storage.database.store import Store, open_store
from stepsight.storage.importers.plain import draw_plain
from stepsight.storage.judgments.evaluators import StoredEvaluator, find_by_name, find_thresholds, register_loaded
from stepsight.storage.judgments.stress_tests import (
    StressPlan,
    check_judges_steps,
    count_missing_stress,
    missing_stress,
    read_plan,
    read_stress_test,
    score_stress_test,
)
from stepsight.storage.traces.queries import Dataset, find_dataset
from stepsight.training.evaluate.gallery import read_gallery

if TYPE_CHECKING:
    from stepsight.core.scoring.scorer import Scorer


def plan_of(transforms: Sequence[str], traces: int, seed: int) -> StressPlan:
    """Return the plan of a stress test. Raises `UserError` if a number is out of bounds."""
    return read_plan({"seed": seed, "traces": traces, "transforms": list(transforms)})


def stress_trace(
    scorer: "Scorer", trace: Trace, most_tokens: int, check: Check = never_cancel
) -> tuple[StressTest, list[StressedTrace]]:
    """Build all variants of a trace and judge them. Inserted steps come from the gallery. Raises `UserError` if
    that may read more than `most_tokens` tokens, or if there is nothing to change."""
    transforms = list(all_transforms().values())
    tokens = len(scorer.evaluator.encode(trace)) * (len(transforms) + 1)
    if tokens > most_tokens:
        raise UserError(
            f"A stress test of this trace reads up to {tokens:,} tokens, more than this page does.",
            "A job tests a dataset without such a limit.",
        )
    test = StressTest.of(transforms, [trace], check=check, others=read_gallery())
    return test, list(test.judge(lambda traces: scorer.offline_scores(traces, check)))


@dataclass(kw_only=True)
class StressRun:
    """A stress test of several evaluators at `place`.

    A step is valid if its validity reaches `threshold`, by default the one in force for the evaluator. `show` shows
    progress. `confirm` is called before an evaluator scores, with the traces and the most variants of each, and
    `report` with the evaluator once it has scored. `figures` holds the measures of all transforms by evaluator,
    `lines` a row for each variant and evaluator, and `notes` sentences on the evaluators. `names` maps fingerprints
    to the evaluators' names.
    """

    place: Placement
    threshold: float | None
    show: ShowProgress
    confirm: Callable[..., None]
    report: Callable[..., None]
    figures: dict[str, list[StressFigures]] = field(default_factory=dict)
    lines: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def run(
        self, database: str | None, dataset: str | None, path: str | None, specs: Sequence[str], plan: StressPlan
    ) -> StressTest:
        """Test evaluators on a dataset of the store at `database` or on a file, and return the test. Raises the
        errors of `on_file` and `on_dataset`, and `UserError` unless one of the two is given."""
        if dataset is not None and path is None:
            return self.on_dataset(database, dataset, specs, plan)
        if path is not None and dataset is None:
            return self.on_file(path, specs, plan)
        raise UserError("give either --dataset or --input.", "See stepsight stress --help.")

    def on_file(self, path: str, specs: Sequence[str], plan: StressPlan) -> StressTest:
        """Test evaluators on traces of a file, and return the test. Raises the same errors as `load_evaluator`, and
        `UserError` if there is nothing to change."""
        traces = draw_plain(path, plan.traces, plan.seed)
        test = StressTest.of(plan.chosen, list(self.show(traces, len(traces), "traces changed")), plan.seed)
        for spec in specs:
            scorer = self._load(spec)
            about = scorer.evaluator
            if not self._has(spec, about.fingerprint):
                self.confirm(about, test.traces, len(plan.chosen))
                stressed = list(self.show(test.judge(scorer.offline_scores), len(test), "variants"))
                self.report(about)
                self._add(about.name, about.fingerprint, test, stressed, about.thresholds.validity)
        return test

    def on_dataset(self, database: str | None, name: str, specs: Sequence[str], plan: StressPlan) -> StressTest:
        """Test evaluators on a dataset of the store at `database`, and return the test. Variants with scores in the
        store are not scored again.

        Raises the same errors as `on_file`, and `UserError` if an evaluator can neither score here nor was tested
        before.
        """
        with open_store(database) as store:
            dataset = find_dataset(store, name)
            tests = [test for spec in specs for test in self._on(store, dataset, spec, plan)]
        return tests[0]

    def _on(self, store: Store, dataset: Dataset, spec: str, plan: StressPlan) -> Iterator[StressTest]:
        """Test an evaluator on a dataset, and yield the test unless the evaluator was added already."""
        row = self._complete(store, dataset, spec, plan) if can_load(spec) else find_by_name(store, spec)
        if self._has(spec, row.fingerprint):
            return
        check_judges_steps(row.name, row.outputs)
        stored = read_stress_test(store, dataset.id, row.id, plan)
        if stored is None:
            raise UserError(
                f"{row.name} cannot score here, and has no such stress test of {dataset.name}.",
                "Its scores were imported. Name an evaluator that can run here.",
            )
        if not len(stored.test):
            raise NothingToChangeError
        in_force = find_thresholds(store, row.id).validity
        self._add(row.name, row.fingerprint, stored.test, stored.stressed, in_force)
        yield stored.test

    def _complete(self, store: Store, dataset: Dataset, spec: str, plan: StressPlan) -> StoredEvaluator:
        scorer = self._load(spec)
        row = register_loaded(store, scorer.evaluator)
        of = dataset.id, row.id, plan
        self.confirm(scorer.evaluator, missing_stress(store, *of), len(plan.chosen))
        scored = score_stress_test(
            store, scorer.offline_scores, *of, lambda _, error: self.notes.append(f"Left out: {error}")
        )
        try:
            for _ in self.show(scored, count_missing_stress(store, *of), "traces"):
                pass
        finally:
            self.report(scorer.evaluator)
        return row

    def _load(self, spec: str) -> "Scorer":
        # They bring PyTorch, and pages only import this module for one trace.
        from stepsight.core.evaluators.loading import load_evaluator
        from stepsight.core.scoring.scorer import Scorer

        evaluator = load_evaluator(spec, self.place.device, self.place.dtype, self.place.device_map)
        check_judges_steps(evaluator.name, evaluator.outputs)
        if evaluator.reading_note and evaluator.fingerprint not in self.names:
            self.notes.append(evaluator.reading_note)
        return Scorer(evaluator)

    def _has(self, spec: str, fingerprint: str) -> bool:
        """True if the evaluator with this fingerprint was added already. A note says so and calls it `spec`."""
        if fingerprint not in self.names:
            return False
        self.notes.append(f"{spec} has the fingerprint of {self.names[fingerprint]}, and is measured once.")
        return True

    def _add(
        self, name: str, fingerprint: str, test: StressTest, stressed: Sequence[StressedTrace], threshold: float
    ) -> None:
        self.names[fingerprint] = name
        if len(stressed) < len(test):
            self.notes.append(f"{len(test) - len(stressed):,} variants could not be scored by {name}.")
        self.figures[name] = test.figures(stressed, threshold if self.threshold is None else self.threshold)
        self.lines += [stress_record(one, name) for one in stressed]
