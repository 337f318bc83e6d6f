"""Spans of OpenTelemetry's conventions for generative AI, as OTLP writes them in JSON (`stepsight import otel`).

    {"resourceSpans": [{"scopeSpans": [{"spans": [
      {"traceId": "5b8e…", "spanId": "eee1…", "startTimeUnixNano": "1544712660300000000", "attributes": [
        {"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}},
        {"key": "gen_ai.input.messages", "value": {"stringValue":
           "[{\"role\": \"user\", \"parts\": [{\"type\": \"text\", \"content\": \"…\"}]}]"}},
        {"key": "gen_ai.output.messages", "value": {"stringValue": "[{\"role\": \"assistant\", …}]"}}]}]}]}]}

A line holds the spans that were sent together, so that a file is read to its end and held in memory before the
first trace. Each call of a model has the whole conversation so far as `gen_ai.input.messages`, and its turn as
`gen_ai.output.messages`; both may be a JSON text or values. The last call of a conversation becomes the trace: a
call whose messages are the beginning of a later call's belongs to the same conversation. A system prompt may be in
`gen_ai.system_instructions`, and results that no later call received come from the spans `execute_tool`.

Earlier versions of the conventions wrote one event on the span for each message: `gen_ai.system.message`,
`gen_ai.user.message`, `gen_ai.assistant.message`, `gen_ai.tool.message`, and `gen_ai.choice` for the turn; or two,
`gen_ai.content.prompt` and `gen_ai.content.completion`, with all messages. Events are read from spans without other
messages. The messages may also be in the event `gen_ai.client.inference.operation.details`.

The id is the trace id, followed by the span id if the trace has several conversations. The model, the agent and the
name of the conversation are kept as metadata. Spans of other kinds have no messages; they are skipped and counted.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.storage.importers.agents.turns import Turns
from stepsight.storage.importers.agents.unread import Unread
from stepsight.storage.importers.rows.fields import ASIDE, describe, field, located, text
from stepsight.storage.importers.rows.kind import FileKind, OnBad, Row, Rows, choosing_thoughts, json_rows

_SPANS = "resourceSpans"
_INPUT, _OUTPUT, _SYSTEM = "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions"
_TOOL_NAME, _TOOL_ID, _TOOL_RESULT = "gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.tool.call.result"
_KEPT = (
    "gen_ai.request.model",
    "gen_ai.response.model",
    "gen_ai.provider.name",
    "gen_ai.agent.name",
    "gen_ai.conversation.id",
)
_DETAILS, _CHOICE = "gen_ai.client.inference.operation.details", "gen_ai.choice"
# Events with all messages of a call at once, and the attribute that they have them under.
_WHOLE = {"gen_ai.content.prompt": "gen_ai.prompt", "gen_ai.content.completion": "gen_ai.completion"}
_MESSAGE = re.compile(r"gen_ai\.(system|user|assistant|tool)\.message")
_NESTED = ("message", "tool_calls", "parts")
# The digits of an unsigned number of 64 bits.
_LONGEST_TIME = 20
_HINT = "Record the contents of messages, as the conventions describe it for gen_ai.input.messages."


def rows(lines: Iterable[bytes], name: str, on_bad: OnBad | None = None) -> Rows:
    """Yield (where, row) for each conversation of a file, and for each row that holds no spans. Raises `UserError`
    if no span has messages."""
    spans: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    number = 0
    for where, row in json_rows(lines, name, on_bad):
        if _SPANS not in row:
            number += 1
            yield where, row
            continue
        with located(where):
            for span in _spans(row):
                spans[str(span.get("traceId"))].append(_plain(span))
    for trace_id, every in spans.items():
        conversations = _conversations(every)
        for span in conversations:
            number += 1
            id = trace_id if len(conversations) == 1 else f"{trace_id}/{span.get('spanId')}"
            results = [one for one in every if one["attributes"].get(_TOOL_RESULT) is not None]
            passed = [_kind_of(one) for one in every if not _has_messages(one) and one not in results]
            row = {"id": id, "span": span, "results": results, "passed": passed if span is conversations[0] else []}
            yield f"{name} row {number}", row
    if not number:
        raise UserError(f"{name}: no span has messages of a model.", _HINT)


def parse(row: Row, where: str, thoughts: str = ASIDE) -> Trace:
    """Parse a conversation. Raises `UserError` if a message has any other form, or if there is no turn."""
    with located(where):
        attributes = field(row, "span")["attributes"]
        turns = Turns(thoughts)
        if instructions := attributes.get(_SYSTEM):
            turns.read({"role": "system", "content": instructions}, 0)
        messages = [*_messages(attributes, _INPUT), *_messages(attributes, _OUTPUT)]
        for number, message in enumerate(messages, start=1):
            turns.read(message, number)
        for result in row["results"]:
            values = result["attributes"]
            if str(values.get(_TOOL_ID)) in turns.unanswered:
                part = {
                    "type": "tool_call_response",
                    "id": values[_TOOL_ID],
                    "response": _decoded(values[_TOOL_RESULT]),
                }
                turns.read({"role": "tool", "name": values.get(_TOOL_NAME), "parts": [part]}, 0)
        turns.leave(Unread.SPAN, row["passed"])
        return turns.trace(text(row, "id"), {key: attributes[key] for key in _KEPT if key in attributes})


def _spans(row: Row) -> Iterator[dict[str, Any]]:
    """Yield the spans of a line. Raises `UserError` if the line has any other form."""
    for resource in _listed(row, _SPANS):
        for scope in _listed(resource, "scopeSpans"):
            yield from _listed(scope, "spans")


def _listed(values: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    found = values.get(key, [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise UserError(
            f"{key} is {describe(found)}, expected a list of objects.", "Export the spans as OTLP's JSON."
        )
    return found


def _plain(span: dict[str, Any]) -> dict[str, Any]:
    """Return a span with its attributes as an object of plain values, and its start in nanoseconds."""
    attributes = {str(one.get("key")): _value(one.get("value")) for one in _listed(span, "attributes")}
    if not attributes.get(_INPUT) and not attributes.get(_OUTPUT):
        attributes |= _of_events(_listed(span, "events"))
    return span | {"start": _start(span), "attributes": attributes}


def _of_events(events: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the messages of a span's events under the names of today's attributes for them. Empty if there are
    none."""
    sent: list[Any] = []
    made: list[Any] = []
    for event in events:
        name = str(event.get("name"))
        values = {str(one.get("key")): _value(one.get("value")) for one in _listed(event, "attributes")}
        if name == _DETAILS:
            return {key: value for key, value in values.items() if key in (_INPUT, _OUTPUT, _SYSTEM)}
        if name in _WHOLE:
            told = _decoded(values.get(_WHOLE[name]))
            (made if name.endswith("completion") else sent).extend(told if isinstance(told, list) else [])
        elif name == _CHOICE or _MESSAGE.fullmatch(name):
            (made if name == _CHOICE else sent).append(_message(name, values))
    return {key: messages for key, messages in ((_INPUT, sent), (_OUTPUT, made)) if messages}


