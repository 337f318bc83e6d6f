"""The context of an agent's trace: the messages between its steps that are not judged, and the calls of its steps.

A step of an agent is a turn of the assistant: its text, and then the calls of tools that it makes, each on a line
of its own. The messages in between, from the system, users and tools, are not steps. They are stored in the order
of the source, and show what each step could rest on.

    {"messages": [{"before": 1, "role": "user", "text": "When was …?"},
                  {"before": 2, "role": "tool", "text": "{\"result\": …}", "name": "search", "call": "call_1"}],
     "calls": [{"step": 1, "name": "search", "arguments": "{\"query\": \"…\"}", "id": "call_1"}]}

`before` and `step` count steps from 1; for a message after the last step, `before` is the next number.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from typing import Any

from stepsight.core.errors import UserError

THOUGHT = "thought"
"""The role of a model's thoughts before its turn. Evaluators do not read it."""

EMPTY_TURN = "(an empty turn)"
"""The text of a step whose turn has neither a text nor a call."""

LONGEST_RESULT = 2_000
"""The most characters of a tool's result that an evaluator reads."""

_TOOL = "tool"
# What is read of a longer result: most of it from its beginning.
_HEAD, _TAIL = 1_500, 500
_SHORTENED = re.compile(rf".{{{_HEAD}}}\n\[… [0-9,]+ characters left out …\]\n.{{{_TAIL}}}", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ContextMessage:
    """A message before the step with the 0-based index `before`, which is the number of steps if it follows the
    last one.

    `role` is system, user, tool, thought, or whatever else the source calls it. `name` is the name of a tool or a
    speaker, and `call` is the id of the call that a tool's result answers.
    """

    before: int
    role: str
    text: str
    name: str | None = None
    call: str | None = None

    @property
    def heading(self) -> str:
        """The role, with the name of the tool or speaker if there is one: `tool search`."""
        return f"{self.role} {self.name}" if self.name else self.role


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool in the step with the 0-based index `step`. `arguments` is the JSON text from the source,
    which may be invalid."""

    step: int
    name: str
    arguments: str
    id: str | None = None

    @property
    def line(self) -> str:
        """The call as it is written in the text of its step."""
        return f"{self.name}({self.arguments})"

    @property
    def code(self) -> str:
        """The arguments as indented JSON, or as the source has them if they are not JSON."""
        try:
            return json.dumps(json.loads(self.arguments), indent=2, ensure_ascii=False)
        except (ValueError, RecursionError):
            return self.arguments

    @property
    def is_broken(self) -> bool:
        """True if the arguments are not JSON."""
        try:
            json.loads(self.arguments)
        except (ValueError, RecursionError):
            return True
        return False


@dataclass(frozen=True)
class TraceContext:
    """The messages and the calls of a trace, each in the order of the source.

    For a trace that has just been read from a log, `unread` counts the parts of the log that are not text, such as
    pictures (see `storage.importers.agents.unread`). It is not stored.
    """

    messages: tuple[ContextMessage, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    unread: Mapping[tuple[str, str], int] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "TraceContext":
        """Rebuild a context from what `to_dict` returned. Raises `UserError` if a key is unknown, or if a value is
        missing or has the wrong type."""
        _check_keys(values, "the context", "has", ("messages", "calls"))
        messages = [
            ContextMessage(
                _number(one, "before"), _text(one, "role"), _text(one, "text"), *_texts(one, "name", "call")
            )
            for one in _entries(values, "messages", "before", "role", "text", "name", "call")
        ]
        calls = [
            ToolCall(_number(one, "step"), _text(one, "name"), _text(one, "arguments"), *_texts(one, "id"))
            for one in _entries(values, "calls", "step", "name", "arguments", "id")
        ]
        return cls(tuple(messages), tuple(calls))

    def to_dict(self) -> dict[str, Any]:
        """Return the context as JSON, without the fields that a message or call does not have."""
        return {
            "messages": [_entry(one, "before") for one in self.messages],
            "calls": [_entry(one, "step") for one in self.calls],
        }

    def check_steps(self, count: int) -> None:
        """Raise `UserError` if a message or a call refers to a step that a trace of `count` steps does not have."""
        steps = f"{count} {'step' if count == 1 else 'steps'}"
        last = max((one.before for one in self.messages), default=0)
        if last > count:
            raise UserError(
                f"the trace has {steps}, and its context a message before step {last + 1}.",
                f"A message behind the last step stands before {count + 1}.",
            )
        last = max((one.step for one in self.calls), default=0)
        if last >= count:
            raise UserError(
                f"the trace has {steps}, and its context a call in step {last + 1}.", "Steps are counted from 1."
            )

    def before(self, step: int) -> tuple[ContextMessage, ...]:
        """Return the messages before the step with this 0-based index."""
        return tuple(self._by_step.get(step, ()))

    @cached_property
    def _by_step(self) -> dict[int, list[ContextMessage]]:
        # Every step of a long trace is asked about.
        found: dict[int, list[ContextMessage]] = {}
        for one in self.messages:
            found.setdefault(one.before, []).append(one)
        return found

    def calls_of(self, step: int) -> tuple[ToolCall, ...]:
        """Return the calls of the step with this 0-based index."""
        return tuple(one for one in self.calls if one.step == step)

    def without(self, step: int) -> "TraceContext":
        """Return the context of the trace without the step with this 0-based index. The messages on both sides of
        that step then precede the next one."""
        messages = (replace(one, before=one.before - (one.before > step)) for one in self.messages)
        calls = (replace(one, step=one.step - (one.step > step)) for one in self.calls if one.step != step)
        return TraceContext(tuple(messages), tuple(calls))

    def part(self, start: int, stop: int) -> "TraceContext":
        """Return the context of the steps from the 0-based index `start` to the one before `stop`."""
        return TraceContext(
            tuple(replace(one, before=one.before - start) for one in self.messages if start <= one.before < stop),
            tuple(replace(one, step=one.step - start) for one in self.calls if start <= one.step < stop),
        )

    def read_before(self, step: int, problem: str) -> str:
        """Return the context that an evaluator reads before the step with this 0-based index, or "" if there is
        none.

        Each message has its role and name as a heading. A tool's result is shortened by `shortened`. Thoughts are
        left out, and so is a message that only repeats the problem, which is read before the first step anyway.
        """
        return "\n\n".join(f"[{one.heading}]\n{one.text}" for one in _as_read(self.before(step), problem))

    def as_read(self, problem: str) -> "TraceContext":
        """Return the part of the context that evaluators read, as they read it: a trace with this part is judged as
        with the whole context. Calls are in the text of their steps."""
        return TraceContext(tuple(_as_read(self.messages, problem)))


def _as_read(messages: Sequence[ContextMessage], problem: str) -> list[ContextMessage]:
    return [
        replace(one, text=shortened(one.text)) if one.role == _TOOL else one
        for one in messages
        if one.role != THOUGHT and one.text.strip() != problem.strip()
    ]


def shortened(text: str) -> str:
    """Return a tool's result as evaluators read it. If it has more than `LONGEST_RESULT` characters, only the first
    1,500 and the last 500 are kept, with the number of omitted characters between them. A result that is already
    shortened in this way is returned unchanged."""
    if len(text) <= LONGEST_RESULT or _SHORTENED.fullmatch(text):
        return text
    return f"{text[:_HEAD]}\n[… {len(text) - _HEAD - _TAIL:,} characters left out …]\n{text[-_TAIL:]}"


def ahead_of_step(context: str) -> str:
    """Return the text that a prompt template puts before a step, given the result of `read_before`."""
    return f"{context}\n\n" if context else ""


def in_tags(context: str) -> str:
    """Return the text that a critic's question puts before a step, given the result of `read_before`."""
    return f"<context>\n{context}\n</context>\n" if context else ""


@cache
def reading_mark() -> str:
    """Return six hexadecimal digits that stand for the rule by which evaluators read a context.

    They are a hash of a fixed context as evaluators read it, so they change whenever the rule does. The rule is not
    part of an evaluator's fingerprint, because it changes no judgment of a trace without a context.
    """
    long = "".join(chr(ord("a") + i % 26) for i in range(10 * LONGEST_RESULT))
    messages = [
        ("system", long, None),
        ("user", "q", None),
        (THOUGHT, "t", None),
        (_TOOL, long, "f"),
        ("x", "", "n"),
    ]
    probe = TraceContext(tuple(ContextMessage(0, *one) for one in messages))
    read = probe.read_before(0, "q")
    return hashlib.sha256((ahead_of_step(read) + in_tags(read)).encode()).hexdigest()[:6]


def turn_text(text: str, calls: Sequence[ToolCall]) -> str:
    """Return the text of a step for a turn of the assistant: its text, unchanged, then a line for each call. A turn
    without calls or visible text ends in `EMPTY_TURN`."""
    if not calls:
        return text if text.strip() else text + EMPTY_TURN
    return "\n".join([*([text] if text else []), *(one.line for one in calls)])


def said_text(text: str, calls: Sequence[ToolCall]) -> str:
    """Return the text of a step without the lines of its calls. If it does not end with them, it is returned
    unchanged."""
    ending = "\n".join(one.line for one in calls)
    return text[: len(text) - len(ending)].removesuffix("\n") if ending and text.endswith(ending) else text


def _entry(one: ContextMessage | ToolCall, place: str) -> dict[str, Any]:
    values = {key: value for key, value in asdict(one).items() if value is not None}
    return values | {place: values[place] + 1}


def _entries(values: Mapping[str, Any], key: str, *known: str) -> list[dict[str, Any]]:
    found = values.get(key, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise UserError(f"{key} of the context is no list of objects.", f"Give each the keys {', '.join(known)}.")
    for one in found:
        _check_keys(one, f"{key} of the context", "have", known)
    return found


def _check_keys(values: Mapping[str, Any], what: str, have: str, known: Sequence[str]) -> None:
    unknown = next((key for key in values if key not in known), None)
    if unknown is not None:
        raise UserError(f"{what} {have} a key {unknown!r:.40}.", f"The keys are {', '.join(known)}.")


def _number(one: Mapping[str, Any], key: str) -> int:
    value = one.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise UserError(
            f"{key} in the context is {value!r:.40}, expected the number of a step.", "Steps are counted from 1."
        )
    return value - 1


def _text(one: Mapping[str, Any], key: str) -> str:
    value = one.get(key)
    if not isinstance(value, str):
        raise UserError(f"{key} in the context is {value!r:.40}, expected text.", "A text may be empty.")
    return value


def _texts(one: Mapping[str, Any], *keys: str) -> list[str | None]:
    return [None if one.get(key) is None else _text(one, key) for key in keys]
