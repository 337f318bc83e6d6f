"""Lists of steps as programs print them: JSON, JSON Lines, Python and NumPy."""

import re
from collections.abc import Mapping
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import parse_json
from stepsight.core.text.printed import holds_steps, parse_printed
from stepsight.core.text.sentences import sentences
from stepsight.core.trace import check_text

Steps = list[str | list[str]]

# The keys of a solution that hold its steps, its answer, and the text of a step, in many programs. They may also be
# written as `finalAnswer` or `Final Answer`.
_STEPS = ("steps", "solution_steps", "reasoning_steps", "reasoning", "solution", "process", "chain_of_thought")
_ANSWERS = ("final_answer", "finalanswer", "answer", "final_result", "result", "conclusion", "solution")
_TEXTS = frozenset({
    "step", "text", "content", "title", "heading", "explanation", "description", "reasoning", "thought",
    "statement", "step_text", "value", "calculation", "equation", "operation", "output", "result", "conclusion",
})  # fmt: skip
_NUMBERED = re.compile(r"(?:step)?_?(\d{1,4})")
_WORD_ENDS = re.compile(r"(?<=[a-z])(?=[A-Z])|[\s_-]+")

# Other beginnings of what a program may have printed: objects, texts and tuples.
_STARTS = ("{", '"', "'", "('", '("')


def read_step_list(text: str) -> Steps | str | None:
    """Parse a list of steps that a program printed. Returns the steps, or the solution as a single text if the
    program printed only that, or None if the text was not printed by a program.

    An object with steps may hold an answer, which becomes the last step. A step may be an object with a text. Lists
    without any text, such as `[-2, 2]`, are answers and not lists of steps.

    Raises `UserError` if a list contains both texts and other values.
    """
    value = _parsed(text)
    if isinstance(value, str):
        return value if "\n" in value else None
    if isinstance(value, Mapping):
        value = _within(value)
    if isinstance(value, str):
        return value
    if not isinstance(value, list):
        return None
    if isinstance(chat := _last_reply(value), str):
        return chat
    return [_step(step, number) for number, step in enumerate(value, start=1)] if _has_text(value) else None


def _parsed(text: str) -> Any:
    """Return the value that a program printed, or None if the text is ordinary prose."""
    lines = text.splitlines()
    try:
        if len(lines) > 1 and all(line.startswith("{") and line.endswith("}") for line in lines):
            return _lines_or_whole(text, lines)
        return parse_printed(text) if holds_steps(text) or text.startswith(_STARTS) or text == "[]" else None
    except ValueError:
        return None


def _lines_or_whole(text: str, lines: list[str]) -> Any:
    try:
        return [parse_json(line) for line in lines]
    except ValueError:
        return parse_printed(text)


def _within(value: Mapping[Any, Any]) -> Any:
    """Return the steps in an object: its list of steps, or its values if their keys are consecutive numbers,
    followed by the answer. Returns a text if the steps are a single text, and None if there are no steps."""
    fields = {_WORD_ENDS.sub("_", str(key).strip()).lower(): part for key, part in value.items()}
    numbered = {int(match[1]): part for key, part in fields.items() if (match := _NUMBERED.fullmatch(key))}
    steps: Any
    if len(numbered) > 1 and list(numbered) in (list(range(1, len(numbered) + 1)), list(range(len(numbered)))):
        steps, name = list(numbered.values()), ""
    else:
        name = next((name for name in _STEPS if isinstance(fields.get(name), list | str | Mapping)), "")
        steps = fields.get(name)
    if isinstance(steps, Mapping):
        steps = _within(steps)
    answer = next((text for key in _ANSWERS if key != name and (text := _answer(fields.get(key)))), "")
    if not answer or steps is None:
        return steps
    if isinstance(steps, list):
        return [*steps, answer]
    return f"{steps}\n\nFinal answer: {answer}" if "\n" in steps else [*sentences(steps), answer]


def _answer(value: Any) -> str:
    """Return the text of an answer, or "" if it has none."""
    if isinstance(value, list):
        return ", ".join(filter(None, map(_answer, value)))
    value = _text(value)
    return str(value).strip() if isinstance(value, str | int | float) else ""


def _last_reply(messages: list[Any]) -> str | None:
    """Return the model's last reply in a list of chat messages, or None if there is none."""
    replies = [
        message["content"]
        for message in messages
        if isinstance(message, Mapping) and message.get("role") in ("assistant", "model")
        and isinstance(message.get("content"), str)
    ]  # fmt: skip
    return replies[-1] if replies else None


def _has_text(value: list[Any]) -> bool:
    return not value or any(
        isinstance(step, str | Mapping) or (isinstance(step, list) and bool(step) and _has_text(step))
        for step in value
    )


def _step(step: Any, number: int) -> str | list[str]:
    place = f"step {number} of the list"
    parts = [_text(part) for part in (step if isinstance(step, list) else [step])]
    texts = [part for part in parts if isinstance(part, str)]
    if not parts or len(texts) < len(parts):
        raise UserError(
            f"{place} is {step!r:.60}, expected a text, a list of texts, or an object with a text.",
            "Give each step as a text.",
        )
    for text in texts:
        check_text(text, place)
    return texts if isinstance(step, list) else texts[0]


def _text(step: Any) -> Any:
    """Return the text of a step that is an object, joining its text fields in order. Any other step, and an object
    without such fields, is returned unchanged."""
    if not isinstance(step, Mapping):
        return step
    parts = {key: part for key, part in step.items() if isinstance(part, str) and part.strip()}
    named = [part for key, part in parts.items() if str(key).lower() in _TEXTS]
    if named:
        return "\n".join(named)
    return next(iter(parts.values())) if len(parts) == 1 else step
