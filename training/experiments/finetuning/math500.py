"""Measuring a causal language model on MATH-500: it answers greedily, and math-verify grades the answers.

    stepsight math500 runs/red-42 runs/red-43 runs/red-44 --output runs/red-math500

A file of problems has one JSON object per line:

    {"problem": "How many whole-number divisors does 196 have?", "answer": "9"}

The output folder has these files:

    FOLDER/run.json        the settings that determine the result
    FOLDER/answers.jsonl   the model's answers, written as they come
    FOLDER/math500.json    the result
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import write_json
from stepsight.core.files.jsonl import open_input, read_rows
from stepsight.core.models.placement import Placement
from stepsight.core.paths import DATA_VARIABLE, data_files
from stepsight.core.validation import validate
from stepsight.storage.importers.rows.fields import located, text
from stepsight.training.evaluate.grading import Grader
from stepsight.training.experiments.finetuning.examples import prompt_ids
from stepsight.training.experiments.finetuning.generation import (
    Engine,
    GeneratedAnswer,
    answer_all,
    engine_name,
    open_engine,
)
from stepsight.training.experiments.finetuning.models import load_text_tokenizer, model_fingerprint, model_folder
from stepsight.training.experiments.finetuning.recipe import PROMPT, Prompt
from stepsight.training.experiments.finetuning.results import FILE, Result, read_result
from stepsight.training.experiments.finetuning.run import model_name, read_card
from stepsight.training.runs.folder import RunFolder
from stepsight.training.runs.progress import Watch, unwatched

_DEFAULT = Path("math500") / "test.jsonl"


@dataclass(frozen=True)
class Problem:
    """A problem and its correct answer, in LaTeX without `$`."""

    text: str
    answer: str


@dataclass(frozen=True)
class Problems:
    """The problems in a file. `sha256` is the hash of the file."""

    name: str
    items: tuple[Problem, ...]
    sha256: str

    def __len__(self) -> int:
        return len(self.items)

    def as_json(self) -> dict[str, Any]:
        """Return the name, size and hash of the problems as JSON values. `constant` is the most frequent answer and
        the number of problems for which it is right."""
        answer, count = Counter(problem.answer for problem in self.items).most_common(1)[0]
        constant = {"answer": answer, "right": count}
        return {"name": self.name, "count": len(self), "sha256": self.sha256, "constant": constant}


def read_problems(path: Path) -> Problems:
    """Read problems from a file. Raises `UserError`, naming the line, if a problem or its answer is missing."""
    items = []
    with open_input(path) as file:
        for number, row in read_rows(file, str(path)):
            with located(f"{path} line {number}"):
                items.append(Problem(text(row, "problem"), text(row, "answer")))
    if not items:
        raise UserError(f"{path}: there is no problem.", "Write one object with problem and answer a line.")
    return Problems(
        f"{path.resolve().parent.name}/{path.name}", tuple(items), hashlib.sha256(path.read_bytes()).hexdigest()
    )


def problems_path(file: Path | None, root: Path = Path()) -> Path:
    """Return the path of `file`, which is looked up in `root` and then in the data folder. If `file` is None,
    return the path of MATH-500 in the data folder. Raises `UserError` if the file does not exist."""
    try:
        return data_files(str(file or _DEFAULT), root)[0][1]
    except UserError:
        if file is not None:
            raise
        hint = f"Give --problems FILE, or put {_DEFAULT} into the folder that {DATA_VARIABLE} names."
        raise UserError("the problems of MATH-500 are not here.", hint) from None


@dataclass(frozen=True)
class Math500Settings:
    """The settings for answering problems.

    An answer has at most `tokens` tokens, and `batch` problems are answered at once. `prompt` contains the problem
    and precedes the answer. It defaults to the prompt with which the model was fine-tuned or, without one, to the
    general prompt.
    """

    engine: str = "auto"
    tokens: int = 2048
    batch: int = 32
    prompt: str | None = None
    place: Placement = Placement(dtype="float32")  # noqa: RUF009 (it is frozen)

    def __post_init__(self) -> None:
        for key in ("tokens", "batch"):
            if getattr(self, key) < 1:
                raise UserError(f"--{key} is {getattr(self, key)}, expected 1 or more.")
        if self.prompt is not None:
            validate(Prompt, self.prompt)


def measure(
    spec: str,
    problems: Problems,
    output: Path,
    settings: Math500Settings,
    grader: Grader,
    watch: Watch = unwatched,
) -> Result:
    """Let a model answer all problems, grade the answers and return the result. An interrupted measurement is
    resumed.

    Everything is written to the folder `output`. Raises `UserError` if the model is not a causal language model, if
    a problem is too long for the model, or if `output` belongs to a different run or is in use by a different
    process.
    """
    model = model_folder(spec)
    card = read_card(model)
    prompt = settings.prompt or card.get("prompt") or PROMPT
    values = _values(model, prompt, problems, settings)
    folder = RunFolder(output)
    folder.check(values)
    if (output / FILE).is_file():
        return read_result(output / FILE)
    tokenizer = load_text_tokenizer(model)
    prompts = [prompt_ids(tokenizer, prompt, problem.text) for problem in problems.items]

    def open_model() -> Engine:
        return open_engine(settings.engine, model, tokenizer, settings.place)

    def announce(done: int, count: int) -> None:
        watch(f"problems answered by {values['model']}", done, count)

    with folder.lock():
        folder.begin(values)
        answers = answer_all(prompts, open_model, output, settings.tokens, settings.batch, announce)
        result = _grade(problems, answers, grader, values, card)
        write_json(output / FILE, result.as_json())
    return result


def output_names(specs: Sequence[str]) -> list[str]:
    """Return the name of each model's result folder within the common output folder. Raises `UserError` if two
    models have the same name."""
    names = [model_name(model_folder(spec)) for spec in specs]
    for name in names:
        if names.count(name) > 1:
            raise UserError(f"two of the models are called {name}.", "Measure them into different folders.")
    return names


def _values(folder: Path, prompt: str, problems: Problems, settings: Math500Settings) -> dict[str, Any]:
    return {
        "model": model_name(folder),
        "fingerprint": model_fingerprint(folder, prompt),
        "prompt": prompt,
        "problems": problems.as_json(),
        "engine": engine_name(settings.engine),
        "tokens": settings.tokens,
        "batch": settings.batch,
        "dtype": settings.place.dtype,
    }


def _grade(
    problems: Problems,
    answers: Sequence[GeneratedAnswer],
    grader: Grader,
    values: dict[str, Any],
    card: Mapping[str, Any],
) -> Result:
    before = grader.timeouts
    pairs = zip((problem.answer for problem in problems.items), (one.text for one in answers), strict=True)
    data: Mapping[str, Any] = card.get("data", {})
    return Result(
        model=values["model"],
        correct=tuple(grader.grade_all(pairs)),
        tokens=tuple(one.tokens for one in answers),
        cut=sum(not one.ended for one in answers),
        given_up=grader.timeouts - before,
        subset=data.get("name", ""),
        scorer=data.get("scorer", ""),
        rows=data.get("rows", 0),
        seed=card.get("seed"),
        problems=values["problems"],
        about={key: values[key] for key in ("fingerprint", "prompt", "engine", "tokens", "batch", "dtype")},
    )
