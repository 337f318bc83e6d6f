"""A model's answers to problems: batches of similar length, each written down as soon as it is there."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

from stepsight.core.errors import UserError
from stepsight.training.experiments.finetuning.generation import Engine, Written

FILE = "answers.jsonl"


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
    tell: Callable[[int, int], None],
) -> list[Written]:
    """An answer to each prompt. Those in `folder` are not asked for again, if their whole batch is there: so a run
    that was stopped has the batches of one that was not. The model is not opened where nothing is missing.

    Where prompt and answer together are too long for the model, the answer may have fewer tokens. Raises
    `UserError` where a prompt alone is too long, or the file cannot be written.
    """
    done = _read(folder / FILE, len(prompts))
    batches = batches_of([len(prompt) for prompt in prompts], size)
    whole = [batch for batch in batches if all(index in done for index in batch)]
    done = {index: done[index] for batch in whole for index in batch}
    _write(folder / FILE, done)
    left = [batch for batch in batches if not all(index in done for index in batch)]
    if left:
        engine = open_model()
        _check(prompts, engine)
        with open(folder / FILE, "a", encoding="utf-8") as file:
            for batch in left:
                room = engine.context - max(len(prompts[index]) for index in batch)
                written = engine.write([prompts[index] for index in batch], min(longest, room))
                done |= dict(zip(batch, written, strict=True))
                file.writelines(_lines({index: done[index] for index in batch}))
                file.flush()
                os.fsync(file.fileno())
                tell(len(done), len(prompts))
        _write(folder / FILE, done)
    return [done[index] for index in range(len(prompts))]


def _check(prompts: Sequence[Sequence[int]], engine: Engine) -> None:
    for index, prompt in enumerate(prompts):
        if len(prompt) >= engine.context:
            raise UserError(
                f"problem {index + 1} has {len(prompt):,} tokens with its prompt; the model takes "
                f"{engine.context:,}, the answer included.",
                "Leave it out, or take another model.",
            )


def _read(path: Path, count: int) -> dict[int, Written]:
    """The answers in a file; a line that was cut short is as if it were not there."""
    if not path.is_file():
        return {}
    found = {}
    for line in path.read_bytes().split(b"\n"):
        try:
            row = json.loads(line)
            index, written = row.pop("problem"), Written(**row)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
        if isinstance(index, int) and 1 <= index <= count:
            found[index - 1] = written
    return found


def _write(path: Path, answers: dict[int, Written]) -> None:
    partial = path.with_name(f"{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text("".join(_lines(answers)), encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}).", "Choose another --output.") from None


def _lines(answers: dict[int, Written]) -> Iterator[str]:
    for index in sorted(answers):
        yield json.dumps({"problem": index + 1} | asdict(answers[index]), ensure_ascii=False) + "\n"
