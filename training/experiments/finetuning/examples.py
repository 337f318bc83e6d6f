"""The examples of a fine-tuning run: the rows of a subset as token ids with labels. A row of a subset file:

{"query": "How many positive divisors does 196 have?", "response": "196 = 2^2 * 7^2, so 3 * 3 = 9.", "source": "…"}
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import read_json
from stepsight.core.files.jsonl import open_input, read_rows
from stepsight.storage.importers.rows.fields import located, text
from stepsight.training.experiments.filtering.run import MANIFEST
from stepsight.training.experiments.filtering.subsets import SUBSETS
from stepsight.training.experiments.finetuning.recipe import QUERY

IGNORED = -100
"""The label of tokens that are not learnt."""


@dataclass(frozen=True)
class SubsetFile:
    """A subset of a pool, read from a file.

    `rows` are pairs of a query and a response, and `sha256` is the hash of the file. `scorer` is the name of the
    evaluator that chose the rows, or "" if unknown.
    """

    name: str
    rows: tuple[tuple[str, str], ...]
    sha256: str
    scorer: str = ""

    def as_json(self) -> dict[str, Any]:
        """Return the name, size, hash and scorer of the subset as JSON values."""
        return {"name": self.name, "rows": len(self.rows), "sha256": self.sha256, "scorer": self.scorer}


def read_subset(path: Path) -> SubsetFile:
    """Read a subset from a file. Raises `UserError` if there are no rows, or if a row lacks a query or a response,
    in which case the error names the line."""
    rows = []
    with open_input(path) as file:
        for number, row in read_rows(file, str(path)):
            with located(f"{path} line {number}"):
                rows.append((_filled(row, "query"), _filled(row, "response")))
    if not rows:
        raise UserError(
            f"{path}: there is no row to learn from.", "Write one object with query and response a line."
        )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    return SubsetFile(path.stem, tuple(rows), digest, _scorer(path))


def _filled(row: dict[str, Any], key: str) -> str:
    value = text(row, key)
    if not value.strip():
        raise UserError(f"{key} is empty.", "Every row needs a query and a response.")
    return value


def _scorer(path: Path) -> str:
    """Return the evaluator named in the manifest next to a subset's file, or "" if there is no manifest."""
    manifest = path.parent / MANIFEST
    if path.stem not in SUBSETS or not manifest.is_file():
        return ""
    evaluator = read_json(manifest).get("evaluator")
    name = evaluator.get("name") if isinstance(evaluator, dict) else evaluator
    return name if isinstance(name, str) else ""


@dataclass(frozen=True)
class TextExample:
    """A prompt, its response and the end token as token `ids`, with a label for each token in `labels`."""

    ids: tuple[int, ...]
    labels: tuple[int, ...]


def prompt_ids(tokenizer: PreTrainedTokenizerBase, prompt: str, query: str) -> list[int]:
    """Return the token ids that precede an answer, beginning with the tokenizer's start token if it has one. They
    are the same in training and in generation."""
    ids = tokenizer(prompt.replace(QUERY, query))["input_ids"]
    # Some tokenizers end every text with an end token, but here the answer follows.
    return list(ids[:-1] if ids and ids[-1] == tokenizer.eos_token_id else ids)


def build_examples(
    rows: Sequence[tuple[str, str]],
    tokenizer: PreTrainedTokenizerBase,
    prompt: str,
    everything: bool,
    longest: int,
) -> tuple[list[TextExample], int]:
    """Encode (query, response) pairs. Return the examples and the number of rows left out.

    Rows of more than `longest` tokens are left out. With `everything`, the prompt is learnt too. Prompt and
    response are encoded separately, so that the response begins with a new token, as in generation.
    """
    examples, left_out = [], 0
    for query, response in rows:
        before = prompt_ids(tokenizer, prompt, query)
        after = [*tokenizer(response, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        if len(before) + len(after) > longest:
            left_out += 1
            continue
        hidden = before if everything else [IGNORED] * len(before)
        examples.append(TextExample((*before, *after), (*hidden, *after)))
    return examples, left_out
