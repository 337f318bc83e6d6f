"""Prompt templates: the text around a trace's problem and steps, and the token at which a step is read."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Strict, model_validator
from pydantic.dataclasses import dataclass

from stepsight.core.errors import located
from stepsight.core.validation import STRICT, Record, invalid, validate


class Read(StrEnum):
    """The token at which a step is read: the last token of the separator, or the last or second-to-last token of
    the step.

    If it is a token of the step, the separator is not part of the input.
    """

    SEPARATOR = "separator"
    LAST = "last"
    SECOND_TO_LAST = "second-to-last"


class Separator(StrEnum):
    """The kind of a template's `separator`: the name of a token in the vocabulary, or any text."""

    TOKEN = "token"
    TEXT = "text"


class Strip(StrEnum):
    """The texts that are stripped of surrounding white space: none, the steps, or the steps and the problem."""

    NONE = "none"
    STEPS = "steps"
    ALL = "all"


class Lines(StrEnum):
    """The treatment of line breaks within a step.

    They are kept, replaced by the separator (each line is then tokenized on its own), or replaced by spaces. In
    each case the step is read at its end.
    """

    KEPT = "kept"
    SEPARATORS = "separators"
    SPACES = "spaces"


@dataclass(frozen=True, config=STRICT)
class PromptTemplate(Record):
    """The template of an input. By default, ReasonEval's prompt is followed by steps that each end with a separator
    token.

    The paper leaves the prompt open. `prompt` contains `{problem}` once. If it spells tokens of the vocabulary,
    such as those of a chat template, they are encoded as those tokens. `separator` comes after each step and, if
    `opening` is True, also after the prompt. `step` contains `{step}` once and may contain `{number}`, which counts
    from 1. If a step's text already begins with the words that precede `{step}`, they are not added again.
    `between` precedes every step but the first, and may spell tokens like `prompt`. If `joined` is True, the input
    is tokenized as one long text. Otherwise the prompt and each step are tokenized separately. `strip` and `lines`
    control the treatment of white space.

    A problem or step that happens to contain the spelling of a separator token never produces that token.
    """

    prompt: str = "Question:\n{problem}\nAnswer:\nLet's think step by step.\n"
    separator: str = "<step>"
    bos: str | None = None
    step: str = "{step}"
    between: str = ""
    opening: bool = True
    joined: bool = False
    separator_is: Annotated[Separator, Strict(False)] = Separator.TOKEN
    read: Annotated[Read, Strict(False)] = Read.SEPARATOR
    strip: Annotated[Strip, Strict(False)] = Strip.NONE
    lines: Annotated[Lines, Strict(False)] = Lines.KEPT

    @model_validator(mode="after")
    def _check(self) -> "PromptTemplate":
        for key, place in (("prompt", "{problem}"), ("step", "{step}")):
            if getattr(self, key).count(place) != 1:
                raise invalid(f"{key} must contain {place} exactly once.")
        if not self.separator and self.read == Read.SEPARATOR:
            raise invalid("steps cannot be read at an empty separator.", "Name one, or set read to last.")
        return self

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "PromptTemplate":
        """Create a template from a mapping. Raises `UserError` if a key is unknown, a value has the wrong type, or
        a text lacks its placeholder."""
        with located("the template"):
            return validate(cls, dict(values))

    def to_dict(self) -> dict[str, Any]:
        """Return a mapping from which `from_dict` rebuilds the template: prompt, separator, bos, and every value
        that differs from its default."""
        always = ("prompt", "separator", "bos")
        values = {key: str(value) if isinstance(value, StrEnum) else value for key, value in asdict(self).items()}
        return {
            field.name: values[field.name]
            for field in fields(self)
            if field.name in always or values[field.name] != field.default
        }

    def problem_text(self, problem: str) -> str:
        return problem.strip() if self.strip == Strip.ALL else problem

    def step_text(self, number: int, text: str) -> str:
        """Return the text of a step as the template writes it, without `between`. `number` counts from 1."""
        text = text if self.strip == Strip.NONE else text.strip()
        text = text.replace("\n", " ") if self.lines == Lines.SPACES else text
        if self.step == "{step}":
            return text
        head, tail = (part.replace("{number}", str(number)) for part in self.step.split("{step}"))
        # In benchmarks that number their steps in words, the words stay in the text.
        own = self.step.split("{step}")[0].strip()
        return (text if own and _begins(text.lstrip(), own.split("{number}")) else head + text) + tail


def _begins(text: str, words: Sequence[str]) -> bool:
    """True if a text begins with these words, with a number between each pair."""
    first, *others = words
    if not text.startswith(first):
        return False
    rest = text[len(first) :]
    for word in others:
        after = rest.lstrip("0123456789")
        if after == rest or not after.startswith(word):
            return False
        rest = after[len(word) :]
    return True
