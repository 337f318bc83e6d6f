"""Measuring a dataset twice, with its own gold labels and with those of a label patch, and comparing the results.

Both measurements use the same resamples of the traces, so the intervals of the changes are paired.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from stepsight.core.files.label_patch import Patch
from stepsight.core.judgment import Mode
from stepsight.core.metrics.bootstrap import Value, difference
from stepsight.core.metrics.reasoneval import Errors
from stepsight.training.evaluate.evaluation import Evaluation, Row
from stepsight.training.report.results import EVALUATOR, PROTOCOL, make_table, measured_on, ordered
from stepsight.training.report.tables import Cell, CellKind, Column, Table, slug


@dataclass(frozen=True, eq=False)
class PatchEffect:
    """A row of the evaluation measured twice: with the benchmark's labels and with the patch's labels."""

    before: Row
    after: Row

    def of(self, name: str) -> Value:
        """Return the change in the figure `name`, patched minus original."""
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
            "changes": [change.as_json() for change in self.changes()],
        }


def _counts(changes: Sequence[PatchEffect]) -> str:
    """Return a sentence that compares how many solutions and steps count before and after the patch. The sentence
    gives the numbers of the first row."""
    before, after = changes[0].before, changes[0].after
    return (
        f"{before.n_solutions:,} solutions and {before.n_steps:,} steps count with the benchmark's labels,"
        f" {after.n_solutions:,} and {after.n_steps:,} with the patch"
    )


def change_tables(patched: Patched) -> dict[tuple[Mode, Errors], Table]:
    """Return a table of the patch's effects for each mode and kind of error in which an evaluator was measured.

    If no evaluator was measured, the tables cover the baselines only.
    """
    effects: dict[tuple[Mode, Errors], list[PatchEffect]] = {}
    for change in patched.changes():
        effects.setdefault((change.before.mode, change.before.errors), []).append(change)
    judged = {key: rows for key, rows in effects.items() if any(not row.before.is_baseline for row in rows)}
    return {key: _change_table(patched, *key, rows) for key, rows in (judged or effects).items()}


def _change_table(patched: Patched, mode: Mode, errors: Errors, changes: Sequence[PatchEffect]) -> Table:
    """Return a table of the protocol's four figures with the patch, each followed by its change."""
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
    """Return a table that lists every label that the patch changes."""
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
