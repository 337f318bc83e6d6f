"""Measuring a causal language model on MATH-500: it answers greedily, and math-verify grades the answers.

    stepsight math500 runs/red-42 runs/red-43 runs/red-44 --output runs/red-math500

A file of problems has one JSON object per line:

    {"problem": "How many whole-number divisors does 196 have?", "answer": "9"}

The output folder has these files:

    FOLDER/run.json        the settings that determine the result
    FOLDER/answers.jsonl   the model's answers, written after each batch
    FOLDER/math500.json    the result
"""

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, computed_field
from transformers import GenerationConfig

from stepsight.core.errors import UserError
from stepsight.core.files.jsonl import read_file
from stepsight.core.files.whole_files import read_json, write_json, write_text
from stepsight.core.models.checkpoint import Checkpoint, model_name
from stepsight.core.models.evaluator import fingerprint
from stepsight.core.models.model import context_of, main_device
from stepsight.core.models.placement import Placement
from stepsight.core.paths import data_files
from stepsight.core.validation import validate
from stepsight.training.experiments.answers import Grader
from stepsight.training.experiments.finetuning.recipe import CARD, PROMPT, QUERY, Prompt, read_pairs
from stepsight.training.experiments.finetuning.sft import load_model, load_text_tokenizer, prompt_ids
from stepsight.training.runs.folder import RunFolder
from stepsight.training.runs.progress import Watch, unwatched

MATH500 = "math500/test.jsonl"
FILE = "math500.json"


class Result(BaseModel):
    """The result of one model: for each problem, whether the model's answer is right and how many tokens it has.

    `subset`, `rows` and `seed` describe the model's fine-tuning. They are "", 0 and None if the model was not
    fine-tuned. `scorer` is the evaluator that chose the subset. `cut` counts the answers that did not reach their
    end, and `given_up` the answers that the grader could not finish grading.
    """

    model_config = ConfigDict(frozen=True)

    format: Literal["stepsight-math500"] = "stepsight-math500"
    model: str
    correct: tuple[bool, ...] = Field(min_length=1)
    tokens: tuple[NonNegativeInt, ...] = Field(min_length=1)
    cut: NonNegativeInt = 0
    given_up: NonNegativeInt = 0
    subset: str = ""
    scorer: str = ""
    rows: NonNegativeInt = 0
    seed: int | None = None
    problems: dict[str, Any] | None = None
    about: dict[str, Any] | None = None

    @computed_field(alias="pass@1")  # type: ignore[prop-decorator]
    @property
    def accuracy(self) -> float:
        """Pass@1: the share of problems that the model's greedy answer solves."""
        return sum(self.correct) / len(self.correct)

    @computed_field(alias="mean_tokens")  # type: ignore[prop-decorator]
    @property
    def length(self) -> float:
        """The mean number of tokens per answer."""
        return sum(self.tokens) / len(self.tokens)


def read_result(path: Path) -> Result:
    """Read a result file written by `stepsight math500`. Raises `UserError` for any other file."""
    try:
        return validate(Result, read_json(path))
    except UserError as error:
        raise UserError(f"{path}: not what stepsight math500 writes: {error.message}", "Remove it.") from None


def read_results(folders: Sequence[Path]) -> list[Result]:
    """Read all results in the given folders and their subfolders. Raises `UserError` if no results are found, if a
    model occurs twice, or if the results are for different problems."""
    results: dict[tuple[object, ...], Result] = {}
    for folder in folders:
        paths = sorted(folder.rglob(FILE)) if folder.is_dir() else [folder]
        if not paths or not paths[0].is_file():
            raise UserError(f"{folder}: there is no {FILE} in it.", "Run stepsight math500 first.")
        for path in paths:
            result = read_result(path)
            key = (result.scorer, result.subset, result.seed, result.model)
            if key in results:
                raise UserError(f"{path}: this is a second result of the same model.", "Give only one of them.")
            if any(other.problems != result.problems for other in results.values()):
                raise UserError("the results are of different problems.", "Report them separately.")
            results[key] = result
    return list(results.values())


@dataclass(frozen=True)
class Exam:
    """Problems, as pairs of a text and its answer in LaTeX without `$`, and how models answer them.

    An answer has at most `tokens` tokens, and `batch` problems are answered at once, with the weights at `place`.
    `prompt` contains the problem and precedes the answer. It defaults to the prompt with which a model was
    fine-tuned. `about` has the file's name, size and hash, and the most frequent answer with the number of problems
    for which it is right.
    """

    problems: Sequence[tuple[str, str]]
    about: dict[str, Any]
    tokens: int = 2048
    batch: int = 32
    prompt: str | None = None
    place: Placement = Placement(dtype="float32")  # noqa: RUF009 (it is frozen)

    @classmethod
    def read(cls, name: str = MATH500, **how: Any) -> "Exam":
        """Read the problems in a file of the current folder or of the data folder. Raises `UserError` if there is
        no such file, or if a problem or its answer is missing."""
        path = data_files(name)[0][1]
        problems = read_pairs(path, "problem", "answer")
        answer, right = Counter(answer for _, answer in problems).most_common(1)[0]
        about = {
            "name": f"{path.resolve().parent.name}/{path.name}",
            "count": len(problems),
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "constant": {"answer": answer, "right": right},
        }
        return cls(problems, about, **how)


