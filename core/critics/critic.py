"""A critic used as an evaluator: a chat model on a server that writes a verdict on each step that it sees.

It is asked once offline, once per step online, and once per sub-step in hindsight. A trace gets no judgment if the
verdict on one of its steps cannot be read, or if the server refuses the trace, for example because it exceeds the
model's context. Such a trace counts as not yet judged, so a later run asks the critic about it again.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np

from stepsight.core.arrays import Floats32
from stepsight.core.critics.settings import Message, Preset, Settings, read_settings
from stepsight.core.critics.verdict_parser import (
    READINGS,
    Answer,
    UnreadableError,
    Verdicts,
    read_answer,
    schema,
)
from stepsight.core.errors import UserError
from stepsight.core.inference_servers.address import CRITIC, ServerAddress
from stepsight.core.inference_servers.server import Server, ServerError, gather
from stepsight.core.judgment import Event, Judgment, Mode, NoJudgment, Usage
from stepsight.core.models.evaluator import named
from stepsight.core.models.evaluator_base import ServedEvaluator
from stepsight.core.prompts.encoding import Encoded
from stepsight.core.scores import Hindsight, Outputs, StepScores
from stepsight.core.trace import Label, Trace

# The approximate number of characters per token, in problems and steps.
_CHARACTERS = 3
# The longest rationale in characters.
_LONGEST = 40_000


@dataclass(frozen=True)
class CallEstimate:
    """The estimated number of calls and tokens needed to judge some traces."""

    traces: int = 0
    calls: int = 0
    tokens: int = 0

    def __add__(self, other: "CallEstimate") -> "CallEstimate":
        return CallEstimate(self.traces + other.traces, self.calls + other.calls, self.tokens + other.tokens)


def counts(trace: Trace, mode: Mode) -> tuple[int, ...]:
    """Return the number of sub-steps that each question about a trace shows, in order."""
    if mode == Mode.HINDSIGHT:
        return tuple(range(1, len(trace.substeps) + 1))
    return (len(trace.substeps),) if mode == Mode.OFFLINE else tuple(sorted(set((trace.step_ends + 1).tolist())))


def estimate(preset: Preset, trace: Trace, mode: Mode, samples: int) -> CallEstimate:
    """Estimate the number of calls and tokens needed to judge a trace. The token estimate is based on the number of
    characters and the usual length of the critic's answers per step."""
    shown, texts = counts(trace, mode), trace.substeps
    read = [0, *accumulate(map(len, texts))]
    whole = sum(len(message["content"]) for message in preset.messages(trace.problem, texts))
    tokens = sum((whole - read[-1] + read[count]) // _CHARACTERS + preset.written * count for count in shown)
    return CallEstimate(1, samples * len(shown), samples * tokens)


def judgment(trace: Trace, mode: Mode, answers: Mapping[int, Sequence[Verdicts]], spent: Usage) -> Judgment:
    """Build the judgment of a trace. The probability of a label is its share among the samples.

    `answers` maps the number of sub-steps that a question shows to the readable answers, of which there is at least
    one. It must contain all questions about the trace in this mode.
    """
    size = len(trace.substeps)
    rows: dict[int, Floats32] = {}
    for count, samples in answers.items():
        labels = np.array([verdicts.labels for verdicts in samples])
        rows[count] = np.stack([(labels == label).mean(axis=0) for label in Label], axis=1).astype(np.float32)
    result: StepScores | Hindsight
    if mode == Mode.OFFLINE:
        result = StepScores(rows[size])
    elif mode == Mode.ONLINE:
        result = StepScores(np.stack([rows[end + 1][i] for i, end in enumerate(trace.step_ends.tolist())]))
    else:
        result = Hindsight(tuple(rows[count] for count in range(1, size + 1)))
    return Judgment(trace, mode, result, rationale=_rationale(trace, mode, answers), spent=spent)


def _rationale(trace: Trace, mode: Mode, answers: Mapping[int, Sequence[Verdicts]]) -> str:
    """Write a Markdown paragraph of the critic's reasons for each sub-step.

    In hindsight mode it explains the verdict given when the whole solution was shown. If the verdict was different
    when nothing after the step was shown, a paragraph on that earlier verdict comes first.
    """
    size, paragraphs = len(trace.substeps), []
    for i, end in enumerate(trace.step_ends.tolist()):
        name = f"Step {trace.step_name(i)}"
        last = answers[end + 1 if mode == Mode.ONLINE else size]
        if mode == Mode.HINDSIGHT and _verdict(answers[end + 1], i)[0] != _verdict(last, i)[0]:
            paragraphs.append(_paragraph(f"{name}, before later steps", answers[end + 1], i))
        paragraphs.append(_paragraph(name, last, i))
    text = "\n\n".join(paragraphs)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _paragraph(name: str, samples: Sequence[Verdicts], i: int) -> str:
    label, count = _verdict(samples, i)
    share = f" {count} of {len(samples)}" if len(samples) > 1 else ""
    texts = [verdicts.rationales[i] for verdicts in samples if verdicts.labels[i] == label]
    return f"**{name}: {label.text}{share}.** {next(filter(None, texts), '')}".rstrip()


def _verdict(samples: Sequence[Verdicts], i: int) -> tuple[Label, int]:
    """Return the label that most samples give to sub-step `i`, and the number of these samples. In a tie, the label
    seen first wins."""
    return Counter(verdicts.labels[i] for verdicts in samples).most_common(1)[0]


# The ways to request JSON that follows a schema, in the order in which they are tried; None requests none.
_SCHEMA, _OBJECT = "json_schema", "json_object"
_FORMS: tuple[str | None, ...] = (_SCHEMA, _OBJECT, None)
# Statuses of refusals that may disappear if the request has another form or an option another name.
_REFUSED = (400, 415, 422, 500, 501)
# Statuses of a server that is not ready yet or not running.
_BUSY = (None, 408, 502, 503, 504)
# Statuses whose cause may be the trace itself.
_TOO_LONG = (400, 413, 422)
_MAX_TOKENS, _NEWER = "max_tokens", "max_completion_tokens"
# The question used to probe a server, and the longest answer to it, which need not be complete.
_PROBLEM, _STEP, _PROBE_TOKENS = "What is 2 + 3?", "2 + 3 = 5.", 64

_NOTHING = Usage(0, 0, 0, 0)
# The number of different reasons that are counted separately.
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

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.server = Server(settings.address.url, at_once=settings.requests, seconds=settings.timeout)
        self.tally = Tally()
        self._form: str | None = None
        self._limit, self._seeds = _MAX_TOKENS, True
        self._is_probed = False

    def judge(self, traces: Iterable[Trace], mode: Mode) -> Iterator[tuple[Trace, Judgment | None] | None]:
        """Yield each trace in order, with its judgment or None, and None alone while answers are waited for.
        `tally` records why judgments are missing. Raises `UserError` if the server fails or cannot be reached."""

        async def ask(trace: Trace) -> _Outcome:
            try:
                return await self._judge(trace, mode)
            except ServerError as error:
                if error.status not in _TOO_LONG:
                    raise
                return _Outcome(_NOTHING, reason=f"the server refused it: {error.message}")

        for answered in self.server.stream(self._probe_first(traces), ask):
            if answered is None:
                yield None
                continue
            trace, outcome = answered
            self.tally.spent += outcome.spent
            if outcome.judgment is None:
                self.tally.leave_out(trace, outcome.reason)
            yield trace, outcome.judgment

    def close(self) -> None:
        """Cancel all requests in flight."""
        self.server.close()

    def _probe_first(self, traces: Iterable[Trace]) -> Iterator[Trace]:
        """Yield the traces, probing the server before the first one."""
        for trace in traces:
            if not self._is_probed:
                self.server.run(self._probe())
                self._is_probed = True
            yield trace

    async def _probe(self) -> None:
        """Find out which form of request the server accepts, by asking a test question that reveals nothing about
        the traces."""
        critic = self.settings
        messages = critic.preset.messages(_PROBLEM, [_STEP])
        is_constrained = critic.preset.reading == "verdicts" and critic.schema != "no"
        forms = list(_FORMS if critic.schema == "auto" else _FORMS[:-1]) if is_constrained else [None]
        # A form of request that makes a server fail is not tried again for every trace.
        attempts: int | None = 1
        while True:
            self._form = forms.pop(0)
            body = self._body(messages, 1, 0) | {self._limit: min(_PROBE_TOKENS, critic.max_tokens)}
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
                    f"{self.server.url}: the server's answer to chat/completions is not in OpenAI's format.",
                    "Give the address of its API, which ends in /v1.",
                )
            self.tally.spent += _reply(value)[1]
            return

    async def _judge(self, trace: Trace, mode: Mode) -> _Outcome:
        critic = self.settings
        questions = [(sample, count) for sample in range(critic.samples) for count in counts(trace, mode)]
        replies = await gather(self._ask(trace, count, sample) for sample, count in questions)
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
            # Each sample has its own seed, so that repeating the request gives the same answer.
            body["seed"] = sample
        if self._form is not None:
            verdicts = schema(count)
            # The second form is used by llama-cpp-python and others.
            named = {"type": _SCHEMA, "json_schema": {"name": "verdicts", "strict": True, "schema": verdicts}}
            body["response_format"] = {"type": _OBJECT, "schema": verdicts} if self._form == _OBJECT else named
        return body


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


