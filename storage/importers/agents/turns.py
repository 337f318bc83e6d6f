"""Reading an agent's messages into a trace, in the forms of OpenAI, Claude, Inspect and OpenTelemetry.

    {"role": "assistant", "content": "I look it up.", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "search", "arguments": "{\"query\": \"…\"}"}}]}
    {"role": "tool", "tool_call_id": "c1", "content": "…"}
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "…"}, {"type": "text", "text": "…"},
                                      {"type": "tool_use", "id": "c1", "name": "search", "input": {"query": "…"}}]}
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "…"}]}
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "search", "arguments": {…}}]}
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "…"}]}

Each turn of the assistant is a step: its text, and a line for each call. Two turns in a row are two steps, and a
turn with neither text nor calls is a step that says so. All other messages form the context, in order and uncut,
under the role that the file gives them; a result keeps the id of its call even if that call is missing. A model's
thoughts before a turn precede it: under the role `thought`, or as separate steps if thoughts are judged. Thoughts
are parts and fields of a message, or are in its text, as in `<think>…</think>`. Arguments that are an object are
written as JSON; those that are text are left unchanged, even if they are invalid.

A picture, a sound or a file becomes a line that names its kind, type and address or size, without the data. A part
of an unknown kind becomes a line that names the kind and holds the part as JSON.

The problem is the first message of a user, or of the system if no user says anything. It stays in the context too.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stepsight.core.context import THOUGHT, ContextMessage, ToolCall, TraceContext, turn_text
from stepsight.core.errors import UserError
from stepsight.core.text.split import THOUGHT_STEPS, split_turn, thought_steps
from stepsight.core.trace import Trace
from stepsight.storage.importers.agents.unread import Unread
from stepsight.storage.importers.rows.fields import JUDGED, describe
from stepsight.storage.importers.rows.messages import (
    THOUGHTS,
    first_text,
    is_thought,
    optional_text,
    part_kind,
    thoughts_of,
    written_json,
)

ASSISTANT = ("assistant", "ai", "model")
_TOOL = ("tool", "function", "ipython")
_TEXTS = ("text", "input_text", "output_text")
_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "server_tool_call")
_RESULTS = ("tool_result", "tool_call_response", "server_tool_call_response")
# Kinds of parts whose data are left out. What follows is read from them in this order, for the line in their place.
_MEDIA = ("image", "image_url", "input_image", "audio", "input_audio", "video", "file", "input_file", "document")
_ANY_MEDIA = (*_MEDIA, "blob", "uri")
# Kinds whose text is read behind their name.
_NOTED = (*THOUGHTS, "refusal")
_NO_TYPE = "a part without a type"
_ADDRESSES = ("url", "uri", "path", "file_id", "filename", "file_name", "image", "audio", "video", "document")
_TYPES = ("mime_type", "media_type", "format", "modality")
_DATA = ("data", "file_data", "content")
_LONGEST_ADDRESS = 200
_ROLES = ("system", "developer", "user", *_TOOL)
# The fields of a message that are read. Those that describe the message without saying anything are passed over.
_READ = ("role", "content", "parts", "tool_calls", "function_call", "tool_call_id", "tool_use_id", "name",
         "function", "error", "refusal", "reasoning", "reasoning_content")  # fmt: skip
_ABOUT = ("id", "type", "index", "model", "source", "internal", "timestamp", "created", "usage", "finish_reason",
          "stop_reason", "stop_sequence", "status", "logprobs", "cache_control")  # fmt: skip
_HINT = "Expected messages with a role and a content, as OpenAI, Claude, Inspect or OpenTelemetry have them."


class Turns:
    """The turns of an agent, and the messages between them, as they are read one after the other."""

    def __init__(self, thoughts: str = "") -> None:
        """`thoughts` is `ASIDE` or `JUDGED`. With "", thinking in the text of a turn stays there."""
        self.texts: list[str] = []
        self._thoughts = thoughts
        self._thought_steps: list[int] = []
        self._messages: list[ContextMessage] = []
        self._calls: list[ToolCall] = []
        self._names: dict[str, str] = {}
        self._unread: Counter[tuple[str, str]] = Counter()

    @property
    def unanswered(self) -> set[str]:
        """The ids of the calls whose result has not been read."""
        return self._names.keys() - {one.call for one in self._messages}

    def message(self, role: str, text: str, name: str | None = None, call: str | None = None) -> None:
        """Add a message that is not a step. A tool's result without a name gets the name of the tool that was
        called."""
        name = name or (self._names.get(call) if call else None)
        self._messages.append(ContextMessage(len(self.texts), role, text, name, call))

    def turn(self, text: str, calls: Sequence[tuple[str, object, str | None]] = (), thoughts: str = "") -> None:
        """Add a turn of the assistant. `calls` holds the name, the arguments and the id of each call."""
        if self._thoughts:
            text, within, endless = split_turn(text)
            self.leave(Unread.ENDLESS, [endless] if endless else [])
            thoughts = "\n\n".join(filter(None, [thoughts, *within]))
        if self._thoughts == JUDGED:
            steps = thought_steps(thoughts)
            self._thought_steps += range(len(self.texts) + 1, len(self.texts) + len(steps) + 1)
            self.texts += steps
        elif thoughts.strip():
            self.message(THOUGHT, thoughts)
        made = [ToolCall(len(self.texts), name, _arguments(arguments), id) for name, arguments, id in calls]
        self._names |= {call.id: call.name for call in made if call.id}
        self._calls += made
        self.texts.append(turn_text(text, made))

    def leave(self, fate: Unread, kinds: Iterable[str]) -> None:
        """Count parts of these kinds that are not read as text."""
        self._unread.update((fate, kind) for kind in kinds)

    def read(self, message: object, number: int) -> None:
        """Add the message with this number, counted from 1. Raises `UserError` if it has any other form."""
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise UserError(f"message {number} is {describe(message)} without a role.", _HINT)
        parts = _parts(message, number)
        self.leave(Unread.FIELD, (key for key, one in message.items() if _is_left(key, one)))
        if message["role"] in ASSISTANT:
            self._read_turn(message, parts, number)
            return
        role = "tool" if message["role"] in _TOOL else message["role"]
        self.leave(Unread.ROLE, [role] if role not in _ROLES else [])
        name, call = (
            optional_text(message, "name", "function"),
            optional_text(message, "tool_call_id", "tool_use_id"),
        )
        error = message.get("error")
        said = [f"[error] {error.get('message', error) if isinstance(error, dict) else error}"] if error else []
        for part in parts:
            if part_kind(part) in _RESULTS or part_kind(part).endswith("_tool_result"):
                if said:
                    self.message(role, "\n".join(said), name, call)
                    said = []
                self._result(part)
            else:
                said.append(self._written(part))
        if said or not parts:
            self.message(role, "\n".join(said), name, call)

    def trace(
        self,
        id: str,
        meta: Mapping[str, Any],
        problem: str = "",
        labels: Sequence[object] | None = None,
    ) -> Trace:
        """Return the trace of what was read. `problem` is the first message of a user unless it is given, and
        `labels` has the meaning of `Trace.of`. Raises `UserError` if there is no turn of the assistant, or no
        problem."""
        if not self.texts:
            raise UserError("there is no turn of the assistant.", _HINT)
        asked = [one.text.strip() for role in ("user", "system") for one in self._messages if one.role == role]
        problem = problem or next(filter(None, asked), "")
        if not problem:
            raise UserError("there is no message of a user or of the system, which would be the problem.", _HINT)
        context = TraceContext(tuple(self._messages), tuple(self._calls), self._unread)
        judged = {THOUGHT_STEPS: self._thought_steps} if self._thought_steps else {}
        return Trace.of(problem, self.texts, labels, id=id, meta={**meta, **judged}, context=context)

    def _read_turn(self, message: Mapping[str, Any], parts: Sequence[Any], number: int) -> None:
        said: list[str] = []
        calls, results = [], []
        for part in parts:
            kind = part_kind(part)
            if is_thought(part):
                continue
            if kind in _CALLS:
                calls.append(_part_call(part, number))
                # Inspect writes the result of a tool that ran on the model's server into the same part.
                results += [part | {"tool_use_id": part.get("id")}] if "result" in part else []
            elif kind in _RESULTS or kind.endswith("_tool_result"):
                results.append(part)
            else:
                said.append(self._written(part))
        if refusal := optional_text(message, "refusal"):
            said.append(f"[refusal] {refusal}")
        calls += [_call(one, number) for one in _calls(message, number)]
        self.turn("\n".join(filter(None, said)), calls, "\n\n".join(thoughts_of(message, parts)))
        for result in results:
            self._result(result)

    def _result(self, part: Mapping[str, Any]) -> None:
        value = next((part[key] for key in ("content", "response", "result") if part.get(key) is not None), "")
        text = (
            value
            if isinstance(value, str)
            else "\n".join(map(self._written, value))
            if _are_parts(value)
            else written_json(value)
        )
        failed = part.get("is_error") is True
        self.message("tool", f"[error] {text}" if failed else text, None, optional_text(part, "tool_use_id", "id"))

    def _written(self, part: Any) -> str:
        """Return a part of a message's content as text, and count it if it is of any other kind."""
        kind = part_kind(part)
        if not (isinstance(part, str) or _is_text(part) or kind in _NOTED):
            self.leave(Unread.LINE if kind in _ANY_MEDIA else Unread.JSON, [kind or _NO_TYPE])
        return _written(part)


