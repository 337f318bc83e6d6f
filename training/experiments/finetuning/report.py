"""Tables, figures and the report of models fine-tuned on subsets of a pool, from new runs and from the paper."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import cycle
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import read_json
from stepsight.core.metrics.bootstrap import DRAWS, Value, resamples
from stepsight.training.experiments.filtering.pool import RANDOM, SUBSETS
from stepsight.training.experiments.finetuning.math500 import Result, read_results
from stepsight.training.report.html import Part, Section
from stepsight.training.report.plots import INKS, Plot, make_figure, make_plot, rounded
from stepsight.training.report.report import Report
from stepsight.training.report.tables import Cell, CellKind, Column, Table, show

PAPER = "tab:filter_ablation"
_TITLES = {"val+red": "Val + Red", "val": "Val-only", "red": "Red-only", RANDOM: "Random"}
_TEXT, _COUNT = CellKind.TEXT, CellKind.COUNT
_SUBSET = (Column("scorer", "Scorer", _TEXT), Column("filter", "Filter", _TEXT), Column("rows", "N", _COUNT))
_REACHED = (Column("accuracy", "Acc."), Column("tokens", "Tok.", _COUNT))


@dataclass(frozen=True)
class Group:
    """The models fine-tuned on one subset that an evaluator chose, with means over their seeds. `gain` is the
    difference of their accuracy from that on the random subset of the same size."""

    scorer: str
    subset: str
    rows: int | None
    seeds: int
    accuracy: float
    length: float
    gain: Value = Value.none("it is what the others are compared with, or there is nothing to compare with")  # noqa: RUF009


def group_runs(results: Iterable[Result]) -> list[Group]:
    """Group runs by evaluator and subset, in the paper's order. A model that was not fine-tuned is a subset of its
    own, by the model's name."""
    runs: dict[tuple[str, str], list[Result]] = {}
    for run in _sort_results(results):
        runs.setdefault((run.scorer, run.subset or run.model), []).append(run)
    groups = []
    for (scorer, subset), members in runs.items():
        accuracy, length = np.mean([(run.accuracy, run.length) for run in members], axis=0).tolist()
        rows = members[0].rows if len({run.rows for run in members}) == 1 else None
        group = Group(scorer, subset, rows, len(members), accuracy, length)
        random = runs.get((scorer, RANDOM))
        groups.append(replace(group, gain=_gain(members, random)) if random and subset != RANDOM else group)
    return groups


def _sort_results(results: Iterable[Result]) -> list[Result]:
    order = {name: place for place, name in enumerate(SUBSETS)}
    return sorted(results, key=lambda run: (run.scorer, order.get(run.subset, 9), run.subset, run.seed or 0))


def _gain(runs: Sequence[Result], random: Sequence[Result]) -> Value:
    """Return the mean accuracy of runs minus that of the runs on the random subset. The interval comes from a
    bootstrap over the problems, with the same resamples for all runs, and over the seeds of both subsets."""
    # True for the problems that each run solved, shape (runs, problems).
    solved = [np.array([run.correct for run in side], np.float64) for side in (runs, random)]
    difference = Value(float(solved[0].mean() - solved[1].mean()))
    if (np.concatenate(solved) == solved[1][:1]).all():
        # Resamples with only ties would give an interval of zero width.
        return difference
    weights, rng = resamples(solved[0].shape[1]).astype(np.float64), np.random.default_rng(0)
    draws = np.zeros(len(weights))
    for side, sign in zip(solved, (1, -1), strict=True):
        each = weights @ side.T / side.shape[1]
        seeds = rng.integers(0, len(side), each.shape)
        draws += sign * np.take_along_axis(each, seeds, axis=1).mean(axis=1)
    return difference.within(*map(float, np.quantile(draws, (0.025, 0.975))))


def read_printed(path: Path) -> list[Group]:
    """Read the paper's table. A random subset belongs to the evaluator whose subsets have the same size, and gains
    are differences of the printed figures. Raises `UserError` for any other file."""
    subsets, groups = {title: name for name, title in _TITLES.items()}, []
    try:
        for row in read_json(path)["rows"]:
            size, percent, length = map(float, row["values"])
            accuracy = round(percent / 100, 3)
            groups.append(Group(row.get("section", ""), subsets[row["name"]], int(size), 3, accuracy, length))
        random = {group.rows: group.accuracy for group in groups if group.subset == RANDOM}
        scorers = {group.rows: group.scorer for group in groups if group.subset != RANDOM}
        return [
            replace(group, scorer=scorers[group.rows])
            if group.subset == RANDOM
            else replace(group, gain=Value(round(group.accuracy - random[group.rows], 3)))
            for group in groups
        ]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UserError(f"{path}: not the paper's table of subsets ({type(error).__name__}: {error}).") from None


