"""The parts of a chat's message: their kinds, their texts, and the model's thoughts before its answer.

{"role": "assistant", "reasoning_content": "…", "content": "…"}
{"role": "assistant", "content": [{"type": "thinking", "thinking": "…"}, {"type": "text", "text": "…"}]}
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

THOUGHTS = ("thinking", "reasoning")
"""The kinds of parts that hold a thought, under a key of the same name or as their text."""

_HIDDEN = "redacted_thinking"
_FIELDS = ("reasoning_content", "reasoning")


def thoughts_of(message: Mapping[str, Any], parts: Iterable[Any]) -> list[str]:
    """Return the thoughts of a message outside its text: those in a field, and in the parts of its content."""
    found = [optional_text(message, *_FIELDS) or ""]
    for part in filter(is_thought, parts):
        is_hidden = part_kind(part) == _HIDDEN
        found.append("[redacted]" if is_hidden else first_text(part, *THOUGHTS, "content", "text", "summary"))
    return list(filter(None, found))


def is_thought(part: object) -> bool:
    """True if a part of a message's content is a thought of the model."""
    return part_kind(part) in (*THOUGHTS, _HIDDEN)


def part_kind(part: object) -> str:
    """Return the type of a part, or "" if it has none."""
    kind = part.get("type") if isinstance(part, dict) else None
    return kind if isinstance(kind, str) else ""


def optional_text(values: Mapping[str, Any], *keys: str) -> str | None:
    """Return the first text under one of the keys that is not empty, or None."""
    return next((value for key in keys if isinstance(value := values.get(key), str) and value), None)


def first_text(part: Mapping[str, Any], *keys: str) -> str:
    """Return the first text under one of the keys. If there is something else, return the part as JSON."""
    if value := optional_text(part, *keys):
        return value
    return "" if all(part.get(key) in (None, "", []) for key in keys) else written_json(part)


def written_json(value: object) -> str:
    """Return a value as JSON with all characters unescaped."""
    return json.dumps(value, ensure_ascii=False)
