"""The protocol's four figures as text in a terminal, with what a label patch changes of them."""

from collections.abc import Iterable, Iterator, Sequence

from stepsight.core.judgment import Mode
from stepsight.core.metrics.reasoneval import Errors
from stepsight.core.metrics.value import Value
from stepsight.training.evaluate.evaluation import Row
from stepsight.training.report.patched import Patched, PatchEffect, counts
from stepsight.training.report.results import notes

FIGURES = ("sol_f1", "sol_auc", "step_f1", "step_auc")
TITLES = ("Sol-F1", "Sol-AUC", "Step-F1", "Step-AUC")


def print_cells(cells: Sequence[Sequence[str]]) -> None:
    """Print rows of equal length in columns."""
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    for row in cells:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _percent(value: Value) -> str:
    if not value.exists:
        return "-"
    return f"{100 * value.number:.1f} [{100 * value.low:.1f}, {100 * value.high:.1f}]"


def points(value: Value) -> str:
    """A difference in percentage points with its interval."""
    if not value.exists:
        return "-"
    # Adding zero takes the sign from what rounds to nothing.
    number, low, high = (round(100 * part, 1) + 0.0 for part in (value.number, value.low, value.high))
    return f"{number:+.1f} [{low:+.1f}, {high:+.1f}]"


def above(row: Row) -> str:
    """How far an evaluator is above the best baseline, "" for a baseline."""
    if row.is_baseline or not row.beats.exists:
        return ""
    shown = points(row.beats)
    if row.beats_in != "step_auc":
        shown += f" in {TITLES[FIGURES.index(row.beats_in)]}"
    return shown if row.above_baselines else f"{shown}, not above"


def percents(row: Row) -> list[str]:
    """The row's figures, each in percent with its interval, such as `78.0 [70.1, 84.9]`."""
    return [_percent(row.measured[name].value) for name in FIGURES]


def worth_printing(rows: Iterable[Row]) -> list[tuple[Mode, Errors]]:
    """Mode and kind of error of each table. One of baselines alone is left out beside one with an evaluator."""
    kept = list(rows)
    judged = dict.fromkeys((row.mode, row.errors) for row in kept if not row.is_baseline)
    return list(judged or dict.fromkeys((row.mode, row.errors) for row in kept))


def print_patched(found: Patched) -> None:
    """Each table with three rows per evaluator: with the benchmark's labels, with the patch's, and the change."""
    patch, changes = found.patch, list(found.changes())
    print(f"\nLabel patch {patch.name} (digest {patch.digest[:12]}…): {patch.size}")
    for mode, errors in worth_printing(found.before.rows):
        chosen = [one for one in changes if (one.before.mode, one.before.errors) == (mode, errors)]
        name = found.before.dataset.name
        if not chosen:
            print(f"\n{name}, {errors} errors, {mode}: the patched gold has no such error, nothing is compared")
            continue
        print(f"\n{name} ({found.before.size}), {errors} errors, {mode}, percent with 95 % intervals")
        print_cells([("evaluator", "labels", *TITLES, "above the best baseline"), *_rows(chosen)])
        print(f"  {counts(chosen)}")
        told = notes([change.before for change in chosen], FIGURES, found.before.traces)
        later = notes([change.after for change in chosen], FIGURES, found.after.traces)
        for note in [*told, *(f"patched, {note}" for note in later if note not in told)]:
            print(f"  {note}")


def _rows(changes: Sequence[PatchEffect]) -> Iterator[Sequence[str]]:
    for change in changes:
        before, after = change.before, change.after
        yield before.evaluator, "benchmark", *percents(before), above(before)
        yield "", "patched", *percents(after), above(after)
        yield "", "change", *(points(change.of(name)) for name in FIGURES), ""
