"""The part of a grid's report on readings: how much a causal evaluator gains by reading a solution more than once.

Each view is measured on the traces that every view can read. Intervals are over traces and over runs, both of which
are resampled with replacement. All views get the same resamples, so that differences between views are paired.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from textwrap import wrap

import numpy as np

from stepsight.core.arrays import Floats64, Ints
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode
from stepsight.core.label import Label
from stepsight.core.metrics.binary import auc, auc_draws, auc_within, auc_within_draws
from stepsight.core.metrics.bootstrap import Value, Weights, difference, interval, resamples
from stepsight.core.metrics.table import Items, StepTable
from stepsight.core.metrics.ternary import classify
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.columns import read_gold, read_table
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.experiments.grid.results import CONTROL, GridResults
from stepsight.training.report.html import Content, Part, Section
from stepsight.training.report.plots import INKS, Plot, make_bars, make_figure, make_plot
from stepsight.training.report.tables import Cell, CellKind, Column, Table, slug

CAUSAL, BIDIRECTIONAL, TWICE = "causal", "bidirectional", "causal-twice"
_DRAWS = 1000
# Characters in a line of a name below a bar.
_LINE = 13
_NOT_OFFLINE = Value.none("it is not measured offline")
_TITLES = {
    CAUSAL: "causal, read once",
    TWICE: "causal, read twice",
    "causal-both-orders": "causal, read in both orders",
    BIDIRECTIONAL: "bidirectional",
}
_MEASURES: dict[str, tuple[Callable[[Items], Value], Callable[[Items, Weights], Floats64]]] = {
    "auc": (auc, auc_draws),
    "within": (auc_within, auc_within_draws),
}


@dataclass(frozen=True)
class Measured:
    """A figure of one view: its mean over the runs, with an interval, and its value in each resample."""

    value: Value
    draws: Floats64


def has_readings(results: GridResults) -> bool:
    """True if some runs read solutions more than once."""
    return any(run.settings.mask not in (CAUSAL, BIDIRECTIONAL) for run in results.runs)


def reading_part(results: GridResults, store: Store) -> Part:
    """Return the part of the report that compares the readings, from the judgments of a grid in the store.

    Only combinations of size, amount of data and seed for which every view is finished are compared. Raises
    `UserError` if the store lacks the judgments of a test set or of a run.
    """
    views = list(dict.fromkeys(run.settings.mask for run in results.runs))
    names: dict[tuple[str, str, int], dict[str, str]] = {}
    for run in results.runs:
        place = run.settings.size, run.settings.data, run.settings.seed
        names.setdefault(place, {})[run.settings.mask] = f"{results.name} {run.settings.name}"
    complete = [by_mask for by_mask in names.values() if len(by_mask) == len(views)]
    if not complete:
        raise UserError(f"{results.name} has no seed with every reading done.", "Resume it first.")
    sections = [_section(results, store, test, complete) for test in dict.fromkeys(key[0] for key in results.keys)]
    return Part(f"{results.name}: readings", f"{len(complete)} runs of each reading.", sections)


def _section(results: GridResults, store: Store, test: str, runs: list[dict[str, str]]) -> Section:
    dataset = find_dataset(store, f"{results.name} {test}")
    gold = read_gold(store, dataset)
    # With solutions of other problems as the first copy, a run is a different evaluator on each test set.
    ids = {one.name: one.id for one in evaluators_of(store, dataset.id)}
    weights = resamples(len(gold.ids), _DRAWS)
    drawn = np.random.default_rng(0).integers(0, len(runs), (_DRAWS, len(runs)))
    tables: dict[tuple[str, Mode], list[StepTable]] = {}
    for title, mode, names in _rows(results, test, runs):
        if lacking := [name for name in names if name not in ids]:
            raise UserError(f"the store has no judgments by {lacking[0]!r}.", "Name the store of the grid: --db.")
        tables[title, mode] = [read_table(store, gold, ids[name], mode) for name in names]
    judged = [np.unique(table.trace) for found in tables.values() for table in found]
    common = reduce(np.intersect1d, judged)
    figures = {
        (title, mode, measure): _measure(
            [table.where(np.isin(table.trace, common)) for table in found], measure, weights, drawn
        )
        for (title, mode), found in tables.items()
        for measure in _MEASURES
    }
    table = _table(f"{results.name} {test}", figures)
    count = f"{len(common):,} of {len(gold.ids):,} traces, which every view can read."
    note = f"{results.notes.get(test, '')} {count}".strip()
    contents: list[Content] = [note, [_plot(figures, measure) for measure in _MEASURES], table]
    return Section(test, contents)


def _rows(results: GridResults, test: str, runs: list[dict[str, str]]) -> Iterator[tuple[str, Mode, list[str]]]:
    """Yield (title, mode, evaluators) for each view, followed by the controls for reading twice, which have a
    different first copy."""
    modes = list(dict.fromkeys(mode for name, mode in results.keys if name == test))
    for mask in (mask for mask in _TITLES if mask in runs[0]):
        for mode in (Mode.ONLINE, Mode.OFFLINE):
            if mode.value in modes:
                yield _TITLES[mask], mode, [names[mask] for names in runs]
    for copy in (mode.partition(CONTROL)[2] for mode in modes if CONTROL in mode):
        names = [f"{one[TWICE]}, read twice{CONTROL}{copy}" for one in runs]
        yield f"{_TITLES[TWICE]}{CONTROL}{copy}", Mode.OFFLINE, names


def _measure(tables: list[StepTable], measure: str, weights: Weights, drawn: Ints) -> Measured:
    """Measure the runs of a view. `tables` has one table per run, and `drawn` holds the runs in each resample."""
    of, draws_of = _MEASURES[measure]
    runs = [classify(table).against_rest(Label.NEG) for table in tables]
    values = [of(items) for items in runs]
    if lacking := [value for value in values if not value.exists]:
        return Measured(lacking[0], np.full(len(weights), np.nan))
    draws = np.stack([draws_of(items, weights) for items in runs], axis=1)
    resampled = np.take_along_axis(draws, drawn, axis=1).mean(axis=1)
    return Measured(interval(Value(float(np.mean([value.number for value in values]))), resampled), resampled)


def _table(name: str, figures: Mapping[tuple[str, Mode, str], Measured]) -> Table:
    columns = (
        Column("view", "Evaluator", CellKind.TEXT),
        Column("online", "neg AUC online"),
        Column("offline", "offline"),
        Column("gain", "Δ offline", CellKind.POINTS),
        Column("share", "Share of the bidirectional Δ"),
        Column("within_online", "Within traces, online"),
        Column("within", "offline"),
        Column("within_gain", "Δ offline", CellKind.POINTS),
    )
    titles = list(dict.fromkeys(title for title, _, _ in figures))
    rows = tuple((title, *_cells(figures, title)) for title in titles)
    notes = (
        "AUC of p(neg) for wrong steps against all others. Within traces, only steps of one trace are compared.",
        "Δ is against the causal evaluator that reads once. Values are means over the runs; intervals are over "
        "traces and runs.",
    )
    return Table(f"{slug(name).lower()}-readings", f"{name}: readings", columns, rows, notes)


def _cells(figures: Mapping[tuple[str, Mode, str], Measured], title: str) -> Iterator[Cell]:
    for measure in _MEASURES:
        online, offline = (figures.get((title, mode, measure)) for mode in (Mode.ONLINE, Mode.OFFLINE))
        yield online.value if online else Value.none("it is not measured online")
        yield offline.value if offline else _NOT_OFFLINE
        if title == _TITLES[CAUSAL]:
            yield Value.none("it is what others are compared with")
        else:
            yield _gain(figures, title, measure).value if offline else _NOT_OFFLINE
        if measure == "auc":
            yield _share(figures, title) if offline else _NOT_OFFLINE


def _gain(figures: Mapping[tuple[str, Mode, str], Measured], title: str, measure: str) -> Measured:
    own, base = figures[title, Mode.OFFLINE, measure], figures[_TITLES[CAUSAL], Mode.OFFLINE, measure]
    return Measured(difference(own.value, base.value, own.draws, base.draws), own.draws - base.draws)


def _share(figures: Mapping[tuple[str, Mode, str], Measured], title: str) -> Value:
    """Return the gain of a view as a fraction of the bidirectional gain."""
    if title in (_TITLES[CAUSAL], _TITLES[BIDIRECTIONAL]):
        return Value.none("it defines the share")
    return gain_share(_gain(figures, title, "auc"), _gain(figures, _TITLES[BIDIRECTIONAL], "auc"))


def gain_share(own: Measured, whole: Measured) -> Value:
    """Return a gain as a fraction of the bidirectional gain `whole`. It does not exist unless the whole interval of
    the latter is above zero."""
    if not own.value.exists or not whole.value.low > 0:
        return Value.none("the bidirectional gain is not clearly above zero")
    above = whole.draws > 0
    return interval(Value(own.value.number / whole.value.number), own.draws[above] / whole.draws[above])


def _plot(figures: Mapping[tuple[str, Mode, str], Measured], measure: str) -> Plot:
    title = {"auc": "neg AUC", "within": "neg AUC within traces"}[measure]
    figure = make_figure("", title)
    for ink, mode in zip(INKS, (Mode.OFFLINE, Mode.ONLINE), strict=False):
        shown = {one: found.value for (one, of, kind), found in figures.items() if (of, kind) == (mode, measure)}
        if shown:
            # Long names on one line would be drawn aslant, and take a third of the picture.
            names = ["<br>".join(wrap(one, _LINE)) for one in shown]
            figure.add_trace(make_bars(names, list(shown.values()), mode.value, {"color": ink}))
    return make_plot(f"{title} by reading", figure, ())
