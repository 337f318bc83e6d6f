r"""Chats in the form of fine-tuning data (`stepsight import chat`).

The last answer is the solution, which is split into steps like a solution on the Score page. The user's message
before it is the problem:

    {"messages": [{"role": "system", "content": "Reason step by step."}, {"role": "user", "content": "What is …?"},
                  {"role": "assistant", "content": "First, …"}], "source": "a file"}

A content may be a list of parts with a text each. Earlier messages are kept in the metadata as `messages`, together
with all other fields. Thinking before the solution, in its text, as a part of its content or in the message's field
`reasoning_content`, is kept in the metadata, or judged as its first steps. Rows without an `id` get a hash of their
row as id.

If tools are called on the way from the problem to the last answer, each turn of the assistant is a step. Its text
holds what the turn says, its calls, and the results:

    {"role": "assistant", "content": "I search.", "tool_calls": [{"id": "c1", "type": "function",
        "function": {"name": "search", "arguments": "{\"query\": \"…\"}"}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "1838"}

ShareGPT's form is the same under other names (`stepsight import sharegpt`):

    {"conversations": [{"from": "human", "value": "What is …?"}, {"from": "gpt", "value": "First, …"}]}
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.text.response import set_thoughts_aside
from stepsight.core.text.split import Split, split_answer
from stepsight.core.trace import Trace
from stepsight.storage.importers.rows.fields import (
    ASIDE,
    JUDGED,
    check_list,
    content_id,
    describe,
    identifier,
    listed,
    rest,
)
from stepsight.storage.importers.rows.kind import EndlessThoughts, FileKind, OnBad, Row, Rows

_SOLVER, _ASKER = "assistant", "user"
_HINT = "Expected messages with a role and a content: a user's with the problem, then an assistant's."
_MESSAGES = {"messages": "messages", "role": "role", "content": "content"}
_CONVERSATIONS = {"messages": "conversations", "role": "from", "content": "value"}
_ROLES = {"human": _ASKER, "gpt": _SOLVER}
# The kinds of message parts that hold thoughts, the fields of their texts, and a message's fields for thoughts.
_HIDDEN = "redacted_thinking"
_THOUGHTS = ("thinking", "reasoning", _HIDDEN)
_TEXTS = ("thinking", "reasoning", "content", "text", "summary")
_FIELDS = ("reasoning_content", "reasoning")
# The assistant's replies in chats in which each user message is a step to be judged.
_VERDICTS = ("+", "-")


def _read(names: Mapping[str, str], thoughts: str, row: Row) -> Trace:
    """Turn a row into a trace. `names` gives the names of its fields, and `thoughts` is `ASIDE` or `JUDGED`. Raises
    `UserError` if the chat has no solution after a problem, or if its answers are verdicts on steps."""
    key = names["messages"]
    id = identifier(row, "id") if row.get("id") is not None else content_id(row)
    return read_chat(id, listed(row, key), rest(row, "id", key), thoughts, names)


def read_chat(
    id: str,
    messages: Sequence[Any],
    meta: Mapping[str, Any],
    thoughts: str = ASIDE,
    names: Mapping[str, str] = _MESSAGES,
) -> Trace:
    """Return the solution in a chat as a trace. The arguments and errors are those of `_read`."""
    turns = [_turn(message, number, names) for number, message in enumerate(messages, start=1)]
    last = max((place for place, (role, _) in enumerate(turns) if role == _SOLVER), default=0)
    question = max((place for place in range(last) if turns[place][0] == _ASKER), default=-1)
    if question < 0:
        raise UserError("the chat has no answer after a question.", _HINT)
    solution, is_judged = turns[last][1], thoughts == JUDGED
    if solution.strip() in _VERDICTS:
        raise UserError("the answers are verdicts on steps, not a solution.", "Write the steps as a list.")
    answers = range(question + 1, last + 1)
    if any(map(_calls, messages[question + 1 : last])):
        split = _with_tools([(messages[i], *turns[i], _thoughts(messages[i], names)) for i in answers], is_judged)
    else:
        split = split_answer(solution, _thoughts(messages[last], names), judged=is_judged)
    earlier = {names["messages"]: list(messages[:question])} if question else {}
    return Trace.of(turns[question][1].strip(), split.steps, id=id, meta={**meta, **earlier, **split.meta})


def _with_tools(turns: Iterable[tuple[Mapping[str, Any], str, str, list[str]]], is_judged: bool) -> Split:
    """Return a step for each turn of an assistant that calls tools, with its calls and their results in its text.
    Each turn is given as the message, its role, its text and its thoughts, which are part of the step if they are
    judged."""
    steps: list[str] = []
    aside: list[str] = []
    for message, role, text, thoughts in turns:
        if role == _SOLVER:
            answer, own_thoughts = set_thoughts_aside(text)
            thoughts = [*thoughts, *own_thoughts]
            lines = [*(thoughts if is_judged else ()), answer, *map(_call, _calls(message))]
            steps.append("\n".join(line for line in lines if line.strip()))
            aside += () if is_judged else thoughts
        elif steps:
            heading = " ".join(filter(None, (role, _first_text(message, "name"))))
            steps[-1] = f"{steps[-1]}\n[{heading}]\n{text}".strip()
    asides = tuple(f"<think>\n{thought}\n</think>" for thought in aside)
    return Split(tuple(step for step in steps if step.strip()), asides)


def _calls(message: Mapping[str, Any]) -> list[Any]:
    return check_list(message.get("tool_calls") or [], "the field 'tool_calls'")


def _call(call: Any) -> str:
    inner = call.get("function") if isinstance(call, dict) else None
    # With Inspect, the name replaces the object.
    name, details = (inner.get("name"), inner) if isinstance(inner, dict) else (inner, call)
    if not isinstance(name, str):
        raise UserError(f"a tool call is {describe(call)}, without a name.", _HINT)
    arguments = details.get("arguments")
    return f"{name}({arguments if isinstance(arguments, str) else _json(arguments)})"


def _thoughts(message: Mapping[str, Any], names: Mapping[str, str]) -> list[str]:
    """Return the thoughts that a message stores separately from its text: in a field, and in parts of its
    content."""
    content = message.get(names["content"])
    thoughts = [_first_text(message, *_FIELDS)]
    for part in content if isinstance(content, list) else ():
        if not _is_thought(part):
            continue
        if part["type"] == _HIDDEN:
            thoughts.append("[redacted]")
        elif any(part.get(key) not in (None, "", []) for key in _TEXTS):
            thoughts.append(_first_text(part, *_TEXTS) or _json(part))
    return list(filter(None, thoughts))


def _is_thought(part: object) -> bool:
    return isinstance(part, dict) and part.get("type") in _THOUGHTS


def _first_text(values: Mapping[str, Any], *keys: str) -> str:
    return next((value for key in keys if isinstance(value := values.get(key), str) and value), "")


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _tally(names: Mapping[str, str], seen: EndlessThoughts, rows: Rows, name: str, on_bad: OnBad | None) -> Rows:
    for where, row in rows:
        messages = row.get(names["messages"])
        last = messages[-1] if isinstance(messages, list) and messages else None
        if isinstance(last, dict):
            content = last.get(names["content"])
            seen.add(content, is_endless=content in (None, "") and bool(_thoughts(last, names)))
        yield where, row


def _turn(message: Any, number: int, names: Mapping[str, str]) -> tuple[str, str]:
    if not isinstance(message, dict):
        raise UserError(f"message {number} is {describe(message)}, expected an object.", _HINT)
    # An assistant's message that only calls a tool has no content.
    content = message.get(names["content"]) or ""
    parts = [part for part in content if not _is_thought(part)] if isinstance(content, list) else [content]
    texts: list[Any] = [part.get("text") if isinstance(part, dict) else part for part in parts]
    if not all(isinstance(text, str) for text in texts):
        raise UserError(f"message {number} contains something other than text.", _HINT)
    role = str(message.get(names["role"]))
    return _ROLES.get(role, role), "".join(texts)


def _kind(name: str, title: str, names: Mapping[str, str], thoughts: str = ASIDE) -> FileKind:
    seen = EndlessThoughts()
    return FileKind(
        name=name,
        title=title,
        fields=frozenset({names["messages"]}),
        read=partial(_read, names, thoughts),
        # The chat repeats what other columns hold with labels.
        gives_way=lambda rows, columns: all(columns[name] for name in ("problem", "steps", "labels")),
        through=partial(_tally, names, seen),
        notes=seen.notes,
        with_thoughts=partial(_kind, name, title, names),
    )


KIND = _kind("chat", "chats, whose last answer is the solution", _MESSAGES)
SHAREGPT = _kind("sharegpt", "chats as ShareGPT has them, whose last answer is the solution", _CONVERSATIONS)