def _is_left(key: str, value: object) -> bool:
    """True if a field of a message has content that is not read."""
    return key not in _READ and key not in _ABOUT and value not in (None, "", [], {}, False)


def _parts(message: Mapping[str, Any], number: int) -> list[Any]:
    """Return the parts of a message's content, which are texts or objects."""
    content = message.get("parts") if isinstance(message.get("parts"), list) else message.get("content")
    if content is None or content == "":
        return []
    parts = content if isinstance(content, list) else [content]
    if not all(isinstance(part, str | dict) for part in parts):
        raise UserError(f"the content of message {number} is {describe(content)}, expected text or parts.", _HINT)
    return parts


def _are_parts(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, str) or (isinstance(one, dict) and part_kind(one)) for one in value
    )


def _is_text(part: Mapping[str, Any]) -> bool:
    kind = part_kind(part)
    return kind in _TEXTS or (not kind and isinstance(part.get("text"), str))


def _written(part: Any) -> str:
    """Return a part of a message's content as text. A part of any other kind becomes a line that names it."""
    if isinstance(part, str):
        return part
    kind = part_kind(part)
    if _is_text(part):
        return first_text(part, "text", "content")
    if kind in _NOTED:
        return f"[{kind}] {first_text(part, *THOUGHTS, 'refusal', 'content', 'text')}"
    if kind in _ANY_MEDIA:
        return f"[{kind}: {_media(part)}]"
    return f"[{kind or _NO_TYPE}] {written_json(part)}"