def _message(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message of an event. In a choice, it is under `message`, or beside the finish reason."""
    known = {key: _decoded(value) if key in _NESTED else value for key, value in values.items()}
    inner = known.pop("message", None) if name == _CHOICE else None
    message = known | (inner if isinstance(inner, dict) else {} if inner is None else {"content": inner})
    found = _MESSAGE.fullmatch(name)
    message["role"] = message.get("role") or (found[1] if found else "assistant")
    if message["role"] == "tool" and "tool_call_id" not in message:
        message["tool_call_id"] = message.get("id")
    return {key: value for key, value in message.items() if not key.startswith("gen_ai.")}


def _value(value: Any) -> Any:
    """Return a value of OTLP as the plain value that it wraps."""
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("arrayValue"), dict):
        return list(map(_value, _listed(value["arrayValue"], "values")))
    if isinstance(value.get("kvlistValue"), dict):
        return {str(one.get("key")): _value(one.get("value")) for one in _listed(value["kvlistValue"], "values")}
    return next(iter(value.values()), None)


def _conversations(spans: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the last span of each conversation, in the order of their start. The messages of its earlier spans are
    the beginning of the last one's."""
    models = list(filter(_has_messages, spans))
    models.sort(key=lambda span: span["start"])
    kept: list[dict[str, Any]] = []
    begun: list[list[str]] = []
    # From the last one on: what is the beginning of one that is kept is the same conversation, earlier.
    for span in reversed(models):
        keys = [_key(one) for name in (_INPUT, _OUTPUT) for one in _messages(span["attributes"], name)]
        if not any(other[: len(keys)] == keys for other in begun):
            kept.append(span)
            begun.append(keys)
    return kept[::-1]


def _has_messages(span: Mapping[str, Any]) -> bool:
    return bool(span["attributes"].get(_INPUT) or span["attributes"].get(_OUTPUT))


def _kind_of(span: Mapping[str, Any]) -> str:
    """Return the operation of a span as the conventions name it, or a phrase that says that there is none."""
    operation = span["attributes"].get("gen_ai.operation.name")
    return operation if isinstance(operation, str) and operation else "no operation of a model"


def _start(span: Mapping[str, Any]) -> int:
    """Return when a span began, in nanoseconds. Raises `UserError` if it is not a time."""
    start = span.get("startTimeUnixNano", 0)
    if isinstance(start, bool) or not str(start).isdecimal() or len(str(start)) > _LONGEST_TIME:
        raise UserError(
            f"startTimeUnixNano is {describe(start)}, expected nanoseconds.", "Export the spans as OTLP's JSON."
        )
    return int(start)


def _key(message: Any) -> str:
    """Return a key that is equal for equal messages. It ignores the finish reason, which an answer loses when it is
    sent."""
    known = (
        {key: value for key, value in message.items() if key != "finish_reason"}
        if isinstance(message, dict)
        else message
    )
    return json.dumps(known, sort_keys=True)


def _messages(attributes: Mapping[str, Any], key: str) -> list[Any]:
    value = _decoded(attributes.get(key))
    return value if isinstance(value, list) else []


def _decoded(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value


KIND = choosing_thoughts(
    FileKind(
        name="otel",
        title="agents' conversations in spans of OpenTelemetry's GenAI conventions",
        fields=frozenset({_SPANS}),
        parse=parse,
        rows=rows,
    ),
    parse,
)
