"""A dataset measured twice, with its own gold and with that of a label patch, and what the patch changes.

Both are measured on the same resamples of the same traces, so that a change has the interval of paired draws.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from stepsight.core.files.label_patch import Patch
from stepsight.core.judgment import Mode
from stepsight.core.metrics.bootstrap import DRAWS, difference
from stepsight.core.metrics.value import Value
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import StoredEvaluator
from stepsight.storage.traces.queries import Dataset
from stepsight.training.evaluate.evaluation import MODES, Evaluation, Row, evaluate
from stepsight.training.report.results import PROTOCOL, ordered


@dataclass(frozen=True, eq=False)
class PatchEffect:
    """A row of an evaluation with the benchmark's labels, and the same with the patch's."""

    before: Row
    after: Row

    def of(self, name: str) -> Value:
        """The change that the patch makes to a figure."""
        one, other = self.after.measured[name], self.before.measured[name]
        return difference(one.value, other.value, one.draws, other.draws)

    def as_json(self) -> dict[str, object]:
        head = {"evaluator": self.before.evaluator, "mode": self.before.mode.value}
        return head | {
            "errors": self.before.errors.value,
            "differences": {name: self.of(name).as_json() for name in PROTOCOL},
        }


@dataclass(frozen=True, eq=False)
class Patched:
    """An evaluation with the benchmark's labels, `before`, and with the patch's, `after`."""

    before: Evaluation
    after: Evaluation
    patch: Patch

    def changes(self) -> Iterator[PatchEffect]:
        """The effect of the patch on each evaluator, mode and kind of error that both evaluations have."""
        after = {(row.evaluator, row.mode, row.errors): row for row in self.after.rows}
        for row in ordered(self.before.rows):
            other = after.get((row.evaluator, row.mode, row.errors))
            if other is not None:
                yield PatchEffect(row, other)

    def as_json(self) -> dict[str, object]:
        """`without` and `with` are what `Evaluation.as_json` gives; `changes` are paired differences."""
        return {
            "dataset": self.before.dataset.name,
            "patch": self.patch.about(),
            "without": self.before.as_json(),
            "with": self.after.as_json(),
            "changes": [change.as_json() for change in self.changes()],
        }


def evaluate_patched(
    store: Store,
    dataset: Dataset,
    evaluators: Sequence[StoredEvaluator],
    patch: Patch,
    modes: Iterable[Mode] = MODES,
    draws: int = DRAWS,
    force: bool = False,
    group: str = "",
) -> Patched:
    """Measure with the gold as it is and as the patch has it. Raises `UserError` as `evaluate` does."""
    chosen = list(modes)
    # First, since a patch that does not fit is told before anything is measured.
    after = evaluate(store, dataset, evaluators, chosen, draws, force, group, patch)
    return Patched(evaluate(store, dataset, evaluators, chosen, draws, force, group), after, patch)


def counts(changes: Sequence[PatchEffect]) -> str:
    """A sentence on how many solutions and steps count with either set of labels, from the first row."""
    before, after = changes[0].before, changes[0].after
    return (
        f"{before.n_solutions:,} solutions and {before.n_steps:,} steps count with the benchmark's labels,"
        f" {after.n_solutions:,} and {after.n_steps:,} with the patch"
    )
