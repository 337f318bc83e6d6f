"""A model's answers to problems, in FOLDER/answers.jsonl: batches of similar length, each written as soon as it is
there.

{"problem": 1, "text": "196 = 2^2 * 7^2, so 9.", "tokens": 21, "ended": true}
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stepsight.core.atomic import atomic_file
from stepsight.core.errors import UserError
from stepsight.training.experiments.finetuning.generation import Engine, GeneratedAnswer
from stepsight.training.runs.progress import Watch
from stepsight.training.runs.rows import RowFile

FILE = "answers.jsonl"

Answers = dict[int, GeneratedAnswer]
"""By the index of the problem, from 0."""


def batches_of(lengths: Sequence[int], size: int) -> list[list[int]]:
    """The indices of prompts in batches of `size`, the longest first: what needs most memory is met at once."""
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    return [order[start : start + size] for start in range(0, len(order), size)]


def answer_all(
    prompts: Sequence[Sequence[int]],
    open_model: Callable[[], Engine],
    folder: Path,
    longest: int,
    size: int,
    watch: Watch,
) -> list[GeneratedAnswer]:
    """An answer to each prompt. Those in `folder` are not asked for again, if their whole batch is there: so a run
    that was stopped has the batches of one that was not. The model is not opened where nothing is missing.

    Where prompt and answer together are too long for the model, the answer may have fewer tokens. Raises
    `UserError` where a prompt alone is too long, or the file cannot be written.
    """
    batches = batches_of([len(prompt) for prompt in prompts], size)
    with RowFile(folder / FILE) as file:
        answers = _read(file, len(prompts))
        if len(answers) == len(prompts):
            return _in_order(answers)
        done = _whole_batches(answers, batches)
        answers = {index: answers[index] for batch in batches[:done] for index in batch}
        file.keep(len(answers))
        engine = open_model()
        _check(prompts, engine)
        for batch in batches[done:]:
            room = engine.context - max(len(prompts[index]) for index in batch)
            written = engine.write([prompts[index] for index in batch], min(longest, room))
            answers |= dict(zip(batch, written, strict=True))
            file.add(_row(index, answers[index]) for index in batch)
            watch("problems answered", len(answers), len(prompts))
    with atomic_file(folder / FILE) as partial, RowFile(partial) as file:
        file.add(_row(index, answer) for index, answer in enumerate(_in_order(answers)))
    return _in_order(answers)


def _check(prompts: Sequence[Sequence[int]], engine: Engine) -> None:
    for index, prompt in enumerate(prompts):
        if len(prompt) >= engine.context:
            raise UserError(
                f"problem {index + 1} has {len(prompt):,} tokens with its prompt; the model takes "
                f"{engine.context:,}, the answer included.",
                "Leave it out, or take another model.",
            )


def _read(file: RowFile, count: int) -> Answers:
    """The answers to so many problems that a file has, in its order, up to a row that is none."""
    answers: Answers = {}
    for row in file:
        try:
            index, answer = row.pop("problem") - 1, GeneratedAnswer(**row)
        except (KeyError, TypeError):
            break
        if index not in range(count):
            break
        answers[index] = answer
    return answers


def _whole_batches(answers: Answers, batches: Sequence[Sequence[int]]) -> int:
    """How many of the first batches are there, one after the other."""
    order, start = list(answers), 0
    for number, batch in enumerate(batches):
        if order[start : start + len(batch)] != [*batch]:
            return number
        start += len(batch)
    return len(batches)


def _in_order(answers: Answers) -> list[GeneratedAnswer]:
    return [answers[index] for index in sorted(answers)]


def _row(index: int, answer: GeneratedAnswer) -> dict[str, Any]:
    return {"problem": index + 1} | asdict(answer)
