"""The results of a grid: the figures of each run on each test set, in a JSON file or in the paper's table, and the
differences within pairs of runs.

A pair consists of a bidirectional and a causal run of the same size, data and seed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from pydantic import Field
from pydantic.dataclasses import dataclass

from stepsight.core.arrays import Floats64
from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import read_json
from stepsight.core.metrics import bootstrap, ternary
from stepsight.core.metrics.bootstrap import Value, Weights
from stepsight.core.metrics.table import StepTable, by_third
from stepsight.core.trace import Label
from stepsight.core.validation import STRICT, ListOf, Record, validate
from stepsight.training.evaluate.diagnostics import by_class
from stepsight.training.experiments.grid.design import RunSettings

WHOLE = "results.json"
_PAPER = "tab:full-grid-results"
_MASKS = {"Bidir": "bidirectional", "Causal": "causal"}
MASKS = {"bidirectional": "Bidir", "causal": "Causal"}
PLACE = ["size", "data", "seed"]

ACCURACY, MACRO_F1, MACRO_AUC, LATE_AUC = "accuracy", "macro_f1", "macro_auc", "late_auc"
METRICS = {ACCURACY: "Accuracy", MACRO_F1: "macro-F1", MACRO_AUC: "macro-AUC", LATE_AUC: "Late-AUC"}
"""The columns of the paper's tables; the last is macro-AUC in the last third."""
_DRAWS = 10_000

Key = tuple[str, str]
"""A test and a mode, such as `offline`."""
Figures = dict[str, float | None]
"""The figures of a run on a test set, as fractions; undefined ones are None. Besides those of `METRICS` and the
numbers of `traces` and `steps`, there are `THIRD_auc` (macro-AUC), `THIRD_accuracy` and the counts `THIRD_steps`
and `THIRD_LABEL` of each third of the solutions, and `LABEL_auc` and `LABEL_f1` of each label against the rest."""
Tests = dict[str, dict[str, Figures]]
"""Figures by test set and mode."""


def figures_of(table: StepTable) -> Figures:
    """Return an evaluator's figures on the labelled steps of a table. Classes are predicted by argmax.

    Thirds are the paper's buckets. If a class is absent from the gold labels, macro-AUC is the mean over the
    remaining classes. For an evaluator without three probabilities, the AUCs are computed from validity.
    """
    steps = ternary.classify(table)
    figures: dict[str, Value | int] = {
        "traces": int(table.present.sum()),
        "steps": len(steps),
        ACCURACY: ternary.accuracy(steps),
        MACRO_F1: ternary.macro_f1(steps),
        MACRO_AUC: ternary.macro_auc(steps),
    }
    for third, of_third in by_third(table).items():
        part = ternary.classify(of_third)
        figures[f"{third}_auc"] = ternary.macro_auc(part)
        figures[f"{third}_accuracy"] = ternary.accuracy(part)
        figures[f"{third}_steps"] = len(part)
        figures |= {f"{third}_{label.text}": int((part.gold == label).sum()) for label in Label}
    figures |= by_class(table)
    return {
        name: value if isinstance(value, int) else value.number if value.exists else None
        for name, value in figures.items()
    }


@dataclass(frozen=True, config=STRICT)
class RunResult(Record):
    """The figures of a run on each test set. `about` describes the run, for example its parameter count."""

    run: RunSettings
    about: dict[str, Any]
    tests: Tests


@dataclass(frozen=True, config=STRICT, kw_only=True)
class GridResults(Record):
    """The results of a grid's finished runs, in the order of the design.

    `planned` is the total number of runs, finished or not. `baselines` holds the figures of each trivial baseline.
    `notes` tells readers what they should know about each test set. `rounded` is True if the figures were printed
    with three decimal places.
    """

    format: Literal["stepsight-grid"] = "stepsight-grid"
    name: str
    planned: int
    about: str = ""
    notes: dict[str, str] = field(default_factory=dict)
    baselines: dict[str, Tests] = field(default_factory=dict)
    runs: Annotated[ListOf[RunResult], Field(min_length=1)]
    rounded: bool = False

    @property
    def keys(self) -> list[Key]:
        """The combinations of test set and mode that have figures."""
        return list(
            dict.fromkeys((test, mode) for run in self.runs for test in run.tests for mode in run.tests[test])
        )

    def figures(self, key: Key) -> list[tuple[RunSettings, Figures]]:
        """Return the figures of the runs that were measured on a test in a mode."""
        test, mode = key
        return [(run.run, run.tests[test][mode]) for run in self.runs if mode in run.tests.get(test, {})]

    def as_json(self) -> dict[str, Any]:
        """Return the results as JSON values, which `read_results` reads."""
        return asdict(self)


