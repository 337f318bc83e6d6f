"""The tokenizer of an evaluator, in this process or, if it is untrusted, in a child with limits.

A tokenizer is code: it replaces text by regular expressions and rules of its own, which may multiply a text or take
forever, and its library panics if parts of it contradict each other.
"""

import json
import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partialmethod
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer

from stepsight.core.errors import UserError
from stepsight.core.files.child import Answerer, Bounds, Child, ChildError
from stepsight.core.prompts.tokenizer_files import TokenizerFiles, normalizing_steps, panics_explained

BOUNDS = Bounds(seconds=20, memory=2_000_000_000)
"""The limits for loading a tokenizer and for a request to it. The largest public ones load in a second, in 600
MB."""


class Vocabulary:
    """A tokenizer that answers the questions of an `Encoder` and of the formats. Texts get no special tokens.

    `tokenizer` is modified so that it neither pads nor truncates.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = False

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer itself, for code that changes it."""
        return self._tokenizer

    def token_id(self, token: str) -> int | None:
        """Return the id of a token, or None if there is no such token."""
        return self._tokenizer.token_to_id(token)

    def token(self, number: int) -> str | None:
        """Return the token with this id, or None if there is none."""
        return self._tokenizer.id_to_token(number)

    def first_token(self) -> str | None:
        """Return the token that the tokenizer adds at the start of every text, or None if it adds none."""
        bare, whole = (self._tokenizer.encode("a", add_special_tokens=special).ids for special in (False, True))
        if len(whole) == len(bare) or whole[: len(bare)] == bare:
            return None
        return self.token(whole[0])

    def first_added(self, text: str) -> str | None:
        """Return the first added token that occurs in a text, the longest of several at the same place, or None if
        there is none."""
        places = [(text.find(token), -len(token), token) for token in self._added_tokens if token in text]
        return min(places)[2] if places else None

    def split(self, text: str) -> list[int | str]:
        """Split a text at added tokens, and replace these tokens by their ids."""
        names = sorted((name for name in self._added_tokens if name in text), key=len, reverse=True)
        parts = re.split("(" + "|".join(map(re.escape, names)) + ")", text) if names else [text]
        return [self._added_tokens.get(part, part) for part in parts if part]

    def is_added(self, number: int) -> bool:
        """True if this is the id of an added token."""
        return number in self._added_ids

    def is_within(self, folder: str) -> bool:
        """True if the tokenizer of a folder has every token of this one, with the same id."""
        others = TokenizerFiles(Path(folder)).load().get_vocab()
        return all(others.get(token) == number for token, number in self._tokenizer.get_vocab().items())

    def last_id(self) -> int:
        """Return the largest id of a token."""
        return max(self._tokenizer.get_vocab().values())

    def guard(self, numbers: Sequence[int]) -> None:
        """Mark the added tokens with these ids as special. From now on, no text is encoded as a special token."""
        for number, token in self._tokenizer.get_added_tokens_decoder().items():
            if number in numbers and not token.special:
                options = {"lstrip": token.lstrip, "rstrip": token.rstrip, "single_word": token.single_word}
                special = AddedToken(token.content, special=True, normalized=token.normalized, **options)
                self._tokenizer.add_special_tokens([special])
        # Otherwise a step that spells the separator would be cut in two.
        self._tokenizer.encode_special_tokens = True

    def marks_once(self) -> bool:
        """True if only the start of the whole input gets a space mark, not each stretch after an added token."""
        return self._marks_once

    def encode(self, texts: Sequence[str], *, bare: bool = False) -> list[list[int]]:
        """Return the token ids of each text. If `bare` is True, none gets a space mark at its start."""
        tokenizer = self._without_space_mark if bare else self._tokenizer
        with panics_explained("the tokenizer"):
            return [encoding.ids for encoding in tokenizer.encode_batch(list(texts), add_special_tokens=False)]

    @property
    def _parts(self) -> dict[str, Any]:
        return json.loads(self._tokenizer.to_str())

    @cached_property
    def _marks_once(self) -> bool:
        return any(
            part.get("type") == "Metaspace" and part.get("prepend_scheme") == "first"
            for part in normalizing_steps(self._parts.get("pre_tokenizer"))
        )

    @cached_property
    def _added_tokens(self) -> dict[str, int]:
        return {token.content: number for number, token in self._tokenizer.get_added_tokens_decoder().items()}

    @cached_property
    def _added_ids(self) -> frozenset[int]:
        return frozenset(self._added_tokens.values())

    @cached_property
    def _without_space_mark(self) -> Tokenizer:
        """A copy of the tokenizer that adds no space mark."""
        parts = self._parts
        parts["normalizer"] = _drop_space_mark(parts.get("normalizer"), "normalizers")
        parts["pre_tokenizer"] = _drop_space_mark(parts.get("pre_tokenizer"), "pretokenizers")
        bare = Tokenizer.from_str(json.dumps(parts))
        bare.encode_special_tokens = self._tokenizer.encode_special_tokens
        return bare


