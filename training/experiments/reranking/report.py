"""The report on reranking: tables, curves and conclusions, as a single HTML page and as files."""

from collections.abc import Iterable, Sequence
from datetime import date

import numpy as np
import plotly.graph_objects as go

from stepsight.core.metrics.best_of_n import Aggregation, RankingMethod, Ties, official_rule
from stepsight.core.metrics.bootstrap import Value
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
    Way,
    best_by,
    differences,
)
from stepsight.training.experiments.reranking.reranking import OFFICIAL, RankedPool, Reranking
from stepsight.training.report.html import Content, Part, Section
from stepsight.training.report.plots import GREY, INKS, Plot, make_figure, make_plot, rounded
from stepsight.training.report.report import Report
from stepsight.training.report.tables import Cell, CellKind, Column, Table, slug, to_text

_THE = {
    FIRST: "the first candidate",
    RANDOM: "a random candidate",
    SHORTEST: "the shortest",
    MAJORITY: "the majority vote",
}
_DASHES = {FIRST: "dot", RANDOM: "longdash", SHORTEST: "solid", MAJORITY: "dashdot", PASS: "dash"}
_NO_RULE = "the authors state no rule that is known here"
# Above this number of points, a curve has no marks on them.
_MARKED = 8

Measured = Sequence[tuple[RankedPool, Accuracy]]
Side = tuple[Accuracy, Way]
"""A way of choosing by one evaluator."""


def make_rerank_report(reranking: Reranking, by: str, source: str, lead: str, day: date | None = None) -> Report:
    """Return a report that compares evaluators by the rule `by`. `source` is the name of the pool. `lead` names the
    evaluators and says how answers were compared. Raises `ValueError` if no right answer is known."""
    measured = measured_of(reranking)
    if not measured:
        raise ValueError("no right answer is known")
    several = len(measured) > 1
    if several:
        overview: list[Content] = [about(measured[0][1], reranking.ties), *overview_of(measured, by)]
        parts = [Part(source, lead, [Section("Evaluators", overview)])]
        for ranking, accuracy in measured:
            parts.append(
                Part(ranking.name, "", [Section("Accuracy", _contents(accuracy, f"-{slug(ranking.name)}"))])
            )
    else:
        ((ranking, accuracy),) = measured
        rules = [] if official_rule(ranking.name) is None else [rules_table(measured)]
        contents = [about(accuracy, reranking.ties), *_contents(accuracy), *rules]
        parts = [Part(source, lead, [Section("Accuracy", contents)])]
    return Report.of("StepSight reranking", f"{source}; {day or date.today():%d %B %Y}", parts)


def measured_of(reranking: Reranking) -> Measured:
    """Return the evaluators with their accuracies. The list is empty if no right answer is known."""
    return [(ranking, ranking.accuracy) for ranking in reranking.evaluators if ranking.accuracy is not None]


def accuracy_text(reranking: Reranking, by: str) -> str:
    """Return the main tables of the report as text for a terminal."""
    measured = measured_of(reranking)
    accuracy = measured[0][1]
    tables = overview_of(measured, by) if len(measured) > 1 else tables_of(accuracy)
    parts = [about(accuracy, reranking.ties), "", *(f"{to_text(table)}" for table in tables)]
    return "\n".join([*parts, f"Answers compared {reranking.compared}."])


def _contents(accuracy: Accuracy, suffix: str = "") -> list[Content]:
    first, *others = tables_of(accuracy, suffix)
    curves = [
        curve(accuracy, method)
        for method in (RankingMethod.BEST_OF_N, RankingMethod.WEIGHTED_VOTE)
        if any(way.method == method and way not in accuracy.lacking for way in SCORED)
    ]
    return [first, curves, *others]