def _media(part: Mapping[str, Any]) -> str:
    """Describe a picture, sound or file without its data."""
    inner = [one for one in part.values() if isinstance(one, dict)]
    every = [part, *inner]
    about = [one[key] for one in every for key in _TYPES if isinstance(one.get(key), str)]
    for one in every:
        for key in (*_ADDRESSES, *_DATA):
            value = one.get(key)
            if not isinstance(value, str):
                continue
            if value.startswith("data:"):
                head, _, data = value.partition(",")
                about += [head.removeprefix("data:"), f"{len(data):,} characters"]
            elif key in _DATA or len(value) > _LONGEST_ADDRESS:
                about.append(f"{len(value):,} characters")
            else:
                about.append(value)
    return ", ".join(dict.fromkeys(about)) or "nothing more is known"


def _calls(message: Mapping[str, Any], number: int) -> list[Any]:
    calls = message.get("tool_calls")
    if calls is None:
        return [message["function_call"]] if isinstance(message.get("function_call"), dict) else []
    if not isinstance(calls, list):
        raise UserError(f"the calls of message {number} are {describe(calls)}, expected a list.", _HINT)
    return calls


def _call(call: Any, number: int) -> tuple[str, object, str | None]:
    """Return the name, the arguments and the id of an entry of `tool_calls`."""
    if isinstance(call, dict):
        # Under `function` stands an object, or with Inspect the name itself; a custom tool has a key of its own.
        inner = next((call[key] for key in ("function", "custom") if isinstance(call.get(key), dict)), call)
        name = inner.get("function") if isinstance(inner.get("function"), str) else inner.get("name")
        if isinstance(name, str):
            arguments = next((inner[key] for key in ("arguments", "input", "args") if key in inner), None)
            return name, arguments, optional_text(call, "id")
    raise UserError(f"a call of message {number} is {describe(call)} without the name of a tool.", _HINT)


def _part_call(part: Mapping[str, Any], number: int) -> tuple[str, object, str | None]:
    inner = part.get("server_tool_call")
    return _call({**part, **inner, "name": part.get("name")} if isinstance(inner, dict) else dict(part), number)


def _arguments(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else written_json(value)
