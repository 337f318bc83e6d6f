"""Plots of models fine-tuned on subsets, with a point for each run and a dash at the mean of each subset."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go

from stepsight.training.experiments.filtering.subsets import SUBSETS
from stepsight.training.experiments.finetuning.results import Printed, Result
from stepsight.training.experiments.finetuning.tables import TITLES
from stepsight.training.report.plots import INKS, Plot, make_figure, make_plot, rounded


@dataclass(frozen=True)
class _Point:
    scorer: str
    subset: str
    accuracy: float
    length: float
    name: str = ""


def subset_plots(results: Iterable[Result]) -> list[Plot]:
    """Plot pass@1 and answer length of the runs on each subset, with one colour per evaluator."""
    return _plots(
        [
            _Point(one.scorer, one.subset, one.accuracy, one.length, "" if one.seed is None else f"seed {one.seed}")
            for one in results
        ]
    )


def printed_plots(printed: Iterable[Printed]) -> list[Plot]:
    """Plot pass@1 and answer length as printed in the paper. The paper's figures are means over seeds."""
    return _plots([_Point(row.scorer, row.subset, row.accuracy, row.length) for row in printed])


def _plots(runs: Sequence[_Point]) -> list[Plot]:
    drawn = [run for run in runs if run.subset in SUBSETS]
    notes = ["Runs on no such subset are not drawn."] if len(drawn) < len(runs) else []
    percent = make_figure("Subset", "Pass@1, %")
    tokens = make_figure("Subset", "Tokens of an answer")
    _draw(percent, drawn, [run.accuracy * 100 for run in drawn])
    _draw(tokens, drawn, [run.length for run in drawn])
    for figure in (percent, tokens):
        figure.update_xaxes(
            tickvals=list(range(len(SUBSETS))),
            ticktext=[TITLES[name] for name in SUBSETS],
            range=[-0.5, len(SUBSETS) - 0.5],
        )
    return [make_plot("Pass@1 by subset", percent, notes), make_plot("Length by subset", tokens, notes)]


def _draw(figure: go.Figure, runs: Sequence[_Point], values: Sequence[float]) -> None:
    """Draw a column of points for each evaluator and subset, with a dash at the mean of several points."""
    scorers = list(dict.fromkeys(run.scorer for run in runs))
    for place, scorer in enumerate(scorers):
        shift = 0.16 * (place - (len(scorers) - 1) / 2)
        ink = INKS[place % len(INKS)]
        own = [(SUBSETS.index(run.subset), value, run.name) for run, value in zip(runs, values, strict=True)
               if run.scorer == scorer]  # fmt: skip
        means = [
            (subset, float(np.mean(of_subset)))
            for subset in range(len(SUBSETS))
            if len(of_subset := [value for at, value, _ in own if at == subset]) > 1
        ]
        name = scorer or "no evaluator"
        figure.add_trace(
            go.Scatter(
                x=[at + shift for at, _, _ in own], y=rounded(np.array([value for _, value, _ in own])),
                text=[label for _, _, label in own], name=name, mode="markers",
                marker={"color": ink, "size": 7, "opacity": 0.7},
            )
        )  # fmt: skip
        if means:
            figure.add_trace(
                go.Scatter(
                    x=[at + shift for at, _ in means], y=rounded(np.array([mean for _, mean in means])),
                    name=f"{name}, mean", mode="markers",
                    marker={"color": ink, "size": 22, "symbol": "line-ew", "line": {"color": ink, "width": 3}},
                )
            )  # fmt: skip