def measure(exam: Exam, folder: Path, output: Path, grader: Grader, watch: Watch = unwatched) -> Result:
    """Let the model in `folder` answer all problems, grade the answers and return the result. An interrupted
    measurement is resumed.

    Everything is written to the folder `output`. Raises `UserError` if a problem is too long for the model, or if
    `output` belongs to a different run or is in use by a different process.
    """
    card = read_json(folder / CARD) if (folder / CARD).is_file() else {}
    prompt = validate(Prompt, exam.prompt or card.get("prompt") or PROMPT, "the prompt")
    about = {
        "fingerprint": fingerprint(Checkpoint.open(folder), {"prompt": prompt}, "causal"),
        "prompt": prompt,
        "tokens": exam.tokens,
        "batch": exam.batch,
        "dtype": exam.place.dtype,
    }
    run, settings = RunFolder(output), about | {"model": model_name(folder), "problems": exam.about}
    run.check(settings)
    if (output / FILE).is_file():
        return read_result(output / FILE)
    with run.lock():
        run.begin(settings)
        answers = _answer_all(exam, folder, prompt, output / "answers.jsonl", watch)
        before, pairs = grader.timeouts, zip(exam.problems, answers, strict=True)
        correct = tuple(grader.grade(right, answer["text"]) for (_, right), answer in pairs)
        subset = card.get("data", {})
        result = Result(
            model=model_name(folder),
            correct=correct,
            tokens=tuple(answer["tokens"] for answer in answers),
            cut=sum(not answer["ended"] for answer in answers),
            given_up=grader.timeouts - before,
            subset=subset.get("name", ""),
            scorer=subset.get("scorer", ""),
            rows=subset.get("rows", 0),
            seed=card.get("seed"),
            problems=exam.about,
            about=about,
        )
        write_json(output / FILE, result.model_dump(mode="json", by_alias=True))
    return result


@torch.inference_mode()
def _answer_all(exam: Exam, folder: Path, prompt: str, path: Path, watch: Watch) -> list[dict[str, Any]]:
    """Return the model's greedy answer to each problem: its `text`, its number of `tokens` without the end token,
    and whether it `ended`. Those that the file `path` has already are kept."""
    tokenizer = load_text_tokenizer(folder)
    prompts = {
        number: prompt_ids(tokenizer, prompt.replace(QUERY, text))
        for number, (text, _) in enumerate(exam.problems, 1)
    }
    answers = {row["problem"]: row for _, row in read_file(path)} if path.is_file() else {}
    # The longest prompts come first, so that a lack of memory shows at once.
    order = sorted(prompts.keys() - answers.keys(), key=lambda number: (-len(prompts[number]), number))
    if order:
        model: Any = load_model(folder, exam.place)
        context, end = context_of(model) or sys.maxsize, tokenizer.eos_token_id
    for start in range(0, len(order), exam.batch):
        batch = order[start : start + exam.batch]
        ids = [prompts[number] for number in batch]
        if len(ids[0]) >= context:
            raise UserError(
                f"problem {batch[0]} has {len(ids[0]):,} tokens with its prompt; the model reads at most "
                f"{context:,}, including the answer.",
                "Leave it out, or take another model.",
            )
        padded = tokenizer.pad({"input_ids": ids}, padding_side="left", return_tensors="pt")
        # The checkpoint's own settings for sampling, penalties and forced tokens do not count.
        model.generation_config = GenerationConfig(  # type: ignore[no-untyped-call]
            max_new_tokens=min(exam.tokens, context - len(ids[0])),
            eos_token_id=end,
            pad_token_id=tokenizer.pad_token_id,
        )
        written = model.generate(**padded.to(main_device(model)))[:, len(ids[0]) :].tolist()
        for number, row in zip(batch, written, strict=True):
            text = row[: row.index(end)] if end in row else row
            answers[number] = {
                "problem": number,
                "text": tokenizer.decode(text, skip_special_tokens=True),
                "tokens": len(text),
                "ended": end in row,
            }
        write_text(path, "".join(json.dumps(answers[number]) + "\n" for number in sorted(answers)))
        watch(f"problems answered by {folder.name}", len(answers), len(prompts))
    return [answers[number] for number in sorted(answers)]
