"""The report on reranking: tables and curves, as a single HTML page and as files."""

from collections.abc import Iterable, Sequence
from datetime import date

import numpy as np
import plotly.graph_objects as go

from stepsight.core.metrics.best_of_n import Ties
from stepsight.training.experiments.reranking.accuracy import BASELINES, Accuracy, Way, differences
from stepsight.training.experiments.reranking.reranking import RankedPool, Reranking
from stepsight.training.report.html import Content, Part, Section
from stepsight.training.report.plots import GREY, INKS, Plot, make_figure, make_plot, rounded
from stepsight.training.report.report import Report
from stepsight.training.report.tables import Cell, CellKind, Column, Table, slug, to_text

_DASHES = {
    Way.FIRST: "dot", Way.RANDOM: "longdash", Way.SHORTEST: "solid", Way.MAJORITY: "dashdot", Way.PASS: "dash",
}  # fmt: skip
# Curves with more points than this have no markers.
_MARKED = 8

Measured = Sequence[tuple[RankedPool, Accuracy]]
Side = tuple[Accuracy, Way]
"""A way of choosing by one evaluator."""


def make_rerank_report(reranking: Reranking, source: str, lead: str, day: date | None = None) -> Report:
    """Return a report that compares evaluators. `source` is the name of the pool. `lead` names the evaluators and
    says how answers were compared. Raises `ValueError` if no right answer is known."""
    measured = measured_of(reranking)
    if not measured:
        raise ValueError("no right answer is known")
    described = about(measured[0][1], reranking.ties)
    if len(measured) == 1:
        parts = [Part(source, lead, [Section("Accuracy", [described, *_contents(*measured[0])])])]
    else:
        parts = [Part(source, lead, [Section("Evaluators", [described, *overview_of(measured)])])]
        for ranking, accuracy in measured:
            contents = _contents(ranking, accuracy, f"-{slug(ranking.name)}")
            parts.append(Part(ranking.name, "", [Section("Accuracy", contents)]))
    return Report.of("StepSight reranking", f"{source}; {day or date.today():%d %B %Y}", parts)


def measured_of(reranking: Reranking) -> Measured:
    """Return the evaluators with their accuracies. The list is empty if no right answer is known."""
    return [(ranking, ranking.accuracy) for ranking in reranking.evaluators if ranking.accuracy is not None]


def accuracy_text(reranking: Reranking) -> str:
    """Return the main tables of the report as text for a terminal."""
    measured = measured_of(reranking)
    tables = overview_of(measured) if len(measured) > 1 else tables_of(*measured[0])
    parts = [about(measured[0][1], reranking.ties), "", *map(to_text, tables)]
    return "\n".join([*parts, f"Answers compared {reranking.compared}."])


def _contents(ranking: RankedPool, accuracy: Accuracy, suffix: str = "") -> list[Content]:
    first, gains = tables_of(ranking, accuracy, suffix)
    return [first, [curve(ranking, accuracy)], gains]


def about(accuracy: Accuracy, ties: Ties = Ties.RANDOM) -> str:
    """Describe in a few sentences the problems and candidates on which the figures are based."""
    equal = "the choice among them counts as random" if ties == Ties.RANDOM else "the first of them is chosen"
    text = (
        f"{accuracy.problems:,} {_noun(accuracy.problems)}, up to {accuracy.sizes[-1]:,} candidates each. With"
        " fewer than there are, a figure is the mean over all subsets of that size, for a vote over 1,000 of them"
        f" where there are more. Where several are equal, {equal}. Brackets hold 95 %"
        " intervals over the problems."
    )
    if accuracy.fewer:
        text += f" {accuracy.fewer:,} {_noun(accuracy.fewer)} with fewer candidates count with all they have."
    if accuracy.unknown:
        text += (
            f" {accuracy.unknown:,} {_noun(accuracy.unknown)} without a right answer to compare with are left out."
        )
    return text


