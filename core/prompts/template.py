"""Prompt templates: the texts around a trace's problem and steps, and the token that a step is read at."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

from stepsight.core.errors import UserError


class Read(StrEnum):
    """The token that a step is read at: the last of its separator, or the last or second to last of the step
    itself. In the latter two the separator is not part of the input."""

    SEPARATOR = "separator"
    LAST = "last"
    SECOND_TO_LAST = "second-to-last"


class Separator(StrEnum):
    """The kind of a template's `separator`: a token of the vocabulary, spelt as it is there, or any text."""

    TOKEN = "token"
    TEXT = "text"


@dataclass(frozen=True)
class PromptTemplate:
    """The template of an input; by default ReasonEval's prompt, then each step closed by a separator token.

    The paper leaves the prompt open. `prompt` holds `{problem}` once; tokens of the vocabulary that it spells, such
    as those of a chat template, are those tokens. `separator` comes after each step and, where `opening` says so,
    after the prompt too. `step` holds `{step}` once and may hold `{number}`, counted from 1; a step that begins
    that way by itself is left as it is. `between` is put before every step but the first. With `joined` the tokens
    are those of one long text; otherwise the prompt and each step are turned into tokens by themselves.

    A separator token is never produced by a problem or step that happens to contain its spelling.
    """

    prompt: str = "Question:\n{problem}\nAnswer:\nLet's think step by step.\n"
    separator: str = "<step>"
    bos: str | None = None
    step: str = "{step}"
    between: str = ""
    opening: bool = True
    joined: bool = False
    separator_is: Separator = Separator.TOKEN
    read: Read = Read.SEPARATOR

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "PromptTemplate":
        """Raises `UserError` on an unknown key, a value of another type, or a text without its place to fill."""
        unknown = set(values) - set(cls.__dataclass_fields__)
        if unknown:
            raise UserError(f"the template has the unknown key {sorted(unknown)[0]!r}.")
        template = cls(**{key: _checked(key, value) for key, value in values.items()})
        for key, place in (("prompt", "{problem}"), ("step", "{step}")):
            if getattr(template, key).count(place) != 1:
                raise UserError(f"the template's {key} does not hold {place} once.")
        if not template.separator and template.read == Read.SEPARATOR:
            raise UserError("the template reads steps at an empty separator.", "Name one, or set read to last.")
        return template

    def to_dict(self) -> dict[str, Any]:
        """The values for `from_dict`: prompt, separator, bos, and what differs from the defaults."""
        always = ("prompt", "separator", "bos")
        values = {key: str(value) if isinstance(value, StrEnum) else value for key, value in asdict(self).items()}
        return {
            field.name: values[field.name]
            for field in fields(self)
            if field.name in always or values[field.name] != field.default
        }

    def step_text(self, number: int, text: str) -> str:
        """The text of a step, whose number counts from 1, without `between`."""
        if self.step == "{step}":
            return text
        head, tail = self.step.split("{step}")
        # Benchmarks that number their steps in words keep the words in the text.
        own = re.escape(head.strip()).replace(re.escape("{number}"), "[0-9]+")
        if own and re.match(own, text.lstrip()):
            return text
        return head.replace("{number}", str(number)) + text + tail.replace("{number}", str(number))


def _checked(key: str, value: Any) -> Any:
    default = getattr(PromptTemplate, key)
    if isinstance(default, StrEnum):
        kind = type(default)
        if value not in list(kind):
            raise UserError(f"the template's {key} is {value!r:.40}, expected one of: {', '.join(kind)}.")
        return kind(value)
    if isinstance(default, bool):
        if not isinstance(value, bool):
            raise UserError(f"the template's {key} is {value!r:.40}, expected true or false.")
    elif not isinstance(value, str) and (key, value) != ("bos", None):
        raise UserError(f"the template's {key} is {value!r:.40}, expected a text.")
    return value