@dataclass(frozen=True, eq=False, kw_only=True)
class Critic(ServedEvaluator):
    """An evaluator that takes its verdicts from text written by a chat model.

    The probability of a label is its share among several samples of the verdict; with one sample it is 0 or 1. A
    trace gets no judgment if the verdict on a step cannot be read. Such traces are counted in `tally`.
    """

    client: CriticClient
    format: str = CRITIC

    @property
    def fingerprint(self) -> str:
        return self.client.settings.fingerprint

    @property
    def attention(self) -> str:
        return "bidirectional"

    @property
    def context(self) -> int | None:
        """Always None: the limit is unknown, and the server itself refuses inputs that are too long."""
        return None

    @property
    def described(self) -> str:
        settings = self.client.settings
        samples = "asked once" if settings.samples == 1 else f"{settings.samples} samples"
        return (
            f"{self.name}: a critic by the preset {settings.preset_name} (version {settings.preset.version}), "
            f"{samples} at temperature {settings.temperature:g}; each step is judged with all steps in view."
        )

    @property
    def tally(self) -> Tally:
        return self.client.tally

    def encode(self, trace: Trace) -> Encoded:
        empty = np.zeros(0, np.int64)
        return Encoded(empty, empty, empty)

    def tokens(self, trace: Trace, encoded: Encoded, mode: Mode) -> int:
        return self.estimate(trace, mode).tokens

    def estimate(self, trace: Trace, mode: Mode) -> CallEstimate:
        """Estimate the number of calls and tokens needed to judge a trace."""
        return estimate(self.client.settings.preset, trace, mode, self.client.settings.samples)

    def judge_all(self, encoded: Iterable[tuple[Trace, Encoded]], mode: Mode) -> Iterator[Event]:
        """Like `ServedEvaluator.judge_all`, with a `NoJudgment` for a trace that gets none."""
        for judged in self.client.judge((trace for trace, _ in encoded), mode):
            if judged is None:
                yield None
                continue
            trace, judgment = judged
            if judgment is None:
                error = UserError(
                    f"{self.name} gave no readable verdict on {named(trace)} ({self.tally.last}).",
                    "Score it again, or use stepsight score, which leaves such traces out.",
                )
                yield NoJudgment(trace, error)
            else:
                yield judgment


def open_critic(address: ServerAddress) -> Critic:
    """Open the critic at an address. The server is not contacted before the first trace is judged. Raises
    `UserError` if an option is unknown, a value is invalid, or the key in the environment is invalid."""
    settings = read_settings(address)
    three_way = READINGS[settings.preset.reading].three_way
    return Critic(
        name=settings.name,
        outputs=Outputs.THREE_WAY if three_way else Outputs.VALIDITY,
        client=CriticClient(settings),
    )
