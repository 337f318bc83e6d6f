"""Chats in the form of fine-tuning data (`stepsight import chat`).

The last answer is the solution, which is split into steps like a solution on the Score page. The user's message
before it is the problem:

    {"messages": [{"role": "system", "content": "Reason step by step."}, {"role": "user", "content": "What is …?"},
                  {"role": "assistant", "content": "First, …"}], "source": "a file"}

A content may be a list of parts with a text each. Earlier messages are kept in the metadata as `messages`, together
with all other fields. Thinking before the solution, in its text, as a part of its content or in the message's field
`reasoning_content`, is kept in the context of the trace, or judged as its first steps. Rows without an `id` get a
hash of their row as id.

ShareGPT's form is the same under other names (`stepsight import sharegpt`):

    {"conversations": [{"from": "human", "value": "What is …?"}, {"from": "gpt", "value": "First, …"}]}
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.text.split import THOUGHT_STEPS, split_answer
from stepsight.core.trace import Trace
from stepsight.storage.importers.rows.fields import (
    ASIDE,
    JUDGED,
    content_id,
    describe,
    identifier,
    listed,
    located,
    rest,
)
from stepsight.storage.importers.rows.kind import EndlessThoughts, FileKind, OnBad, Row, Rows, json_rows
from stepsight.storage.importers.rows.messages import is_thought, thoughts_of

_SOLVER, _ASKER = "assistant", "user"
_HINT = "Expected messages with a role and a content: a user's with the problem, then an assistant's."
_MESSAGES = {"messages": "messages", "role": "role", "content": "content"}
_CONVERSATIONS = {"messages": "conversations", "role": "from", "content": "value"}
_ROLES = {"human": _ASKER, "gpt": _SOLVER}
# What an assistant answers where each message of a user is a step to be judged.
_VERDICTS = ("+", "-")


def _parse(names: Mapping[str, str], thoughts: str, row: Row, where: str) -> Trace:
    """Parse a row into a trace. `names` gives the names of its fields, and `thoughts` is `ASIDE` or `JUDGED`.
    Raises `UserError` if the chat has no solution after a problem, or if its answers are verdicts on steps."""
    with located(where):
        key = names["messages"]
        messages = listed(row, key)
        turns = [_turn(message, number, names) for number, message in enumerate(messages, start=1)]
        last = max((place for place, (role, _) in enumerate(turns) if role == _SOLVER), default=0)
        asked = max((place for place in range(last) if turns[place][0] == _ASKER), default=-1)
        if asked < 0:
            raise UserError("the chat has no answer after a question.", _HINT)
        solution = turns[last][1]
        if solution.strip() in _VERDICTS:
            raise UserError("the answers are verdicts on steps, not a solution.", "Write the steps as a list.")
        split = split_answer(solution, _thoughts(messages[last], names), judged=thoughts == JUDGED)
        earlier = {key: messages[:asked]} if asked else {}
        return Trace.of(
            turns[asked][1].strip(),
            split.steps,
            id=identifier(row, "id") if row.get("id") is not None else content_id(row),
            meta=rest(row, "id", key) | earlier | ({THOUGHT_STEPS: split.thinking} if split.thinking else {}),
            context=split.context,
        )


def _thoughts(message: Mapping[str, Any], names: Mapping[str, str]) -> list[str]:
    """Return the thoughts that a message stores separately from its text."""
    content = message.get(names["content"])
    return thoughts_of(message, content if isinstance(content, list) else [])


def _noting_rows(
    names: Mapping[str, str], seen: EndlessThoughts, lines: Iterable[bytes], name: str, on_bad: OnBad | None = None
) -> Rows:
    """Yield the rows of a file, and count those whose solution is thinking that never ends."""
    for where, row in json_rows(lines, name, on_bad):
        messages = row.get(names["messages"])
        last = messages[-1] if isinstance(messages, list) and messages else None
        if isinstance(last, dict):
            content = last.get(names["content"])
            seen.add(content, is_endless=content in (None, "") and bool(_thoughts(last, names)))
        yield where, row


def _turn(message: Any, number: int, names: Mapping[str, str]) -> tuple[str, str]:
    """Return a message's role and its content as one text."""
    if not isinstance(message, dict):
        raise UserError(f"message {number} is {describe(message)}, expected an object.", _HINT)
    # An assistant's call of a tool has no content.
    content = message.get(names["content"]) or ""
    parts = [part for part in content if not is_thought(part)] if isinstance(content, list) else [content]
    texts: list[Any] = [part.get("text") if isinstance(part, dict) else part for part in parts]
    if not all(isinstance(text, str) for text in texts):
        hint = f"{_HINT} The kind agent keeps other parts as a line that names them."
        raise UserError(f"message {number} has something other than text.", hint)
    role = str(message.get(names["role"]))
    return _ROLES.get(role, role), "".join(texts)


def _kind(name: str, title: str, names: Mapping[str, str], thoughts: str = ASIDE) -> FileKind:
    seen = EndlessThoughts()
    return FileKind(
        name=name,
        title=title,
        fields=frozenset({names["messages"]}),
        parse=partial(_parse, names, thoughts),
        rows=partial(_noting_rows, names, seen),
        notes=seen.notes,
        with_thoughts=partial(_kind, name, title, names),
    )


KIND = _kind("chat", "chats, whose last answer is the solution", _MESSAGES)
SHAREGPT = _kind("sharegpt", "chats as ShareGPT has them, whose last answer is the solution", _CONVERSATIONS)
