"""The part of a report on a dataset with a label patch, with what the patch changes at its head."""

from collections.abc import Iterator, Sequence

from stepsight.core.judgment import Mode
from stepsight.core.metrics.reasoneval import Errors
from stepsight.training.report.dataset import dataset_part
from stepsight.training.report.html import Part, Section
from stepsight.training.report.patched import Patched, PatchEffect, counts
from stepsight.training.report.results import EVALUATOR, PROTOCOL, make_table, measured_on, slug
from stepsight.training.report.tables import Cell, CellKind, Column, Table


def patched_part(patched: Patched) -> Part:
    """The part of the patched gold, with what the patch changes at its head."""
    part = dataset_part(patched.after)
    tables = [change_table(patched, mode, errors, changes) for (mode, errors), changes in _tables(patched).items()]
    changed = Section("What the patch changes", [*tables, entries(patched)])
    return Part(part.title, part.lead, [changed, *part.sections], part.warning)


def _tables(patched: Patched) -> dict[tuple[Mode, Errors], list[PatchEffect]]:
    """The changes by mode and kind of error; baselines alone only where no evaluator has judged."""
    tables: dict[tuple[Mode, Errors], list[PatchEffect]] = {}
    for change in patched.changes():
        tables.setdefault((change.before.mode, change.before.errors), []).append(change)
    judged = {key: rows for key, rows in tables.items() if any(not row.before.is_baseline for row in rows)}
    return judged or tables


def change_table(patched: Patched, mode: Mode, errors: Errors, changes: Sequence[PatchEffect]) -> Table:
    """The protocol's four figures with the patch, and how much each grew by it."""
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
    return make_table(patched.after, f"change-{errors}-{mode}", caption, columns, cells, [counts(changes)])


def _pairs(change: PatchEffect) -> Iterator[Cell]:
    for name in PROTOCOL:
        yield change.after.measured[name].value
        yield change.of(name)


def entries(patched: Patched) -> Table:
    """The labels that the patch changes."""
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
