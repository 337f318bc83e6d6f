"""Rows as token ids with the labels that are learnt."""

from collections.abc import Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from stepsight.training.experiments.finetuning.recipe import QUERY

IGNORED = -100
"""The label of what is not learnt."""


@dataclass(frozen=True)
class Example:
    """`ids` of a prompt, its response and the token that ends it, and as many `labels`."""

    ids: tuple[int, ...]
    labels: tuple[int, ...]


def prompt_ids(tokenizer: PreTrainedTokenizerBase, prompt: str, query: str) -> list[int]:
    """The tokens before an answer, beginning as the tokenizer begins a text; the same to learn and to ask."""
    ids = tokenizer(prompt.replace(QUERY, query))["input_ids"]
    # Some tokenizers close every text, and an answer goes on.
    return list(ids[:-1] if ids and ids[-1] == tokenizer.eos_token_id else ids)


def build_examples(
    rows: Sequence[tuple[str, str]],
    tokenizer: PreTrainedTokenizerBase,
    prompt: str,
    everything: bool,
    longest: int,
) -> tuple[list[Example], int]:
    """The examples of rows of a query and a response, and how many rows are left out for more than `longest`
    tokens. `everything` teaches the prompt too.

    Prompt and response are encoded one by one, so that an answer begins where a prompt ends, as when it is asked.
    """
    found, left_out = [], 0
    for query, response in rows:
        before = prompt_ids(tokenizer, prompt, query)
        after = [*tokenizer(response, add_special_tokens=False)["input_ids"], tokenizer.eos_token_id]
        if len(before) + len(after) > longest:
            left_out += 1
            continue
        hidden = before if everything else [IGNORED] * len(before)
        found.append(Example((*before, *after), (*hidden, *after)))
    return found, left_out
