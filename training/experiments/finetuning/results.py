"""Results of language models on problems with known answers, measured here or printed in the paper."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, NonNegativeInt, model_validator
from pydantic.dataclasses import dataclass as validated
from scipy.stats import binomtest

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import read_json
from stepsight.core.validation import STRICT, ListOf, Record, invalid, validate

FILE = "math500.json"
FORMAT = "stepsight-math500"
PAPER = "tab:filter_ablation"


@validated(frozen=True, config=STRICT)
class Result(Record):
    """The result of one model: for each problem, whether the model's answer is right and how many tokens it has.

    `subset`, `rows` and `seed` describe the model's fine-tuning. They are "", 0 and None if the model was not
    fine-tuned. `scorer` is the evaluator that chose the subset. `cut` counts the answers that did not reach their
    end, and `given_up` the answers that the grader could not finish grading.
    """

    model: str
    correct: Annotated[ListOf[bool], Field(min_length=1)]
    tokens: ListOf[NonNegativeInt]
    cut: NonNegativeInt = 0
    given_up: NonNegativeInt = 0
    subset: str = ""
    scorer: str = ""
    rows: NonNegativeInt = 0
    seed: int | None = None
    problems: dict[str, Any] | None = None
    about: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _check(self) -> "Result":
        if len(self.correct) != len(self.tokens):
            raise invalid(f"correct has {len(self.correct):,} answers, tokens {len(self.tokens):,}.")
        return self

    @property
    def accuracy(self) -> float:
        """Pass@1: the share of problems that the model's greedy answer solves."""
        return sum(self.correct) / len(self.correct)

    @property
    def length(self) -> float:
        """The mean number of tokens per answer."""
        return sum(self.tokens) / len(self.tokens)

    def interval(self) -> tuple[float, float]:
        """Return the 95 % Wilson interval (Wilson 1927) of the accuracy over problems of this kind."""
        low, high = binomtest(sum(self.correct), len(self.correct)).proportion_ci(method="wilson")
        return float(low), float(high)

    def as_json(self) -> dict[str, Any]:
        values = asdict(self) | {"correct": [int(one) for one in self.correct], "tokens": list(self.tokens)}
        return {"format": FORMAT, "pass@1": self.accuracy, "mean_tokens": self.length} | values


@dataclass(frozen=True)
class Printed:
    """A row of the paper's table. `accuracy` is a fraction, rounded as printed, and `length` is in tokens."""

    scorer: str
    subset: str
    rows: int
    accuracy: float
    length: float


def read_result(path: Path) -> Result:
    """Read a result file written by `stepsight math500`. Raises `UserError` for any other file."""
    values = read_json(path)
    if values.pop("format", None) != FORMAT:
        raise UserError(f"{path}: not what stepsight math500 writes.", "Remove it.")
    for told in ("pass@1", "mean_tokens"):
        values.pop(told, None)
    if isinstance(correct := values.get("correct"), list):
        # The file has them as 0 and 1.
        values["correct"] = [bool(one) if type(one) is int and one in (0, 1) else one for one in correct]
    try:
        return validate(Result, values)
    except UserError as error:
        raise UserError(f"{path}: not what stepsight math500 writes: {error.message}", "Remove it.") from None


def read_results(folders: Sequence[Path]) -> list[Result]:
    """Read all results in the given folders and their subfolders. Raises `UserError` if no results are found, if a
    model occurs twice, or if the results are for different problems."""
    results: list[Result] = []
    seen: dict[tuple[object, ...], Path] = {}
    for folder in folders:
        paths = sorted(folder.rglob(FILE)) if folder.is_dir() else [folder]
        if not paths or not paths[0].is_file():
            raise UserError(f"{folder}: there is no {FILE} in it.", "Run stepsight math500 first.")
        for path in paths:
            result = read_result(path)
            key = (result.scorer, result.subset, result.seed, result.model)
            if key in seen:
                raise UserError(f"{path} and {seen[key]} are of the same model.", "Give one of them.")
            seen[key] = path
            results.append(result)
    if len({json.dumps(result.problems, sort_keys=True) for result in results}) > 1:
        raise UserError("the results are of different problems.", "Report them one after the other.")
    return results


def is_paper(path: Path) -> bool:
    """True if a file contains the paper's table."""
    return path.is_file() and read_json(path).get("label") == PAPER


def read_printed(path: Path) -> list[Printed]:
    """Read the rows of the paper's table.

    A random subset is assigned to the evaluator whose subsets have the same size.
    """
    try:
        rows = list(_printed(validate(_PrintedTable, read_json(path))))
    except UserError as error:
        raise error.at(str(path)) from None
    sizes = {row.rows: row.scorer for row in rows if row.scorer}
    return [Printed(row.scorer or sizes.get(row.rows, ""), *list(asdict(row).values())[1:]) for row in rows]


_SUBSETS = {"Val + Red": "val+red", "Val-only": "val", "Red-only": "red", "Random": "random"}


@validated(frozen=True, config=STRICT)
class _PrintedRow(Record):
    name: Literal["Val + Red", "Val-only", "Red-only", "Random"]
    values: Annotated[ListOf[float], Field(min_length=3, max_length=3)]
    section: str = ""


@validated(frozen=True, config=STRICT)
class _PrintedTable(Record):
    label: str
    caption: str
    columns: list[dict[str, Any]]
    rows: ListOf[_PrintedRow]


def _printed(table: _PrintedTable) -> Iterator[Printed]:
    for row in table.rows:
        size, accuracy, length = row.values
        yield Printed(row.section, _SUBSETS[row.name], int(size), round(accuracy / 100, 3), length)