def read_results(path: Path) -> GridResults:
    """Read the results in a grid's folder, in a `results.json`, or in the paper's table of runs. Raises `UserError`
    if no results are found."""
    file = path / WHOLE if path.is_dir() else path
    if not file.is_file():
        raise UserError(f"{path}: there is no {file.name} with the results of a grid.", "Run stepsight grid first.")
    values = read_json(file)
    try:
        results = _paper(values) if values.get("label") == _PAPER else validate(GridResults, values)
    except UserError as error:
        raise UserError(f"{file}: not the results of a grid: {error.message}", error.hint) from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UserError(f"{file}: not the paper's table ({type(error).__name__}: {error}).") from None
    for run in results.runs:
        for figures in (figures for modes in run.tests.values() for figures in modes.values()):
            if lacking := [name for name in METRICS if name not in figures]:
                raise UserError(f"{file}: not the results of a grid: {run.run.name} has no {lacking[0]}.")
    return results


def _paper(values: Mapping[str, Any]) -> GridResults:
    runs = []
    for row in values["rows"]:
        size, data, seed, *printed = row["values"]
        settings = RunSettings(f"{size:g}B", f"{data / 1000:g}k", _MASKS[row["name"]], int(seed))
        figures = dict(zip(METRICS, (round(number / 100, 3) for number in printed), strict=True))
        runs.append(RunResult(settings, {}, {"PRM800K": {"offline": figures}}))
    about = "as the paper prints them, rounded to a tenth of a percentage point"
    note = "The paper prints no figures by class, nor of the early and the middle third, for single runs."
    return GridResults(
        name="The paper's grid", runs=tuple(runs), planned=len(runs), notes={"PRM800K": note}, about=about,
        rounded=True,
    )  # fmt: skip


class Contrast(NamedTuple):
    """The comparison of bidirectional and causal runs in one figure.

    `wins` counts the pairs in which the bidirectional run is better, `ties` the pairs that are equal, and `pairs`
    all pairs. `mean` is the mean of bidirectional minus causal, with a 95 % bootstrap interval over the pairs.
    """

    wins: int
    ties: int
    pairs: int
    mean: Value


def pair_values(results: GridResults, key: Key, figure: str) -> pd.DataFrame:
    """Return a figure of both runs of each matched pair. Pairs with a run that is unfinished or lacks the figure
    are left out.

    The columns `bidirectional` and `causal` hold fractions, or NaN if undefined. There is a row for each size,
    amount of data and seed, in the order of the design.
    """
    rows = [
        (run.size, run.data, run.seed, run.mask, figures[figure])
        for run, figures in results.figures(key)
        if figure in figures
    ]
    runs = pd.DataFrame(rows, columns=[*PLACE, "mask", figure]).set_index(PLACE)
    sides = [runs.loc[runs["mask"] == mask, figure].astype(float) for mask in MASKS]
    return pd.concat(sides, axis=1, join="inner", keys=list(MASKS))


def by_size_and_data(pairs: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield (data, size, pairs) for each combination of an amount of data and a size, in order."""
    groups = dict(iter(pairs.groupby(level=["data", "size"], sort=False)))
    for data in pairs.index.unique("data"):
        for size in pairs.index.unique("size"):
            if (data, size) in groups:
                yield data, size, groups[data, size]


def gains(pairs: pd.DataFrame) -> pd.Series:
    """Return the bidirectional figure minus the causal one for each pair."""
    return pairs["bidirectional"] - pairs["causal"]


def contrast(gains: ArrayLike) -> Contrast:
    """Summarise the differences of the pairs as wins, ties and a mean. Undefined differences are left out.
    Differences below one billionth count as ties, so that rounded figures that look equal are treated as equal."""
    kept = _numbers(gains)
    return Contrast(
        wins=int((kept > 1e-9).sum()),
        ties=int((np.abs(kept) <= 1e-9).sum()),
        pairs=len(kept),
        mean=mean(kept, resamples_of(len(kept)) if len(kept) > 1 else None),
    )


@cache
def resamples_of(pairs: int) -> Weights:
    """Return how often each pair is drawn in each resample. Equal numbers of pairs are drawn alike."""
    return bootstrap.resamples(pairs, _DRAWS)


def mean(values: ArrayLike, weights: Weights | None = None) -> Value:
    """Return the mean of the values that are not NaN, with an interval over the pairs if their resamples are
    given."""
    kept = _numbers(values)
    return bootstrap.mean(kept, np.arange(len(kept)), weights, "no pair has a value")


def _numbers(values: ArrayLike) -> Floats64:
    numbers = np.asarray(values, np.float64)
    return numbers[~np.isnan(numbers)]