class ChildVocabulary(Vocabulary):
    """A tokenizer that answers in a child. A restarted child loads it again."""

    def __init__(self, files: TokenizerFiles) -> None:
        self._files = files
        # This is None until `guard` is called.
        self._guarded: list[int] | None = None
        self._known: dict[tuple[str, tuple[Any, ...]], Any] = {}
        self._child = Child(make_tokenizers, BOUNDS)
        weakref.finalize(self, self._child.close)

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer itself, loaded into this process. For training, which changes it."""
        vocabulary = Vocabulary(self._files.load())
        if self._guarded is not None:
            vocabulary.guard(self._guarded)
        return vocabulary.tokenizer

    def guard(self, numbers: Sequence[int]) -> None:
        self._guarded = sorted(numbers)

    def _call(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Return what the method `name` of the tokenizer returns in the child."""
        files = [str(self._files.folder), self._files.rows, self._files.added]
        request: dict[str, Any] = {"files": files, "guarded": self._guarded, "name": name}
        request |= {"arguments": arguments, "options": options}
        try:
            return self._child.ask(request)
        except ChildError as error:
            raise UserError(f"its tokenizer fails: {error}.", "Choose another model, or another text.") from None

    def _call_once(self, name: str, *arguments: Any) -> Any:
        """Like `_call`, but asks each question only once."""
        if (name, arguments) not in self._known:
            self._known[name, arguments] = self._call(name, *arguments)
        return self._known[name, arguments]


for _name in ("token_id", "token", "first_token", "is_added", "last_id", "marks_once"):
    setattr(ChildVocabulary, _name, partialmethod(ChildVocabulary._call_once, _name))
for _name in ("first_added", "split", "is_within", "encode"):
    setattr(ChildVocabulary, _name, partialmethod(ChildVocabulary._call, _name))


def open_vocabulary(files: TokenizerFiles, *, strange: bool) -> Vocabulary:
    """Return a tokenizer, in a child if it is untrusted. Raises `UserError` if it cannot be loaded."""
    return ChildVocabulary(files) if strange else Vocabulary(files.load())


def make_tokenizers() -> Answerer:
    """Return the function by which the child answers for tokenizers."""
    opened: dict[str, Vocabulary] = {}

    def answer(request: Any, content: Iterator[bytes]) -> Any:
        key = json.dumps([request["files"], request["guarded"]])
        if key not in opened:
            folder, rows, added = request["files"]
            vocabulary = Vocabulary(TokenizerFiles(Path(folder), rows, tuple(added)).load())
            if request["guarded"] is not None:
                vocabulary.guard(request["guarded"])
            opened[key] = vocabulary
        function: Callable[..., Any] = getattr(opened[key], request["name"])
        return function(*request["arguments"], **request["options"])

    return answer


def _drop_space_mark(part: dict[str, Any] | None, key: str) -> dict[str, Any] | None:
    """Return a normalizer or pre-tokenizer without the step that adds a space mark."""
    steps = []
    for step in normalizing_steps(part):
        if step["type"] == "Prepend":
            continue
        if step["type"] == "Metaspace":
            step = step | {"prepend_scheme": "never"}
        if step.get("add_prefix_space"):
            step = step | {"add_prefix_space": False}
        steps.append(step)
    return {"type": "Sequence", key: steps} if steps else None
