"""The results of a grid: the figures of each run on each test set, in a JSON file or in the paper's table."""

from collections.abc import Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic.dataclasses import dataclass

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import read_json
from stepsight.core.metrics.binary import auc, auc_within, f1
from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.table import StepTable, Third, by_third
from stepsight.core.metrics.ternary import accuracy, classify, macro_auc, macro_f1
from stepsight.core.trace import Label
from stepsight.core.validation import STRICT, ListOf, Record, validate
from stepsight.training.experiments.grid.design import RunSettings

WHOLE = "results.json"
_PAPER = "tab:full-grid-results"
_MASKS = {"Bidir": "bidirectional", "Causal": "causal"}

ACCURACY, MACRO_F1, MACRO_AUC, LATE_AUC = "accuracy", "macro_f1", "macro_auc", "late_auc"
METRICS = {ACCURACY: "Accuracy", MACRO_F1: "macro-F1", MACRO_AUC: "macro-AUC", LATE_AUC: "Late-AUC"}
"""The columns of the paper's tables; the last is macro-AUC in the last third."""

Key = tuple[str, str]
"""A test and a mode, such as `offline`."""
Values = Mapping[str, float | None]


@dataclass(frozen=True, config=STRICT, kw_only=True)
class Figures(Record):
    """The figures of a run on a test set, as fractions. Undefined figures are None.

    `thirds` maps each third of the solution to its `macro_auc` and `accuracy`, the number of `steps` and the number
    of each label. `classes` maps each label to the `auc` against the rest, the AUC `within` traces
    (`core.metrics.binary.auc_within`) and the `f1`. Both are empty if unknown.
    """

    traces: int = 0
    steps: int = 0
    accuracy: float | None
    macro_f1: float | None
    macro_auc: float | None
    late_auc: float | None
    thirds: dict[str, dict[str, float | None]] = field(default_factory=dict)
    classes: dict[str, dict[str, float | None]] = field(default_factory=dict)

    def of(self, part: str = "") -> Values:
        """Return the figures of the third or class called `part`, or the figures of all steps if `part` is "". The
        result is empty if the figures are unknown."""
        whole: Values = {name: getattr(self, name) for name in METRICS}
        return {**self.thirds, **self.classes}.get(part, {}) if part else whole


Tests = dict[str, dict[str, Figures]]
"""Figures by test set and mode."""


def figures_of(table: StepTable) -> Figures:
    """Return an evaluator's figures on the labelled steps of a table. Classes are predicted by argmax.

    Thirds are the paper's buckets. If a class is absent from the gold labels, macro-AUC is the mean over the
    remaining classes. For an evaluator without three probabilities, the AUCs are computed from validity.
    """
    steps = classify(table)
    thirds = {third.value: classify(part) for third, part in by_third(table).items()}
    sides = {label.text: steps.against_rest(label) for label in Label}
    return Figures(
        traces=int(table.present.sum()),
        steps=len(steps),
        accuracy=_number(accuracy(steps)),
        macro_f1=_number(macro_f1(steps)),
        macro_auc=_number(macro_auc(steps)),
        late_auc=_number(macro_auc(thirds[Third.LATE.value])),
        thirds={
            name: {
                MACRO_AUC: _number(macro_auc(part)),
                ACCURACY: _number(accuracy(part)),
                "steps": float(len(part)),
            }
            | {label.text: float((part.gold == label).sum()) for label in Label}
            for name, part in thirds.items()
        },
        classes={
            name: {"auc": _number(auc(side)), "within": _number(auc_within(side)), "f1": _number(f1(side))}
            for name, side in sides.items()
        },
    )


def _number(value: Value) -> float | None:
    return value.number if value.exists else None


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
    `notes` tells readers what to know about each test set. `rounded` is True if the figures were printed with three
    decimal places.
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
        return _paper(values) if values.get("label") == _PAPER else validate(GridResults, values)
    except UserError as error:
        raise UserError(f"{file}: not the results of a grid: {error.message}", error.hint) from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise UserError(f"{file}: not the paper's table ({type(error).__name__}: {error}).") from None


def read_run(path: Path) -> RunResult:
    """Read the result file of one run. Raises `UserError` if the file is not the result of a run."""
    try:
        return validate(RunResult, read_json(path))
    except UserError as error:
        raise UserError(f"{path}: not the result of a run: {error.message}", "Remove it.") from None


def _paper(values: Mapping[str, Any]) -> GridResults:
    runs = []
    for row in values["rows"]:
        size, data, seed, *printed = row["values"]
        settings = RunSettings(f"{size:g}B", f"{data / 1000:g}k", _MASKS[row["name"]], int(seed))
        whole = dict(zip(METRICS, (round(number / 100, 3) for number in printed), strict=True))
        runs.append(RunResult(settings, {}, {"PRM800K": {"offline": Figures(**whole)}}))
    about = "as the paper prints them, rounded to a tenth of a percentage point"
    note = "The paper prints no figures by class, nor of the early and the middle third, for single runs."
    return GridResults(
        name="The paper's grid", runs=tuple(runs), planned=len(runs), notes={"PRM800K": note}, about=about,
        rounded=True,
    )  # fmt: skip
