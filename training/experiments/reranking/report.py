"""The report on choosing among candidates: tables, curves and conclusions, as one page and as files."""

from collections.abc import Iterable
from datetime import date

import numpy as np
import plotly.graph_objects as go

from stepsight.core.metrics.best_of_n import RankingMethod
from stepsight.training.experiments.reranking.accuracy import (
    BASELINES,
    FIRST,
    MAJORITY,
    PASS,
    RANDOM,
    SCORED,
    SHORTEST,
    WAYS,
    Accuracy,
)
from stepsight.training.report.html import Content, Part, Section
from stepsight.training.report.plots import GREY, INKS, Plot, make_figure, make_plot, rounded
from stepsight.training.report.report import Report
from stepsight.training.report.tables import Cell, CellKind, Column, Table

_THE = {
    FIRST: "the first candidate",
    RANDOM: "a random candidate",
    SHORTEST: "the shortest",
    MAJORITY: "the majority vote",
}
_DASHES = {FIRST: "dot", RANDOM: "longdash", SHORTEST: "solid", MAJORITY: "dashdot", PASS: "dash"}


def make_rerank_report(accuracy: Accuracy, source: str, lead: str, day: date | None = None) -> Report:
    """Return the report on the accuracy for `source`.

    `lead` names the evaluator and says how answers were compared.
    """
    tables = tables_of(accuracy)
    contents: list[Content] = [
        about(accuracy),
        tables[0],
        [curve(accuracy, method) for method in (RankingMethod.BEST_OF_N, RankingMethod.WEIGHTED_VOTE)],
    ]
    part = Part(source, lead, [Section("Accuracy", [*contents, *tables[1:]])])
    return Report.of("StepSight reranking", f"{source}; {day or date.today():%d %B %Y}", [part])


def about(accuracy: Accuracy) -> str:
    """Describe the problems and candidates behind the figures in a few sentences."""
    text = (
        f"{accuracy.problems:,} {_noun(accuracy.problems)}, up to {accuracy.candidates:,} candidates each. With"
        " fewer than there are, a figure is the mean over all subsets of that size, for a vote over 1,000 of them"
        " where there are more. Where several are equal, the choice among them counts as random. Brackets hold 95 %"
        " intervals over the problems."
    )
    if accuracy.fewer:
        text += f" {accuracy.fewer:,} {_noun(accuracy.fewer)} with fewer candidates count with all they have."
    if accuracy.unknown:
        text += (
            f" {accuracy.unknown:,} {_noun(accuracy.unknown)} without a right answer to compare with are left out."
        )
    return text


def tables_of(reached: Accuracy) -> tuple[Table, ...]:
    """Return two tables: the accuracy by way and number of candidates, and the gains of the ways with all
    candidates."""
    columns = [Column("way", "Way of choosing", CellKind.TEXT)]
    columns += [Column(f"n{size}", f"N = {size:,}") for size in reached.sizes]
    rows: tuple[tuple[Cell, ...], ...] = tuple((way.title, *reached.means[way]) for way in WAYS)
    rules = (WAYS.index(MAJORITY), WAYS.index(SCORED[0]), WAYS.index(SCORED[3]), WAYS.index(PASS))
    accuracy = Table(
        "rerank-accuracy", "Problems whose choice is right, percent", tuple(columns), rows, _notes(rows), rules
    )
    return accuracy, _gains(reached)


def _gains(accuracy: Accuracy) -> Table:
    others = [other for other in BASELINES if any(pair[1] == other for pair in accuracy.gains)]
    columns = [Column("way", "Way of choosing", CellKind.TEXT)]
    columns += [Column(f"over_{other.key}", f"over {_THE[other]}", CellKind.POINTS) for other in others]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (way.title, *(None if way == other else accuracy.gains[way, other] for other in others))
        for way in (MAJORITY, *SCORED)
    )
    caption = f"What is gained with N = {accuracy.candidates:,}, percentage points"
    return Table("rerank-gains", caption, tuple(columns), rows, _notes(rows), (1, 1 + len(SCORED) // 2))


def curve(accuracy: Accuracy, method: RankingMethod) -> Plot:
    """Plot accuracy against the number of candidates for one method, with a curve for each score.

    The baselines and the upper bound are plotted as well.
    """
    figure = make_figure("Candidates N", "Problems whose choice is right")
    ways = [PASS, *(way for way in SCORED if way.method == method), *reversed(BASELINES)]
    notes = []
    for place, way in enumerate(ways):
        values = accuracy.means[way]
        if not values[0].exists:
            notes.append(f"{way.title}: {values[0].reason}")
            continue
        line = {"color": GREY, "dash": _DASHES[way], "width": 1.5} if way in _DASHES else {"color": INKS[place - 1]}
        numbers = np.array([value.number for value in values])
        figure.add_trace(
            go.Scatter(x=list(accuracy.sizes), y=rounded(numbers), name=way.title, mode="lines+markers", line=line)
        )
    figure.update_xaxes(
        type="log", tickvals=list(accuracy.sizes), ticktext=[f"{size:,}" for size in accuracy.sizes]
    )
    title = "Best of N" if method == RankingMethod.BEST_OF_N else "Weighted vote"
    return make_plot(f"{title} by the number of candidates", figure, notes)


def _notes(rows: Iterable[tuple[Cell, ...]]) -> tuple[str, ...]:
    reasons = {cell.reason for row in rows for cell in row if not isinstance(cell, str | int | None)}
    return tuple(f"–: {reason}." for reason in sorted(reasons) if reason)


def _noun(count: int) -> str:
    return "problem" if count == 1 else "problems"
