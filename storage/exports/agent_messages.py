"""An agent's trace as messages in OpenAI's form: the way back from `storage.importers.agents`."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from stepsight.core.context import EMPTY_TURN, THOUGHT, ContextMessage, ToolCall, TraceContext, said_text
from stepsight.core.label import LABEL_NAMES
from stepsight.core.trace import Trace

Message = dict[str, Any]


def chat_messages(trace: Trace) -> tuple[list[Message], list[int]]:
    """Return the messages of a trace in order, and for each step the 0-based index of its message.

    A trace without a context becomes a user's message with the problem, and a message for each step.
    """
    context = trace.context or TraceContext((ContextMessage(0, "user", trace.problem),))
    before: defaultdict[int, list[ContextMessage]] = defaultdict(list)
    calls: defaultdict[int, list[ToolCall]] = defaultdict(list)
    for one in context.messages:
        before[one.before].append(one)
    for call in context.calls:
        calls[call.step].append(call)
    messages: list[Message] = []
    places: list[int] = []
    for number, step in enumerate(trace.steps):
        messages += [_message(one) for one in before[number] if one.role != THOUGHT]
        places.append(len(messages))
        thoughts = [one.text for one in before[number] if one.role == THOUGHT]
        messages.append(_turn(said_text(step.text, calls[number]), calls[number], thoughts))
    return messages + [_message(one) for one in before[len(trace.steps)]], places


def labelled_messages(trace: Trace, labels: Sequence[str | None]) -> tuple[list[Message], dict[str, int | None]]:
    """Return the messages of a trace, and the labels of its steps as AgentProcessBench has them: -1, 0 or 1, by the
    index of the message. The label of a step without one of neg, neu and pos is None."""
    messages, places = chat_messages(trace)
    numbers = [LABEL_NAMES.index(label) - 1 if label in LABEL_NAMES else None for label in labels]
    return messages, {str(place): number for place, number in zip(places, numbers, strict=True)}


def _message(one: ContextMessage) -> Message:
    values = {"role": one.role, "name": one.name, "content": one.text, "tool_call_id": one.call}
    return {key: value for key, value in values.items() if value is not None}


def _turn(text: str, calls: list[ToolCall], thoughts: list[str]) -> Message:
    nothing = text.removesuffix(EMPTY_TURN)
    turn: Message = {"role": "assistant", "content": text if nothing.strip() or calls else nothing}
    if thoughts:
        turn["reasoning_content"] = "\n\n".join(thoughts)
    if calls:
        turn["tool_calls"] = [
            ({} if call.id is None else {"id": call.id})
            | {"type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in calls
        ]
    return turn