def about(accuracy: Accuracy, ties: Ties = Ties.RANDOM) -> str:
    """Describe in a few sentences the problems and candidates on which the figures are based."""
    equal = "the choice among them counts as random" if ties == Ties.RANDOM else "the first of them is chosen"
    text = (
        f"{accuracy.problems:,} {_noun(accuracy.problems)}, up to {accuracy.candidates:,} candidates each. With"
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


def overview_of(measured: Measured, by: str) -> list[Table]:
    """Return the tables that compare evaluators.

    The tables give the accuracy by each rule, the rules of the evaluators' authors, and the differences between
    evaluators by the rule `by`. Raises `UserError` if `by` stands for the authors' rules and some authors state
    none.
    """
    return [evaluators_table(measured), rules_table(measured), _between(measured, by)]


def evaluators_table(measured: Measured) -> Table:
    """Return a table of each evaluator's accuracy with all candidates, by rule and by ways that need no scores."""
    plain = [way for way in (FIRST, MAJORITY, PASS) if way not in measured[0][1].lacking]
    ways = [*map(best_by, Aggregation), *plain]
    columns = [Column("evaluator", "Evaluator", CellKind.TEXT)]
    columns += [Column(way.key, way.by.words if way.by is not None else way.title) for way in ways]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (ranking.name, *(accuracy.of_all(way) for way in ways)) for ranking, accuracy in measured
    )
    caption = f"Best of {measured[0][1].candidates:,} by each rule, percent"
    return Table("rerank-evaluators", caption, tuple(columns), rows, _notes(rows))


def rules_table(measured: Measured) -> Table:
    """Return a table that compares the rule of each evaluator's authors with the best way of choosing."""
    rows: list[tuple[Cell, ...]] = []
    for ranking, accuracy in measured:
        rule = official_rule(ranking.name)
        own = None if rule is None else best_by(rule.by)
        best = accuracy.best(own)
        reached = best.title, accuracy.of_all(best)
        if rule is None or own is None:
            none = Value.none(_NO_RULE)
            rows.append((ranking.name, None, none, *reached, none, None))
        else:
            (gain,) = differences([(accuracy, own, accuracy, best)])
            rows.append((ranking.name, rule.by.words, accuracy.of_all(own), *reached, gain, rule.source))
    columns = (
        Column("evaluator", "Evaluator", CellKind.TEXT),
        Column("official", "Authors' rule", CellKind.TEXT),
        Column("accuracy", "Its accuracy"),
        Column("best", "Best way", CellKind.TEXT),
        Column("best_accuracy", "Its accuracy"),
        Column("difference", "Authors' minus best", CellKind.POINTS),
        Column("source", "Source of the rule", CellKind.TEXT),
    )
    caption = f"The rules of evaluators' authors, with {measured[0][1].candidates:,} candidates"
    notes = (*_notes(rows), "The best way is chosen on the same problems, so that its figure flatters it.")
    return Table("rerank-rules", caption, columns, tuple(rows), notes)


def _between(measured: Measured, by: str) -> Table:
    """Return a table of the differences between evaluators."""
    sides = [(accuracy, best_by(ranking.rule(by))) for ranking, accuracy in measured]
    names = [ranking.name for ranking, _ in measured]
    rule = "each by its authors' rule" if by == OFFICIAL else f"by {Aggregation(by).words}"
    caption = f"Differences between evaluators, best of {sides[0][0].candidates:,} {rule}, percentage points"
    columns = [(f"over_{slug(name)}", f"over {name}", side) for name, side in zip(names, sides, strict=True)]
    head = Column("evaluator", "Evaluator", CellKind.TEXT)
    return _differences("rerank-between", caption, head, list(zip(names, sides, strict=True)), columns)


