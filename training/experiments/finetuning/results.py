"""Results of models on problems with answers: a JSON file for each, or the rows that the paper prints."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scipy.stats import binomtest

from stepsight.core.errors import UserError
from stepsight.core.files import read_json

FILE = "math500.json"
FORMAT = "stepsight-math500"
PAPER = "tab:filter_ablation"


@dataclass(frozen=True)
class Result:
    """The result of one model: which problems it solved, in their order, and the tokens of each answer.

    `subset`, `rows` and `seed` are of its fine-tuning, "", 0 and None where it had none; `scorer`
    is the evaluator that chose the subset. `cut` answers did not come to an end; the grader gave up on `given_up`.
    """

    model: str
    correct: tuple[bool, ...]
    tokens: tuple[int, ...]
    cut: int = 0
    given_up: int = 0
    subset: str = ""
    scorer: str = ""
    rows: int = 0
    seed: int | None = None
    problems: Mapping[str, Any] | None = None
    about: Mapping[str, Any] | None = None

    @property
    def accuracy(self) -> float:
        """Pass@1: the share of the problems whose one greedy answer is right."""
        return sum(self.correct) / len(self.correct)

    @property
    def length(self) -> float:
        """Mean tokens of an answer."""
        return sum(self.tokens) / len(self.tokens)

    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the accuracy as a share of problems like these (Wilson 1927)."""
        low, high = binomtest(sum(self.correct), len(self.correct)).proportion_ci(method="wilson")
        return float(low), float(high)

    def as_json(self) -> dict[str, Any]:
        values = asdict(self) | {"correct": [int(one) for one in self.correct], "tokens": list(self.tokens)}
        return {"format": FORMAT, "pass@1": self.accuracy, "mean_tokens": self.length} | values


@dataclass(frozen=True)
class Printed:
    """A row of the paper: `accuracy` is a fraction, rounded as it is printed, and `length` in tokens."""

    scorer: str
    subset: str
    rows: int
    accuracy: float
    length: float


def read_result(path: Path) -> Result:
    """The result that `stepsight math500` wrote of a model. Raises `UserError` where it is something else."""
    values = read_json(path)
    try:
        if values.pop("format") != FORMAT:
            raise ValueError("another format")
        del values["pass@1"], values["mean_tokens"]
        values["correct"] = tuple(map(bool, values["correct"]))
        values["tokens"] = tuple(map(int, values["tokens"]))
        result = Result(**values)
        if not result.correct or len(result.correct) != len(result.tokens):
            raise ValueError("not as many answers as problems")
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"{path}: not what stepsight math500 writes ({error}).", "Remove it.") from None
    return result


def read_results(folders: Sequence[Path]) -> list[Result]:
    """The results in folders, however deep. Raises `UserError` where there are none, or a
    model is there twice."""
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
    """Whether a file is the paper's table."""
    return path.is_file() and read_json(path).get("label") == PAPER


def read_printed(path: Path) -> list[Printed]:
    """The rows of the paper's table, where random subsets stand below all others, each as large as a scorer's."""
    rows = list(_printed(read_json(path)["rows"]))
    sizes = {row.rows: row.scorer for row in rows if row.scorer}
    return [Printed(row.scorer or sizes[row.rows], *list(asdict(row).values())[1:]) for row in rows]


_SUBSETS = {"Val + Red": "val+red", "Val-only": "val", "Red-only": "red", "Random": "random"}


def _printed(rows: Sequence[Mapping[str, Any]]) -> Iterator[Printed]:
    for row in rows:
        size, accuracy, length = row["values"]
        yield Printed(row.get("section", ""), _SUBSETS[row["name"]], int(size), round(accuracy / 100, 3), length)
