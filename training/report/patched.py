"""Measuring a dataset twice, with its own gold labels and with those of a label patch, and comparing the results.

Both measurements use the same resamples of the traces, so the intervals of the changes are paired.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from stepsight.core.files.label_patch import Patch
from stepsight.core.judgment import Mode
from stepsight.core.metrics.bootstrap import Value, difference
from stepsight.core.metrics.reasoneval import Errors
from stepsight.training.evaluate.evaluation import Evaluation, Row
from stepsight.training.report.results import EVALUATOR, PROTOCOL, Cells, make_table, measured_on, ordered
from stepsight.training.report.tables import Cell, CellKind, Column, Table, slug, table_of


@dataclass(frozen=True, eq=False)
class PatchEffect:
    """A row of the evaluation measured twice: with the benchmark's labels and with the patch's labels."""

    before: Row
    after: Row

    def of(self, name: str) -> Value:
        """Return the change in the figure `name`, patched minus original."""
        after, before = self.after.measured[name], self.before.measured[name]
        return difference(after.value, before.value, after.draws, before.draws)


@dataclass(frozen=True, eq=False)
class Patched:
    """Two evaluations of a dataset: `before` with the benchmark's labels, and `after` with the patch's labels."""

    before: Evaluation
    after: Evaluation
    patch: Patch

    def changes(self) -> Iterator[PatchEffect]:
        """Yield the effect of the patch on each row that is in both evaluations."""
        after = {(row.evaluator, row.mode, row.errors): row for row in self.after.rows}
        for row in ordered(self.before.rows):
            other = after.get((row.evaluator, row.mode, row.errors))
            if other is not None:
                yield PatchEffect(row, other)

    def as_json(self) -> dict[str, object]:
        """Return both evaluations and their differences as JSON values. `without` and `with` hold the results of
        `Evaluation.as_json` without and with the patch. `changes` holds the paired differences."""
        return {
            "dataset": self.before.dataset.name,
            "patch": self.patch.about(),
            "without": self.before.as_json(),
            "with": self.after.as_json(),
            "changes": [
                {
                    "evaluator": change.before.evaluator,
                    "mode": change.before.mode.value,
                    "errors": change.before.errors.value,
                    "differences": {name: change.of(name).as_json() for name in PROTOCOL},
                }
                for change in self.changes()
            ],
        }


def change_tables(patched: Patched) -> dict[tuple[Mode, Errors], Table]:
    """Return a table of the patch's effects for each mode and kind of error in which an evaluator was measured: the
    protocol's four figures with the patch, each followed by its change.

    If no evaluator was measured, the tables cover the baselines only.
    """
    effects: dict[tuple[Mode, Errors], list[PatchEffect]] = {}
    for change in patched.changes():
        effects.setdefault((change.before.mode, change.before.errors), []).append(change)
    judged = {key: changes for key, changes in effects.items() if any(not c.before.is_baseline for c in changes)}
    tables = {}
    for (mode, errors), changes in (judged or effects).items():
        entries: list[tuple[Row, Cells]] = []
        for change in changes:
            shown: dict[Column, Cell] = {EVALUATOR: change.after.evaluator}
            for name, title in PROTOCOL.items():
                shown[Column(name, f"{title}, patched")] = change.after.values[name]
                shown[Column(f"{name}_change", f"{title}, change", CellKind.POINTS)] = change.of(name)
            entries.append((change.after, shown))
        what = f"what the patch ({patched.patch.size}) changes"
        caption = f"{what}, {errors} errors, {mode}, in percent with 95 % intervals"
        before, after = changes[0].before, changes[0].after
        counts = (
            f"{before.n_solutions:,} solutions and {before.n_steps:,} steps count with the benchmark's labels,"
            f" {after.n_solutions:,} and {after.n_steps:,} with the patch"
        )
        tables[mode, errors] = make_table(patched.after, f"change-{errors}-{mode}", caption, entries, [counts])
    return tables


def entries(patched: Patched) -> Table:
    """Return a table that lists every label that the patch changes."""
    titles = {"trace": "Trace", "step": "Step", "from": "Benchmark", "to": "Patch", "reason": "Reason", "by": "By"}
    columns = [Column(key, title, CellKind.TEXT) for key, title in titles.items()]
    rows = []
    for label in patched.patch.changes:
        ends = label.old or "unlabelled", label.new or "unlabelled"
        values = label.trace, str(label.step + 1), *ends, " ".join(label.reason.split()), label.by
        rows.append(dict[Column, Cell](zip(columns, values, strict=True)))
    after = measured_on(patched.after)
    return table_of(f"{slug(after)}-patch", f"{after}: the labels that {patched.patch.name} changes", rows)
