"""A dataset measured twice, with its own gold and with that of a label patch, and the differences.

Both measurements use the same resamples of the same traces, so the interval of a change comes from paired draws.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepsight.core.files.label_patch import Patch
from stepsight.core.judgment import Mode
from stepsight.core.metrics.bootstrap import Value, difference
from stepsight.core.metrics.reasoneval import Errors
from stepsight.training.evaluate.evaluation import Evaluation, Row
from stepsight.training.report.results import EVALUATOR, PROTOCOL, make_table, measured_on, ordered, slug
from stepsight.training.report.tables import Cell, CellKind, Column, Table


@dataclass(frozen=True, eq=False)
class PatchEffect:
    """A row of an evaluation with the benchmark's labels, and the corresponding row with the patch's labels."""

    before: Row
    after: Row

    def of(self, name: str) -> Value:
        """Return the change that the patch makes to a figure."""
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
    """A pair of evaluations: `before` with the benchmark's labels, and `after` with the patch's."""

    before: Evaluation
    after: Evaluation
    patch: Patch

    def changes(self) -> Iterator[PatchEffect]:
        """Yield the effect of the patch for each evaluator, mode and kind of error that both evaluations have."""
        after = {(row.evaluator, row.mode, row.errors): row for row in self.after.rows}
        for row in ordered(self.before.rows):
            other = after.get((row.evaluator, row.mode, row.errors))
            if other is not None:
                yield PatchEffect(row, other)

    def as_json(self) -> dict[str, object]:
        """Return both evaluations and their paired differences as JSON values.

        `without` and `with` hold the results of `Evaluation.as_json` without and with the patch. `changes` holds
        the paired differences.
        """
        return {
            "dataset": self.before.dataset.name,
            "patch": self.patch.about(),
            "without": self.before.as_json(),
            "with": self.after.as_json(),
            "changes": [change.as_json() for change in self.changes()],
        }


def _counts(changes: Sequence[PatchEffect]) -> str:
    """Return a sentence on how many solutions and steps count with each set of labels, taken from the first row."""
    before, after = changes[0].before, changes[0].after
    return (
        f"{before.n_solutions:,} solutions and {before.n_steps:,} steps count with the benchmark's labels,"
        f" {after.n_solutions:,} and {after.n_steps:,} with the patch"
    )


def change_tables(patched: Patched) -> dict[tuple[Mode, Errors], Table]:
    """Return a table of changes for each mode and kind of error in which an evaluator has judged.

    If no evaluator has judged, the tables are those of the baselines.
    """
    effects: dict[tuple[Mode, Errors], list[PatchEffect]] = {}
    for change in patched.changes():
        effects.setdefault((change.before.mode, change.before.errors), []).append(change)
    judged = {key: rows for key, rows in effects.items() if any(not row.before.is_baseline for row in rows)}
    return {key: _change_table(patched, *key, rows) for key, rows in (judged or effects).items()}


def _change_table(patched: Patched, mode: Mode, errors: Errors, changes: Sequence[PatchEffect]) -> Table:
    """Return a table of the protocol's four figures with the patch, and of the change in each."""
    columns = [EVALUATOR]
    for name, title in PROTOCOL.items():
        columns += [
            Column(name, f"{title}, patched"),
            Column(f"{name}_change", f"{title}, change", CellKind.POINTS),
        ]
    cells = [(change.after, (change.after.evaluator, *_pairs(change))) for change in changes]
    caption = (
        f"what the patch ({patched.patch.size}) changes, {errors} errors, {mode}, in percent with 95 % intervals"
    )
    return make_table(patched.after, f"change-{errors}-{mode}", caption, columns, cells, [_counts(changes)])


def _pairs(change: PatchEffect) -> Iterator[Cell]:
    for name in PROTOCOL:
        yield change.after.measured[name].value
        yield change.of(name)


def entries(patched: Patched) -> Table:
    """Return a table of the labels that the patch changes."""
    keys = {"trace": "Trace", "step": "Step", "from": "Benchmark", "to": "Patch", "reason": "Reason", "by": "By"}
    columns = tuple(Column(key, title, CellKind.TEXT) for key, title in keys.items())
    rows = tuple(
        (
            one.trace,
            str(one.step + 1),
            one.old or "unlabelled",
            one.new or "unlabelled",
            " ".join(one.reason.split()),
            one.by,
        )
        for one in patched.patch.changes
    )
    after = measured_on(patched.after)
    return Table(f"{slug(after)}-patch", f"{after}: the labels that {patched.patch.name} changes", columns, rows)