def overview_of(measured: Measured) -> list[Table]:
    """Return the tables that compare evaluators: the accuracy of each with all candidates, and the differences
    between them."""
    ways = (Way.BEST, Way.WEIGHTED, Way.MAJORITY, Way.FIRST, Way.PASS)
    head, rule = Column("evaluator", "Evaluator", CellKind.TEXT), Column("by", "Rule", CellKind.TEXT)
    columns = [head, rule, *(Column(way.value, way.words) for way in ways)]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (ranking.name, ranking.by.words, *(accuracy.of_all(way) for way in ways)) for ranking, accuracy in measured
    )
    most = measured[0][1].sizes[-1]
    caption = f"Problems whose choice of {most:,} is right, percent"
    table = Table("rerank-evaluators", caption, tuple(columns), rows, _notes(rows))
    sides = [(ranking.name, (accuracy, Way.BEST)) for ranking, accuracy in measured]
    others = [(f"over_{slug(name)}", f"over {name}", side) for name, side in sides]
    caption = f"Differences between evaluators, best of {most:,}, percentage points"
    return [table, _differences("rerank-between", caption, head, sides, others)]


def tables_of(ranking: RankedPool, accuracy: Accuracy, suffix: str = "") -> tuple[Table, Table]:
    """Return a table of the accuracy by way and number of candidates, and one of gains: the differences between a
    way and the baselines with all candidates. `suffix` is added to the file names."""
    sizes = accuracy.shown_sizes
    places = [accuracy.sizes.index(size) for size in sizes]
    head = Column("way", f"Way of choosing, by {ranking.by.words}", CellKind.TEXT)
    columns = (head, *(Column(f"n{size}", f"N = {size:,}") for size in sizes))
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (way.words, *(accuracy.means[way][place] for place in places)) for way in Way
    )
    ways = list(Way)
    rules = (ways.index(Way.BEST), ways.index(Way.PASS))
    title = "Problems whose choice is right, percent"
    table = Table(f"rerank-accuracy{suffix}", title, columns, rows, _notes(rows), rules)
    chosen = [(way.words, (accuracy, way)) for way in (Way.MAJORITY, Way.BEST, Way.WEIGHTED)]
    others = [
        (f"over_{way.value}", f"over {way.words}", (accuracy, way))
        for way in BASELINES
        if accuracy.of_all(way).exists
    ]
    caption = f"What is gained with N = {accuracy.sizes[-1]:,}, percentage points"
    return table, _differences(f"rerank-gains{suffix}", caption, head, chosen, others)


def _differences(
    name: str,
    caption: str,
    head: Column,
    rows: Sequence[tuple[str, Side]],
    columns: Sequence[tuple[str, str, Side]],
) -> Table:
    """Return a table of the paired differences of the sides of the rows and of the columns."""
    pairs = [(*side, *other) for _, side in rows for _, _, other in columns if side != other]
    values = iter(differences(pairs))
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        (title, *(None if side == other else next(values) for _, _, other in columns)) for title, side in rows
    )
    heads = (head, *(Column(key, title, CellKind.POINTS) for key, title, _ in columns))
    return Table(name, caption, heads, cells, _notes(cells))


def curve(ranking: RankedPool, accuracy: Accuracy) -> Plot:
    """Plot the accuracy of each way against the number of candidates, with the baselines and the upper bound."""
    figure = make_figure("Candidates N", "Problems whose choice is right")
    mode = "lines+markers" if len(accuracy.sizes) <= _MARKED else "lines"
    notes, inks = [], iter(INKS)
    for way in (Way.PASS, Way.BEST, Way.WEIGHTED, *reversed(BASELINES)):
        values = accuracy.means[way]
        if not values[0].exists:
            notes.append(f"{way.words}: {values[0].reason}")
            continue
        line = {"color": GREY, "dash": _DASHES[way], "width": 1.5} if way in _DASHES else {"color": next(inks)}
        numbers = np.array([value.number for value in values])
        figure.add_trace(
            go.Scatter(x=list(accuracy.sizes), y=rounded(numbers), name=way.words, mode=mode, line=line)
        )
    shown = accuracy.shown_sizes
    figure.update_xaxes(type="log", tickvals=shown, ticktext=[f"{size:,}" for size in shown])
    return make_plot(f"Choices by {ranking.by.words}, by the number of candidates", figure, notes)


def _notes(rows: Iterable[tuple[Cell, ...]]) -> tuple[str, ...]:
    reasons = {cell.reason for row in rows for cell in row if not isinstance(cell, str | int | None)}
    return tuple(f"–: {reason}." for reason in sorted(reasons) if reason)


def _noun(count: int) -> str:
    return "problem" if count == 1 else "problems"
