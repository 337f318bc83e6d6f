"""A trace as token ids, with the position where each step is read."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from core.errors import UserError
from core.trace import Trace


@dataclass(frozen=True)
class PromptTemplate:
    """How a trace becomes one input: ReasonEval's prompt, each step closed by a separator token.

    The paper leaves the prompt open. `prompt` holds `{problem}` once; `separator` is a token of the
    tokenizer's vocabulary, put after the prompt and after each step, and a step is read at the one that closes
    it. The separator is never produced by a text that happens to contain its spelling.
    """

    prompt: str = "Question:\n{problem}\nAnswer:\nLet's think step by step.\n"
    separator: str = "<step>"
    bos: str | None = None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "PromptTemplate":
        """Raises `UserError` on an unknown key or a prompt without `{problem}`."""
        unknown = set(values) - set(cls.__dataclass_fields__)
        if unknown:
            raise UserError(f"the template has the unknown key {sorted(unknown)[0]!r}.")
        wrong = [
            key for key, value in values.items() if not isinstance(value, str) and (key, value) != ("bos", None)
        ]
        if wrong:
            raise UserError(f"the template's {wrong[0]} is {values[wrong[0]]!r:.40}, expected a text.")
        template = cls(**values)
        if template.prompt.count("{problem}") != 1:
            raise UserError("the template's prompt does not hold {problem} once.")
        return template

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Encoded:
    """`ids`: all token ids, shape (tokens,). `ends`: `e_i`, the position read for each sub-step, ascending.

    The prefix that ends with sub-step `i` is `ids[: ends[i] + 1]`, token for token.
    """

    ids: NDArray[np.int64]
    ends: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ids)


class Encoder:
    """Turns traces into token ids. Raises `UserError` where the tokenizer lacks the template's tokens."""

    def __init__(self, tokenizer: Tokenizer, template: PromptTemplate) -> None:
        self.tokenizer = tokenizer
        self.template = template
        # Otherwise a step that spells the separator would be cut in two.
        tokenizer.encode_special_tokens = True
        tokenizer.no_padding()
        tokenizer.no_truncation()
        self.separator = self._token(template.separator)
        self.bos = [] if template.bos is None else [self._token(template.bos)]

    def _token(self, token: str) -> int:
        found: int | None = self.tokenizer.token_to_id(token)
        if found is None:
            raise UserError(
                f"the tokenizer has no token {token!r}, which the template needs.",
                "Add it to the tokenizer or name another one in stepsight.json.",
            )
        return found

    def encode(self, trace: Trace) -> Encoded:
        """Token ids of problem and sub-steps, with the separator's position after each sub-step."""
        head, tail = self.template.prompt.split("{problem}")
        texts = [head + trace.problem + tail, *trace.substeps]
        pieces = [encoding.ids for encoding in self.tokenizer.encode_batch(texts, add_special_tokens=False)]
        ids = [*self.bos, *pieces[0], self.separator]
        ends = []
        for piece in pieces[1:]:
            ids += piece
            ends.append(len(ids))
            ids.append(self.separator)
        return Encoded(np.asarray(ids, dtype=np.int64), np.asarray(ends, dtype=np.int64))
