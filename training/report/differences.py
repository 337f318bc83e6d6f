"""Tables of differences: of the modes, of evaluators from one of them, by how later steps changed validity, and of
a dataset measured with its own gold labels and with those of a label patch.

Everything compared uses the same resamples of the traces, so the intervals of the differences are paired.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from stepsight.core.files.label_patch import Patch
from stepsight.core.judgment import Mode
from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.figures import METRICS, PROTOCOL, less_is_better
from stepsight.core.metrics.reasoneval import Errors
from stepsight.training.evaluate.diagnostics import by_retroactive_change, pairs
from stepsight.training.evaluate.evaluation import Evaluation, PairedComparison, Row, compare, minus
from stepsight.training.report.results import EVALUATOR, TRACES, Cells, cells, has_pairs, make_table, ordered
from stepsight.training.report.tables import Cell, CellKind, Column, Table, slug, table_of

Compared = Sequence[tuple[Row, PairedComparison]]
"""Rows of one mode and kind of error, each with its comparison with the same reference."""


def differences(evaluation: Evaluation) -> Table | None:
    """Return a table of online minus offline figures, paired by trace, or None if no evaluator was measured in both
    modes."""
    if not has_pairs(evaluation):
        return None
    entries = []
    for online, offline in pairs(ordered(evaluation.rows)):
        comparison = compare(online, offline, evaluation.weights)
        shown: dict[Column, Cell] = {EVALUATOR: online.evaluator}
        shown |= {Column("errors", "Errors", CellKind.TEXT): online.errors.value}
        shown |= cells(PROTOCOL, comparison.differences, CellKind.POINTS) | {TRACES: comparison.n_traces}
        entries.append((online, shown))
    caption = "online minus offline, in percentage points with 95 % intervals of the paired difference"
    return make_table(evaluation, "online-minus-offline", caption, entries)


def changes(evaluation: Evaluation, errors: Errors) -> Table | None:
    """Return a table of errors by how later steps changed validity, or None if no evaluator was measured in both
    modes."""
    if not has_pairs(evaluation):
        return None
    entries: list[tuple[Row, Cells]] = []
    for online, offline in pairs(ordered(row for row in evaluation.rows if row.errors == errors)):
        if not online.subject.outputs.has_steps:
            continue
        for kind, part in by_retroactive_change(online, offline).items():
            shown: Cells = {
                EVALUATOR: online.evaluator,
                Column("validity", "Validity", CellKind.TEXT): kind,
                Column("steps", "Steps", CellKind.COUNT): part.steps,
                Column("wrong", "With an error", CellKind.COUNT): part.wrong,
                Column("share_wrong", "Share with an error, %"): part.share_wrong,
                Column("online", "Judged correctly online, %"): part.online,
                Column("offline", "Judged correctly offline, %"): part.offline,
            }
            entries += [(online, shown)] if part.steps else []
    caption = f"{errors} errors, steps by retroactive change: validity fell or rose by 0.1 or more, or stayed"
    return make_table(evaluation, f"change-{errors}", caption, entries)


def difference_table(evaluation: Evaluation, compared: Compared) -> Table:
    """Return a table of the rows' figures minus those of the reference, with intervals paired by trace. A figure is
    left out if no row shares it with the reference."""
    _, pair = compared[0]
    values = [(row, comparison.differences, comparison.n_traces) for row, comparison in compared]
    shown = {
        name: metric
        for name, metric in METRICS.items()
        if any(name in of_row and of_row[name].exists for _, of_row, _ in values)
    }
    entries = [
        (row, {EVALUATOR: row.evaluator} | cells(shown, of_row, CellKind.POINTS) | {TRACES: traces})
        for row, of_row, traces in values
    ]
    remarks = [
        f"{row.evaluator}: {of_row[name].reason}"
        for row, of_row, _ in values
        for name in shown
        if name in of_row and not of_row[name].exists and not row.is_baseline
    ]
    remarks.append(less_is_better(shown))
    difference = "in percentage points with 95 % intervals of the paired difference"
    caption = f"{pair.errors} errors, {pair.mode}, minus {pair.second}, {difference}"
    return make_table(evaluation, f"minus-{slug(pair.second)}", caption, entries, remarks)


def comparison_table(evaluation: Evaluation, pair: PairedComparison) -> Table:
    """Return a table of one comparison, with a row for each figure that both evaluators have."""
    shown = {name: metric for name, metric in METRICS.items() if name in pair.differences}
    rows: list[Cells] = [
        {
            Column("figure", "Figure", CellKind.TEXT): metric.title,
            Column("difference", f"{pair.first} minus {pair.second}", CellKind.POINTS): pair.differences[name],
        }
        for name, metric in shown.items()
        if pair.differences[name].exists
    ]
    on = f"{evaluation.view.name}: {pair.errors} errors, {pair.mode}, {pair.n_traces:,} traces"
    caption = f"{on}, in percentage points with 95 % intervals of the paired difference"
    notes = [note] if (note := less_is_better(shown)) else []
    return table_of(f"{slug(pair.first)}-minus-{slug(pair.second)}", caption, rows, notes)


def mcnemar_table(evaluation: Evaluation, compared: Compared) -> Table | None:
    """Return a table of McNemar's exact tests against the reference, or None if no row has one."""
    _, pair = compared[0]
    entries: list[tuple[Row, Cells]] = [
        (
            row,
            {
                EVALUATOR: row.evaluator,
                Column("level", "Items", CellKind.TEXT): f"{level}s",
                Column("only_here", "Right, the other wrong", CellKind.COUNT): test.first_only,
                Column("only_there", "Wrong, the other right", CellKind.COUNT): test.second_only,
                Column("p", "p", CellKind.TEXT): f"{test.p.number:.2g}" if test.p.exists else test.p.reason,
            },
        )
        for row, of_row in compared
        for level, test in of_row.tests.items()
    ]
    caption = f"{pair.errors} errors, {pair.mode}, against {pair.second}: McNemar's exact test, two-sided"
    remarks = ["The test takes the steps of a solution as independent. The intervals of figures do not."]
    return make_table(evaluation, f"mcnemar-{slug(pair.second)}", caption, entries, remarks) if entries else None


@dataclass(frozen=True, eq=False)
class PatchEffect:
    """A row of the evaluation measured twice: with the benchmark's labels and with the patch's labels."""

    before: Row
    after: Row

    @cached_property
    def changes(self) -> dict[str, Value]:
        """The changes of the figures, patched minus original."""
        return minus(self.after.measured, self.before.measured)


@dataclass(frozen=True, eq=False)
class Patched:
    """Two evaluations of a dataset: `before` with the benchmark's labels, and `after` with the patch's labels."""

    before: Evaluation
    after: Evaluation

    @property
    def patch(self) -> Patch:
        assert self.after.view.patch is not None
        return self.after.view.patch

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
                    "differences": {name: change.changes[name].as_json() for name in PROTOCOL},
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
            for name, metric in PROTOCOL.items():
                shown[Column(name, f"{metric.title}, patched")] = change.after.measured[name]
                shown[Column(f"{name}_change", f"{metric.title}, change", CellKind.POINTS)] = change.changes[name]
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
    after = patched.after.view.name
    return table_of(f"{slug(after)}-patch", f"{after}: the labels that {patched.patch.name} changes", rows)
