"""Chats of an agent that calls tools, in the form of OpenAI's and Claude's interfaces (`stepsight import agent`).

    {"id": "7", "messages": [{"role": "user", "content": "When was …?"},
        {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function",
            "function": {"name": "search", "arguments": "{\"query\": \"…\"}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "…"}, {"role": "assistant", "content": "In 1838."}]}

`turns` says how messages become steps and context. A `system` beside the messages, as in Claude's interface, comes
first. All other fields are kept in the metadata. Rows without an `id` get a hash of their row as id. A chat in
which no tool is called is of the kind `chat` unless the user says otherwise.
"""

from typing import Any

from stepsight.core.trace import Trace
from stepsight.storage.importers.agents.turns import Turns
from stepsight.storage.importers.rows.fields import ASIDE, content_id, identifier, listed, located, rest
from stepsight.storage.importers.rows.kind import FileKind, Row, choosing_thoughts

_KINDS = ("tool_use", "tool_result")


def parse(row: Row, where: str, thoughts: str = ASIDE) -> Trace:
    """Parse a row into a trace. Raises `UserError` if there is no turn of the assistant or no message of a user, or
    if a message has any other form."""
    with located(where):
        turns = Turns(thoughts)
        system = row.get("system")
        if system:
            turns.read({"role": "system", "content": system}, 0)
        for number, message in enumerate(listed(row, "messages"), start=1):
            turns.read(message, number)
        id = identifier(row, "id") if row.get("id") is not None else content_id(row)
        return turns.trace(id, rest(row, "id", "messages", *(["system"] if system else [])))


def calls_tools(row: Row) -> bool:
    """True if a message calls a tool or holds the result of one."""
    messages = row.get("messages")
    return isinstance(messages, list) and any(map(_is_of_tools, messages))


def _is_of_tools(message: Any) -> bool:
    if not isinstance(message, dict):
        return False
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    in_parts = any(isinstance(part, dict) and part.get("type") in _KINDS for part in parts)
    return bool(message.get("tool_calls")) or message.get("role") == "tool" or in_parts


KIND = choosing_thoughts(
    FileKind(
        name="agent",
        title="chats of an agent that calls tools, whose turns are the steps",
        fields=frozenset({"messages"}),
        holds=calls_tools,
        parse=parse,
    ),
    parse,
)