def subset_table(groups: Sequence[Group], name: str, caption: str, notes: Sequence[str]) -> Table:
    """Return a table of the subsets, as in the paper, with the random subsets at the end."""
    groups = sorted(groups, key=lambda group: group.subset == RANDOM)
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        title = _TITLES.get(group.subset, group.subset)
        means = Value(group.accuracy), round(group.length), group.gain
        rows.append((group.scorer, title, group.rows, group.seeds, *means))
    blocks = [RANDOM if group.subset == RANDOM else group.scorer for group in groups]
    rules = tuple(place for place in range(1, len(blocks)) if blocks[place] != blocks[place - 1])
    columns = (*_SUBSET, Column("seeds", "Seeds", _COUNT), *_REACHED,
               Column("difference", "Δ Random", CellKind.POINTS))  # fmt: skip
    return Table(name, caption, columns, tuple(rows), tuple(notes), rules)


def result_tables(results: Sequence[Result]) -> list[Table]:
    """Return a table of the subsets and a table with a row for each run."""
    about, count = results[0].problems or {}, len(results[0].correct)
    problems = f"pass@1 on {count} problems of {about.get('name', 'a file')}"
    constant = []
    if best := about.get("constant"):
        share = show(Value(best["right"] / count), CellKind.PERCENT)
        constant.append(f"Always answering {best['answer']} would be right {best['right']} times, {share} %.")
    notes = [
        "Means over the seeds. Δ Random is the difference from the random subset of the same size, in points; "
        f"its interval is of {DRAWS:,} resamples of the problems and of the seeds.",
        *constant,
    ]
    groups = group_runs(results)
    if len({group.seeds for group in groups}) > 1:
        notes.append("Not every subset has as many seeds.")
    subsets = subset_table(groups, "subsets", f"Subsets of a pool: {problems}", notes)
    notes = [
        "Intervals are Wilson's, of one model on these problems. Tokens are the mean of an answer; Cut counts "
        "answers that came to no end.",
        *constant,
    ]
    if given_up := sum(run.given_up for run in results):
        notes.append(f"The grader gave up on {given_up} answers, which count as wrong.")
    rows: list[tuple[Cell, ...]] = []
    for run in _sort_results(results):
        title, seed = _TITLES.get(run.subset, run.subset or run.model), "–" if run.seed is None else str(run.seed)
        interval = binomtest(sum(run.correct), count).proportion_ci(method="wilson")
        accuracy = Value(run.accuracy).within(float(interval.low), float(interval.high))
        rows.append((run.scorer, title, run.rows, seed, accuracy, round(run.length), run.cut))
    columns = (*_SUBSET, Column("seed", "Seed", _TEXT), *_REACHED, Column("cut", "Cut", _COUNT))
    return [subsets, Table("runs", f"Each run: {problems}", columns, tuple(rows), tuple(notes))]


def subset_plots(points: Sequence[Result | Group]) -> list[Plot]:
    """Plot pass@1 and answer length on each subset, with a point for each run and one colour per evaluator."""
    drawn = [point for point in points if point.subset in SUBSETS]
    notes = ["Runs on no such subset are not drawn."] if len(drawn) < len(points) else []
    accuracy, length = make_figure("Subset", "Pass@1, %"), make_figure("Subset", "Tokens of an answer")
    for figure in (accuracy, length):
        # Points of several evaluators are drawn side by side.
        figure.update_layout(scattermode="group")
        figure.update_xaxes(type="category", categoryorder="array", categoryarray=list(_TITLES.values()))
        for scorer, ink in zip(dict.fromkeys(point.scorer for point in drawn), cycle(INKS), strict=False):
            own = [point for point in drawn if point.scorer == scorer]
            values = [100 * point.accuracy if figure is accuracy else point.length for point in own]
            figure.add_scatter(
                x=[_TITLES[point.subset] for point in own], y=rounded(np.array(values)),
                name=scorer or "no evaluator", mode="markers", marker={"color": ink, "size": 9, "opacity": 0.7},
            )  # fmt: skip
    return [make_plot("Pass@1 by subset", accuracy, notes), make_plot("Length by subset", length, notes)]


def make_filtering_report(paths: Sequence[Path], day: date | None = None) -> Report:
    """Return a report on the results in the given folders, on the paper's printed table, or on both. Raises
    `UserError` if a folder contains no results, or if a model or the paper's table is given twice."""
    printed = [path for path in paths if path.is_file() and read_json(path).get("label") == PAPER]
    if len(printed) > 1:
        raise UserError("the paper's table is given twice.", "Give it once.")
    parts = []
    if len(printed) < len(paths):
        results = read_results([path for path in paths if path not in printed])
        subsets, runs = result_tables(results)
        section = Section("Pass@1 and length", [subsets, subset_plots(results), runs])
        lead = f"{len(results)} runs, each of one model that was fine-tuned on one subset."
        parts.append(Part("Subsets of a pool", lead, [section]))
    if printed:
        groups = read_printed(printed[0])
        caption = "The paper: Mistral-7B-v0.1 fine-tuned on subsets, pass@1 on MATH-500"
        notes = ["As the paper prints them; Δ Random is the difference of the printed figures, in points."]
        table = subset_table(groups, "paper-subsets", caption, notes)
        section = Section("Pass@1 and length", [table, subset_plots(groups)])
        parts.append(Part("The paper", "Mistral-7B-v0.1, the mean of three seeds.", [section]))
    lead = f"pass@1 of greedy answers, graded with math-verify; {day or date.today():%d %B %Y}"
    return Report.of("StepSight filtering", lead, parts)
