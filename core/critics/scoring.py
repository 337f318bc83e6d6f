"""Asking a critic about traces, and turning its answers into judgments.

A trace gets no judgment if the verdict on one of its steps cannot be read, or if the server refuses the trace, for
example because it exceeds the model's context. Such a trace counts as not yet judged, so a later run asks the
critic about it again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from stepsight.core.critics.critic_prompts import counts, judgment
from stepsight.core.critics.presets import OWN, Message
from stepsight.core.critics.settings import Settings
from stepsight.core.critics.verdict_parser import (
    Answer,
    UnreadableError,
    Verdicts,
    read_answer,
    schema,
)
from stepsight.core.errors import never_cancel
from stepsight.core.inference_servers.server import Server, ServerError, together
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.trace import Trace

Check = Callable[[], None]

# The ways to ask a server for JSON of a schema, in the order of trial; None asks for none.
_SCHEMA, _OBJECT = "json_schema", "json_object"
_FORMS: tuple[str | None, ...] = (_SCHEMA, _OBJECT, None)
# Refusals that may disappear if the request has another form, or an option another name.
_REFUSED = (400, 415, 422, 500, 501)
# Statuses of a server that is not ready yet, or not there.
_BUSY = (None, 408, 502, 503, 504)
# Statuses for which the trace itself can be the reason.
_TOO_LONG = (400, 413, 422)
_MAX_TOKENS, _NEWER = "max_tokens", "max_completion_tokens"
# The question that probes a server, and the longest answer to it, which need not be complete.
_PROBLEM, _STEP, _TRIED = "What is 2 + 3?", "2 + 3 = 5.", 64

_NOTHING = Usage(0, 0, 0, 0)
# The number of different reasons that are kept apart.
_REASONS = 8


@dataclass(frozen=True)
class _Outcome:
    """The outcome for one trace: a judgment, or the reason why there is none, and the cost in `spent`."""

    spent: Usage
    judgment: Judgment | None = None
    reason: str = ""


@dataclass
class Tally:
    """The cost of a critic's judgments, and counts of the traces that got no judgment.

    `spent` is the cost of all calls, including failed ones. `silent` maps each reason for a missing judgment to the
    number of traces affected and the id of the first such trace. `last` is the most recent reason.
    """

    spent: Usage = _NOTHING
    silent: dict[str, tuple[int, str]] = field(default_factory=dict)
    last: str = ""

    @property
    def unread(self) -> int:
        """The number of traces that got no judgment."""
        return sum(count for count, _ in self.silent.values())

    def leave_out(self, trace: Trace, reason: str) -> None:
        """Count a trace that got no judgment, under the given reason."""
        self.last = reason
        count, first = self.silent.get(reason, (0, trace.id))
        if reason in self.silent or len(self.silent) < _REASONS:
            self.silent[reason] = count + 1, first
        else:
            self.leave_out(trace, next(reversed(self.silent)))


class CriticClient:
    """A client that asks a server about traces and counts calls and missing judgments in `tally`. Several threads
    can use a client at once; they share the tally."""

    def __init__(self, settings: Settings, server: Server | None = None) -> None:
        self.settings = settings
        self.server = server or Server(settings.address.url, at_once=settings.requests, seconds=settings.timeout)
        self.tally = Tally()
        self._form: str | None = None
        self._limit, self._seeds = _MAX_TOKENS, True
        self._is_tried = False

    def judge(
        self, traces: Iterable[Trace], mode: Mode, check: Check = never_cancel
    ) -> Iterator[tuple[Trace, Judgment | None]]:
        """Yield each trace in order, with its judgment or None. `tally` records why judgments are missing.

        An exception raised by `check` ends the work. Raises `UserError` if the server fails or cannot be reached.
        """

        async def ask(trace: Trace) -> _Outcome:
            try:
                return await self._judge(trace, mode)
            except ServerError as error:
                if error.status not in _TOO_LONG:
                    raise
                return _Outcome(_NOTHING, reason=f"it was refused: {error.message}")

        for trace, outcome in self.server.ordered(self._tried(traces), ask, check):
            self.tally.spent += outcome.spent
            if outcome.judgment is None:
                self.tally.leave_out(trace, outcome.reason)
            yield trace, outcome.judgment

    def close(self) -> None:
        """Cancel all requests in flight."""
        self.server.close()

    def _tried(self, traces: Iterable[Trace]) -> Iterator[Trace]:
        """Yield the traces, probing the server before the first one."""
        for trace in traces:
            if not self._is_tried:
                self.server.now(self._try())
                self._is_tried = True
            yield trace

    async def _try(self) -> None:
        """Find out which form of request the server accepts, by asking a test question that reveals nothing about
        the traces."""
        critic = self.settings
        messages = critic.preset.messages(_PROBLEM, [_STEP])
        wanted = critic.preset_name == OWN and critic.schema != "no"
        forms = list(_FORMS if critic.schema == "auto" else _FORMS[:-1]) if wanted else [None]
        # A form that makes a server fail is not tried again and again.
        attempts: int | None = 1
        while True:
            self._form = forms.pop(0)
            body = self._body(messages, 1, 0) | {self._limit: min(_TRIED, critic.max_tokens)}
            try:
                value = await self.server.post("chat/completions", body, attempts if forms else None)
            except ServerError as error:
                if error.status in _REFUSED and self._limit == _MAX_TOKENS and _NEWER in error.message:
                    self._limit, forms = _NEWER, [self._form, *forms]
                elif error.status in _REFUSED and "seed" in body and "seed" in error.message:
                    self._seeds, forms = False, [self._form, *forms]
                elif error.status in _BUSY and attempts == 1 and forms:
                    attempts, forms = None, [self._form, *forms]
                elif error.status not in _REFUSED or not forms:
                    raise
                continue
            if not (isinstance(value, dict) and isinstance(value.get("choices"), list)):
                raise ServerError(
                    f"{self.server.url}: the server answers chat/completions with JSON of another shape, expected "
                    "OpenAI's chat completions.",
                    "Give the address of its interface, which ends in /v1.",
                )
            self.tally.spent += _reply(value)[1]
            return

    async def _judge(self, trace: Trace, mode: Mode) -> _Outcome:
        critic = self.settings
        questions = [(sample, count) for sample in range(critic.samples) for count in counts(trace, mode)]
        replies = await together(self._ask(trace, count, sample) for sample, count in questions)
        readable: dict[int, list[Verdicts]] = {}
        spent, reason = _NOTHING, ""
        for (_, count), (answer, cost) in zip(questions, replies, strict=True):
            spent += cost
            try:
                readable.setdefault(count, []).append(read_answer(critic.preset.reading, answer, count))
            except UnreadableError as error:
                spent += Usage(0, 1, 0, 0)
                reason = str(error)
        if not all(readable.values()):
            return _Outcome(spent, reason=reason)
        return _Outcome(spent, judgment(trace, mode, readable, spent))

    async def _ask(self, trace: Trace, count: int, sample: int) -> tuple[Answer, Usage]:
        messages = self.settings.preset.messages(trace.problem, trace.substeps[:count])
        return _reply(await self.server.post("chat/completions", self._body(messages, count, sample)))

    def _body(self, messages: Sequence[Message], count: int, sample: int) -> dict[str, Any]:
        """Return the request body for one answer about `count` steps."""
        critic = self.settings
        body: dict[str, Any] = {
            "model": critic.address.model,
            "messages": messages,
            "temperature": critic.temperature,
            self._limit: critic.max_tokens,
        }
        if critic.preset.top_p < 1:
            body["top_p"] = critic.preset.top_p
        if critic.preset.stop:
            body["stop"] = critic.preset.stops(count)
        if critic.temperature > 0 and self._seeds:
            # Another one for each sample, and the same when it is asked again.
            body["seed"] = sample
        if self._form is not None:
            body["response_format"] = _response_format(self._form, count)
        return body


def _response_format(form: str, count: int) -> dict[str, Any]:
    wanted = schema(count)
    if form == _OBJECT:
        # As llama-cpp-python and others have it.
        return {"type": _OBJECT, "schema": wanted}
    return {"type": _SCHEMA, "json_schema": {"name": "verdicts", "strict": True, "schema": wanted}}


def _reply(value: object) -> tuple[Answer, Usage]:
    """Parse a response in OpenAI's format, and return the answer and its cost. The answer is empty if the response
    has any other format."""
    usage = value.get("usage") if isinstance(value, dict) else None
    spent = Usage(1, 0, _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))
    choices = value.get("choices") if isinstance(value, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        return Answer(""), spent
    thinking = message.get("reasoning_content") or message.get("reasoning")
    ended = str(choice.get("finish_reason")).lower() not in ("length", "max_tokens", "content_filter")
    return Answer(_text(message.get("content")), _text(thinking), is_cut=not ended), spent


def _text(value: object) -> str:
    """Return the text of a message's content, given as a string or a list of parts, or "" for anything else."""
    if isinstance(value, list):
        texts = [part.get("text") for part in value if isinstance(part, dict)]
        return "".join(text for text in texts if isinstance(text, str))
    return value if isinstance(value, str) else ""


def _count(usage: object, name: str) -> int | None:
    value = usage.get(name) if isinstance(usage, dict) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None
