"""The findings of a label patch: what it changes, as tables, before the chapter of the gold that it gives."""

from collections.abc import Iterator, Sequence

from core.judgment import Mode
from core.metrics.reasoneval import Errors
from training.chapters import dataset_chapter
from training.findings import EVALUATOR, PROTOCOL, make_table
from training.page import Chapter, Section
from training.patched import Change, Patched, counts
from training.tables import Cell, Column, Kind, Table


def patched_chapter(found: Patched) -> Chapter:
    """The chapter of the patched gold, with what the patch changes at its head."""
    chapter = dataset_chapter(found.after)
    tables = [change_table(found, mode, errors, changes) for (mode, errors), changes in _tables(found).items()]
    changed = Section("What the patch changes", [*tables, entries(found)])
    return Chapter(chapter.title, chapter.lead, [changed, *chapter.sections], chapter.warning)


def _tables(found: Patched) -> dict[tuple[Mode, Errors], list[Change]]:
    """The changes by mode and kind of error; baselines alone only where no evaluator has judged."""
    tables: dict[tuple[Mode, Errors], list[Change]] = {}
    for change in found.changes():
        tables.setdefault((change.before.mode, change.before.errors), []).append(change)
    judged = {key: rows for key, rows in tables.items() if any(not row.before.is_baseline for row in rows)}
    return judged or tables


def change_table(found: Patched, mode: Mode, errors: Errors, changes: Sequence[Change]) -> Table:
    """The protocol's four figures with the patch, and how much each grew by it."""
    columns = [EVALUATOR]
    for name, title in PROTOCOL.items():
        columns += [
            Column(name, f"{title}, patched"),
            Column(f"{name}_change", f"{title}, change", Kind.POINTS),
        ]
    cells = [(change.after, (change.after.evaluator, *_pairs(change))) for change in changes]
    caption = (
        f"what the patch ({found.patch.size}) changes, {errors} errors, {mode}, in percent with 95 % intervals"
    )
    return make_table(found.after, f"change-{errors}-{mode}", caption, columns, cells, [counts(changes)])


def _pairs(change: Change) -> Iterator[Cell]:
    for name in PROTOCOL:
        yield change.after.measured[name].value
        yield change.of(name)


def entries(found: Patched) -> Table:
    """The labels that the patch changes."""
    keys = {"trace": "Trace", "step": "Step", "from": "Benchmark", "to": "Patch", "reason": "Reason", "by": "By"}
    columns = tuple(Column(key, title, Kind.TEXT) for key, title in keys.items())
    rows = tuple(
        (
            one.trace,
            str(one.step + 1),
            one.old or "unlabelled",
            one.new or "unlabelled",
            " ".join(one.reason.split()),
            one.by,
        )
        for one in found.patch.changes
    )
    name, caption = "patch", f"the labels that {found.patch.name} changes"
    made = make_table(found.after, name, caption, columns, [])
    return Table(made.name, made.caption, columns, rows)