def tables_of(reached: Accuracy, suffix: str = "") -> tuple[Table, ...]:
    """Return tables of the accuracy by way and number of candidates, of gains, and of differences between rules. A
    gain is the difference between a way and a baseline with all candidates. `suffix` is added to the file names."""
    sizes = reached.shown_sizes
    places = [reached.sizes.index(size) for size in sizes]
    columns = [Column("way", "Way of choosing", CellKind.TEXT)]
    columns += [Column(f"n{size}", f"N = {size:,}") for size in sizes]
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (way.title, *(reached.means[way][place] for place in places)) for way in WAYS
    )
    half = len(SCORED) // 2
    rules = (WAYS.index(MAJORITY), WAYS.index(SCORED[0]), WAYS.index(SCORED[half]), WAYS.index(PASS))
    title = "Problems whose choice is right, percent"
    accuracy = Table(f"rerank-accuracy{suffix}", title, tuple(columns), rows, _notes(rows), rules)
    ways = [(way.title, (reached, way)) for way in (MAJORITY, *SCORED)]
    others = [
        (f"over_{way.key}", f"over {_THE[way]}", (reached, way)) for way in BASELINES if way not in reached.lacking
    ]
    caption = f"What is gained with N = {reached.candidates:,}, percentage points"
    gains = _differences(f"rerank-gains{suffix}", caption, columns[0], ways, others, (1, 1 + half))
    best = [(f"over_{best_by(by).key}", f"over {by.words}", (reached, best_by(by))) for by in Aggregation]
    caption = f"Differences between rules with N = {reached.candidates:,}, percentage points"
    rows_of_rules = [(side[1].title, side) for _, _, side in best]
    between = _differences(f"rerank-between-rules{suffix}", caption, columns[0], rows_of_rules, best)
    return accuracy, gains, between


def _differences(
    name: str,
    caption: str,
    head: Column,
    rows: Sequence[tuple[str, Side]],
    columns: Sequence[tuple[str, str, Side]],
    rules: tuple[int, ...] = (),
) -> Table:
    """Return a table of the paired differences of the sides of the rows and of the columns."""
    pairs = [(*side, *other) for _, side in rows for _, _, other in columns if side != other]
    values = iter(differences(pairs))
    cells: tuple[tuple[Cell, ...], ...] = tuple(
        (title, *(None if side == other else next(values) for _, _, other in columns)) for title, side in rows
    )
    heads = (head, *(Column(key, title, CellKind.POINTS) for key, title, _ in columns))
    return Table(name, caption, heads, cells, _notes(cells), rules)


def curve(accuracy: Accuracy, method: RankingMethod) -> Plot:
    """Plot the accuracy of a method against the number of candidates, with a curve for each rule.

    The baselines and the upper bound are plotted as well.
    """
    figure = make_figure("Candidates N", "Problems whose choice is right")
    ways = [PASS, *(way for way in SCORED if way.method == method), *reversed(BASELINES)]
    mode = "lines+markers" if len(accuracy.sizes) <= _MARKED else "lines"
    notes = []
    for place, way in enumerate(ways):
        values = accuracy.means[way]
        if not values[0].exists:
            notes.append(f"{way.title}: {values[0].reason}")
            continue
        line = {"color": GREY, "dash": _DASHES[way], "width": 1.5} if way in _DASHES else {"color": INKS[place - 1]}
        numbers = np.array([value.number for value in values])
        figure.add_trace(
            go.Scatter(x=list(accuracy.sizes), y=rounded(numbers), name=way.title, mode=mode, line=line)
        )
    shown = accuracy.shown_sizes
    figure.update_xaxes(type="log", tickvals=shown, ticktext=[f"{size:,}" for size in shown])
    title = "Best of N" if method == RankingMethod.BEST_OF_N else "Weighted vote"
    return make_plot(f"{title} by the number of candidates", figure, notes)


def _notes(rows: Iterable[tuple[Cell, ...]]) -> tuple[str, ...]:
    reasons = {cell.reason for row in rows for cell in row if not isinstance(cell, str | int | None)}
    return tuple(f"–: {reason}." for reason in sorted(reasons) if reason)


def _noun(count: int) -> str:
    return "problem" if count == 1 else "problems"
