"""The results of a grid: a JSON file for each run, all of them in one file, or the rows that the paper prints."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files import read_json
from stepsight.training.experiments.grid.design import RunSettings
from stepsight.training.experiments.grid.figures import METRICS, Figures

RUNS, WHOLE = "results", "results.json"
FORMAT = "stepsight-grid"
_PAPER = "tab:full-grid-results"
_MASKS = {"Bidir": "bidirectional", "Causal": "causal"}

Key = tuple[str, str]
"""A test and a mode."""


@dataclass(frozen=True)
class RunResult:
    """The figures of a run by test and mode; `about` has facts of the run itself, such as its parameters."""

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
    """The runs of a grid that are done, of `planned` ones, in the order of its design.

    `baselines`: for each trivial evaluator its figures. `notes`: for each test what a reader has to know of it.
    `rounded` says that the figures are fractions with three decimals, as printed.
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
        """Tests and modes, each once."""
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
    """The results in a grid's folder, in its `results.json`, or in the paper's table of runs.

    Raises `UserError` where there are none.
    """
    file = path / WHOLE if path.is_dir() else path
    if not file.is_file():
        raise UserError(f"{path}: there is no {file.name} with the results of a grid.", "Run stepsight grid first.")
    values = read_json(file)
    try:
        results = _paper(values) if values.get("label") == _PAPER else _own(values, file)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{file}: not the results of a grid ({type(error).__name__}: {error}).") from None
    if not results.runs:
        raise UserError(f"{file}: no run is done yet.", "Let stepsight grid go on.")
    return results


def read_run(path: Path) -> RunResult:
    """What one run wrote. Raises `UserError` where it is something else."""
    try:
        return _run(read_json(path))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
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
