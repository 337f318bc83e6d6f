"""Texts that go on after other tokens, turned into the tokens they would be in one long text.

A SentencePiece tokenizer puts a space mark before a text, and a byte-level one may: once before the whole, or
before each stretch between two added tokens, as its tokenizer.json says. What goes on must not get one of its own.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from tokenizers import Tokenizer


class Pieces:
    """Turns pieces of an input into tokens. `goes_on` tells of each piece whether it has no mark of its own."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    @cached_property
    def marked_once(self) -> bool:
        """Whether only the beginning of the whole input gets the mark, not each stretch after an added token."""
        return any(
            part.get("type") == "Metaspace" and part.get("prepend_scheme") == "first"
            for part in _steps(json.loads(self._tokenizer.to_str()).get("pre_tokenizer"))
        )

    def encode(self, texts: Sequence[str], goes_on: Sequence[bool]) -> list[list[int]]:
        """The token ids of each text."""
        found: dict[int, list[int]] = {}
        for bare in (False, True):
            chosen = [place for place, flag in enumerate(goes_on) if flag == bare]
            if not chosen:
                continue
            tokenizer = self._bare if bare else self._tokenizer
            encodings = tokenizer.encode_batch([texts[place] for place in chosen], add_special_tokens=False)
            found |= {place: encoding.ids for place, encoding in zip(chosen, encodings, strict=True)}
        return [found[place] for place in range(len(texts))]

    @cached_property
    def _bare(self) -> Tokenizer:
        """The tokenizer without its mark."""
        parts = json.loads(self._tokenizer.to_str())
        parts["normalizer"] = _unmarked(parts.get("normalizer"), "normalizers")
        parts["pre_tokenizer"] = _unmarked(parts.get("pre_tokenizer"), "pretokenizers")
        bare = Tokenizer.from_str(json.dumps(parts))
        bare.encode_special_tokens = self._tokenizer.encode_special_tokens
        return bare


def _steps(part: dict[str, Any] | None) -> list[dict[str, Any]]:
    """The steps of a normalizer or pre-tokenizer, which may be a sequence of them."""
    if part is None:
        return []
    inner: list[dict[str, Any]] = part.get("normalizers") or part.get("pretokenizers") or []
    return [step for one in inner for step in _steps(one)] if inner else [part]


def _unmarked(part: dict[str, Any] | None, key: str) -> dict[str, Any] | None:
    """The same without what puts a mark before a text."""
    steps = []
    for step in _steps(part):
        if step["type"] == "Prepend":
            continue
        if step["type"] == "Metaspace":
            step = step | {"prepend_scheme": "never"}
        if step.get("add_prefix_space"):
            step = step | {"add_prefix_space": False}
        steps.append(step)
    return {"type": "Sequence", key: steps} if steps else None
