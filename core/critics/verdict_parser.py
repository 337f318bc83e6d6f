"""Strict parsing of the verdicts in a critic's answer, without guessing.

An answer that cannot be parsed, was cut short, or has more or fewer verdicts than there are steps raises
`UnreadableError`.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, TypeAdapter, ValidationError

from stepsight.core.errors import counted
from stepsight.core.files.whole_files import check_depth
from stepsight.core.trace import LABEL_NAMES, Label
from stepsight.core.validation import choice

LONGEST = 4000
"""The number of characters kept of a rationale."""

# Longer answers, in characters, are not parsed.
_MOST = 1_000_000
# TeX commands that JSON reads as a line break or a tab before a word. What remains of them is never a common word,
# except for some commands that are too frequent to leave out.
_COMMANDS = (
    "nabla|natural|neg|neq|newcommand|newline|nexists|n[ew]arrow|n[lg]eq[a-z]*|nmid|not|notin|nonumber|nolimits|noindent|"
    "nparallel|nsu[bp]seteqq?|nsim|ncong|ngtr|nprec(?:eq)?|nsucc(?:eq)?|n[vV][dD]ash|ntriangle[a-z]*|"
    "n(?:[lL]eft|[rR]ight|[lL]eftright)arrow|"
    "tag|tanh?|tau|tbinom|text[a-z]*|tfrac|therefore|theta|thick[a-z]*|thinspace|tilde|times|tiny|to|top|"
    "triangle[a-z]*|twohead[a-z]*"
)
# Nobody writes a backspace or a form feed, nor a carriage return before a letter.
_STRAY = re.compile(
    rf"(?<!\\)((?:\\\\)*)\\(?=(?:{_COMMANDS})(?![a-zA-Z])|[bfr][a-zA-Z]|[^\"\\/bfnrtu]|u(?![0-9a-fA-F]{{4}}))"
)
_SHORT = re.compile(r"(?<=[ $(])\\(?=(?:ne|ni|nu)(?![a-zA-Z]))")
_FIRST_STEP = re.compile(r'\{\s*"step_1"\s*:')
_BOX = re.compile(r"\\boxed\{\s*(?:\\text\{\s*)?(correct|incorrect)\s*\}{1,2}", re.IGNORECASE)
_THINKS, _THOUGHT = "<think>", "</think>"
# TeX in which a model forgot to double the backslash: JSON reads \frac and \boxed with a control character.
_TEX = str.maketrans({"\x0c": r"\f", "\x08": r"\b"})
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class UnreadableError(ValueError):
    """Raised for an answer without usable verdicts. The message gives the reason without quoting the answer."""


@dataclass(frozen=True)
class Answer:
    """A critic's answer: its `text`, and its `thinking` if the server returns that separately. `is_cut` is True if
    the answer was cut short."""

    text: str
    thinking: str = ""
    is_cut: bool = False

    @property
    def parts(self) -> tuple[str, str]:
        """The thinking and the final text, separated from each other even if the server returns both in `text`."""
        before, mark, after = self.text.rpartition(_THOUGHT)
        before = before.strip().removeprefix(_THINKS)
        return (f"{self.thinking}\n{before}".strip(), after.strip()) if mark else (self.thinking, self.text.strip())


@dataclass(frozen=True)
class Verdicts:
    """A label and a rationale for each step. The rationale is "" if there is none."""

    labels: tuple[Label, ...]
    rationales: tuple[str, ...]


def _lower_text(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


class _Step(BaseModel):
    model_config = ConfigDict(strict=True)

    verdict: Annotated[str, BeforeValidator(_lower_text), choice(LABEL_NAMES)]
    rationale: str = ""


_STEPS = TypeAdapter(dict[str, _Step])


def schema(count: int) -> dict[str, Any]:
    """Return the JSON schema of an answer with verdicts on `count` steps.

    Every step has its own key. This fixes the number and order of the steps even on servers that do not support
    bounds on list lengths.
    """
    step = {
        "type": "object",
        "properties": {"rationale": {"type": "string"}, "verdict": {"type": "string", "enum": list(LABEL_NAMES)}},
        "required": ["rationale", "verdict"],
        "additionalProperties": False,
    }
    names = _names(count)
    return {
        "type": "object",
        "properties": dict.fromkeys(names, step),
        "required": names,
        "additionalProperties": False,
    }


def _names(count: int) -> list[str]:
    return [f"step_{number}" for number in range(1, count + 1)]


def read_verdicts(answer: Answer, count: int) -> Verdicts:
    """Read the JSON object that StepSight's own prompt asks for: alone, in a code fence, or surrounded by prose. If
    the final text is empty, the thinking is searched for the object."""
    thinking, text = answer.parts
    text = text or thinking
    starts = [match.start() for match in islice(_FIRST_STEP.finditer(text), 2)]
    if len(starts) > 1:
        raise UnreadableError("more than one object with verdicts")
    try:
        steps = _STEPS.validate_python(_parse_object(text, starts[0] if starts else text.find("{")))
    except ValidationError as error:
        is_verdict = "verdict" in error.errors(include_url=False)[0]["loc"]
        shape = "a verdict that is not neg, neu or pos" if is_verdict else "JSON of the wrong shape"
        raise UnreadableError(shape) from None
    if list(steps) != _names(count):
        raise UnreadableError(f"verdicts that are not on steps 1 to {count} in order")
    labels = tuple(Label[step.verdict.upper()] for step in steps.values())
    return Verdicts(labels, tuple(_clean(step.rationale) for step in steps.values()))


def _parse_object(text: str, start: int) -> Any:
    """Parse the JSON object that begins at `start`. Raw line breaks in it are accepted, and backslashes in TeX that
    the model did not double. Raises `UnreadableError` if there is no such object."""
    if start < 0:
        raise UnreadableError("no JSON")
    text = _SHORT.sub(r"\\\\", _STRAY.sub(r"\1\\\\", text[start:]))
    try:
        value, _ = _DECODER.raw_decode(text)
        check_depth(value)
    except UnreadableError:
        raise
    except (ValueError, RecursionError):
        raise UnreadableError("no JSON") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise UnreadableError("JSON with a repeated key")
    return values


_DECODER = json.JSONDecoder(strict=False, object_pairs_hook=_object)


def read_boxes(answer: Answer, count: int) -> Verdicts:
    r"""Read ThinkPRM's format: in the thinking, the text on each step ends with \boxed{correct} or
    \boxed{incorrect}.

    The answer may stop at the first incorrect step; later steps then count as incorrect too. ThinkPRM's authors do
    the same: their single score for the steps so far stays low after an incorrect step.
    """
    text = next((part for part in answer.parts if _BOX.search(part)), "")
    boxes = list(_BOX.finditer(text))
    labels = [Label.POS if box[1].lower() == "correct" else Label.NEG for box in boxes]
    if not labels:
        raise UnreadableError("no verdict in a box")
    stops_early = len(labels) < count and Label.NEG not in labels[:-1] and labels[-1] == Label.NEG
    if len(labels) != count and not stops_early:
        raise UnreadableError(f"{counted(len(labels), 'verdict')} instead of {count}")
    starts = [0, *(box.end() for box in boxes)]
    rationales = [_clean(text[start : box.end()]) for start, box in zip(starts, boxes, strict=False)]
    missing = count - len(labels)
    return Verdicts((*labels, *[Label.NEG] * missing), (*rationales, *[""] * missing))


@dataclass(frozen=True)
class AnswerReading:
    """A way of parsing answers. `read` gets an answer and the number of steps that the question shows. `three_way`
    is True if the verdicts also cover redundancy."""

    read: Callable[[Answer, int], Verdicts]
    three_way: bool


READINGS = {
    "verdicts": AnswerReading(read_verdicts, three_way=True),
    "boxes": AnswerReading(read_boxes, three_way=False),
}


def read_answer(reading: str, answer: Answer, count: int) -> Verdicts:
    """Parse the verdicts in an answer about `count` steps. `reading` is a name in `READINGS`."""
    if not (answer.text or answer.thinking).strip():
        raise UnreadableError("an empty answer")
    if len(answer.text) + len(answer.thinking) > _MOST:
        raise UnreadableError(f"an answer of over {_MOST:,} characters")
    if answer.is_cut:
        raise UnreadableError("an answer that was cut short")
    return READINGS[reading].read(answer, count)


def _clean(text: str) -> str:
    """Make text from a critic safe for every database and page, and cut it to `LONGEST` characters."""
    text = _CONTROL.sub(" ", text.translate(_TEX)).encode("utf-8", "replace").decode().strip()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
