"""The results of a grid, read from a JSON file per run, a single file with all runs, or the paper's table."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import read_json
from stepsight.core.label import Label
from stepsight.core.metrics.binary import auc, auc_within, f1
from stepsight.core.metrics.table import StepTable, Third, by_third
from stepsight.core.metrics.ternary import Classified, accuracy, classify, macro_auc, macro_f1
from stepsight.training.experiments.grid.design import RunSettings

RUNS, WHOLE = "results", "results.json"
FORMAT = "stepsight-grid"
_PAPER = "tab:full-grid-results"
_MASKS = {"Bidir": "bidirectional", "Causal": "causal"}

ACCURACY, MACRO_F1, MACRO_AUC, LATE_AUC = "accuracy", "macro_f1", "macro_auc", "late_auc"
METRICS = {ACCURACY: "Accuracy", MACRO_F1: "macro-F1", MACRO_AUC: "macro-AUC", LATE_AUC: "Late-AUC"}
"""The columns of the paper's tables; the last is macro-AUC in the last third."""

Key = tuple[str, str]
"""A test and a mode, such as `offline`."""


@dataclass(frozen=True)
class Figures:
    """The figures of a run on a test set, as fractions. Undefined figures are NaN.

    `whole` holds the figures on all steps, by metric. `thirds` maps each third of the solution to its `macro_auc`,
    the number of `steps` and the number of each label. `classes` maps each label to the `auc` against the rest, the
    AUC `within` traces (`core.metrics.binary.auc_within`) and the `f1`. `thirds` and `classes` are empty if
    unknown.
    """

    whole: Mapping[str, float]
    thirds: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    classes: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    traces: int = 0
    steps: int = 0

    def of(self, part: str = "") -> Mapping[str, float]:
        """Return the figures of the third or class called `part`, or the figures of all steps if `part` is "". The
        result is empty if the figures are unknown."""
        return {**self.thirds, **self.classes}.get(part, {}) if part else self.whole

    def as_json(self) -> dict[str, Any]:
        """Return the figures as JSON values, with null for NaN."""
        return {
            "traces": self.traces,
            "steps": self.steps,
            **_nulls(self.whole),
            "thirds": {name: _nulls(values) for name, values in self.thirds.items()},
            "classes": {name: _nulls(values) for name, values in self.classes.items()},
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Figures":
        """Restore figures from the result of `as_json`. Raises `KeyError` or `TypeError` for malformed values."""
        return cls(
            whole={name: _number(values[name]) for name in METRICS},
            thirds={name: _numbers(figures) for name, figures in values["thirds"].items()},
            classes={name: _numbers(figures) for name, figures in values["classes"].items()},
            traces=int(values["traces"]),
            steps=int(values["steps"]),
        )


def figures_of(table: StepTable) -> Figures:
    """Return an evaluator's figures on the labelled steps of a table. Classes are predicted by argmax.

    Thirds are the paper's buckets. If a class is absent from the gold labels, macro-AUC is the mean over the
    remaining classes. For an evaluator without three probabilities, the AUCs are computed from validity.
    """
    steps = classify(table)
    thirds = {third.value: _third(classify(part)) for third, part in by_third(table).items()}
    return Figures(
        whole={
            ACCURACY: accuracy(steps).number,
            MACRO_F1: macro_f1(steps).number,
            MACRO_AUC: macro_auc(steps).number,
            LATE_AUC: thirds[Third.LATE.value][MACRO_AUC],
        },
        thirds=thirds,
        classes={label.text: _class(steps, label) for label in Label},
        traces=table.traces,
        steps=len(steps),
    )


def _third(steps: Classified) -> dict[str, float]:
    counts = {label.text: float((steps.gold == label).sum()) for label in Label}
    return {
        MACRO_AUC: macro_auc(steps).number,
        ACCURACY: accuracy(steps).number,
        "steps": float(len(steps)),
    } | counts


def _class(steps: Classified, label: Label) -> dict[str, float]:
    items = steps.against_rest(label)
    return {"auc": auc(items).number, "within": auc_within(items).number, "f1": f1(items).number}


def _nulls(values: Mapping[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else value for name, value in values.items()}


def _numbers(values: Mapping[str, float | None]) -> dict[str, float]:
    return {name: _number(value) for name, value in values.items()}


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


@dataclass(frozen=True)
class RunResult:
    """The figures of a run, by test set and mode. `about` describes the run, for example its parameter count."""

    settings: RunSettings
    figures: Mapping[Key, Figures]
    about: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        tests: dict[str, dict[str, Any]] = {}
        for (test, mode), figures in self.figures.items():
            tests.setdefault(test, {})[mode] = figures.as_json()
        return {"run": vars(self.settings), "about": dict(self.about), "tests": tests}


@dataclass(frozen=True)
class GridResults:
    """The results of a grid's finished runs, in the order of the design.

    `planned` is the total number of runs, finished or not. `baselines` holds the figures of each trivial baseline.
    `notes` tells readers what to know about each test set. `rounded` is True if the figures were printed with three
    decimal places.
    """

    name: str
    runs: Sequence[RunResult]
    planned: int
    baselines: Mapping[str, Mapping[Key, Figures]] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    about: str = ""
    rounded: bool = False

    @property
    def keys(self) -> list[Key]:
        """The combinations of test set and mode that have figures."""
        return list(dict.fromkeys(key for run in self.runs for key in run.figures))

    def as_json(self) -> dict[str, Any]:
        baselines = {
            name: [{"test": test, "mode": mode, **reached.as_json()} for (test, mode), reached in figures.items()]
            for name, figures in self.baselines.items()
        }
        head = {"format": FORMAT, "name": self.name, "planned": self.planned, "about": self.about}
        runs = [run.as_json() for run in self.runs]
        return head | {"notes": dict(self.notes), "baselines": baselines, "runs": runs}


def read_results(path: Path) -> GridResults:
    """Read the results in a grid's folder, in a `results.json`, or in the paper's table of runs. Raises `UserError`
    if no results are found."""
    file = path / WHOLE if path.is_dir() else path
    if not file.is_file():
        raise UserError(f"{path}: there is no {file.name} with the results of a grid.", "Run stepsight grid first.")
    values = read_json(file)
    try:
        results = _paper(values) if values.get("label") == _PAPER else _own(values, file)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UserError(f"{file}: not the results of a grid ({type(error).__name__}: {error}).") from None
    if not results.runs:
        raise UserError(f"{file}: no run is done yet.", "Let stepsight grid go on.")
    return results


def read_run(path: Path) -> RunResult:
    """Read the result file of one run. Raises `UserError` if the file is not the result of a run."""
    try:
        return _run(read_json(path))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UserError(
            f"{path}: not the result of a run ({type(error).__name__}: {error}).", "Remove it."
        ) from None


def _own(values: Mapping[str, Any], file: Path) -> GridResults:
    if values.get("format") != FORMAT:
        raise UserError(f"{file}: format {values.get('format')!r} found, expected {FORMAT!r}.")
    baselines = {
        name: {(row["test"], row["mode"]): Figures.from_json(row) for row in rows}
        for name, rows in values["baselines"].items()
    }
    runs = [_run(row) for row in values["runs"]]
    return GridResults(values["name"], runs, int(values["planned"]), baselines, values["notes"], values["about"])


def _run(values: Mapping[str, Any]) -> RunResult:
    figures = {
        (test, mode): Figures.from_json(run_figures)
        for test, modes in values["tests"].items()
        for mode, run_figures in modes.items()
    }
    return RunResult(RunSettings(**values["run"]), figures, values["about"])


def _paper(values: Mapping[str, Any]) -> GridResults:
    runs = list(_paper_runs(values["rows"]))
    about = "as the paper prints them, rounded to a tenth of a percentage point"
    note = "The paper prints no figures by class, nor of the early and the middle third, for single runs."
    return GridResults("The paper's grid", runs, len(runs), notes={"PRM800K": note}, about=about, rounded=True)


def _paper_runs(rows: Sequence[Mapping[str, Any]]) -> Iterator[RunResult]:
    for row in rows:
        size, data, seed, *printed = row["values"]
        settings = RunSettings(f"{size:g}B", f"{data / 1000:g}k", _MASKS[row["name"]], int(seed))
        whole = dict(zip(METRICS, (round(number / 100, 3) for number in printed), strict=True))
        yield RunResult(settings, {("PRM800K", "offline"): Figures(whole)})
