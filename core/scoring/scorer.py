"""The scorer, which turns traces into judgments in one of three modes. It also scores inputs with a common prefix:
candidates for the next step of an unfinished solution, and a solution with each of its steps left out.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count, islice

import numpy as np

from stepsight.core.arrays import Floats32
from stepsight.core.errors import UserError, located
from stepsight.core.evidence import LeaveOneOut, shortened
from stepsight.core.judgment import Event, Judgment, Mode, NoJudgment, Skip, StepScore, judgments_of
from stepsight.core.models.evaluator import ModelEvaluator
from stepsight.core.models.evaluator_base import BatchEvaluator, Evaluator, RuleEvaluator
from stepsight.core.prompts.encoding import Encoded, Window
from stepsight.core.scores import StepScores
from stepsight.core.scoring.forward import (
    Forward,
    Input,
    PaddedForward,
    call_inputs,
    last_in_view,
    mode_inputs,
    prefixes,
    run_all,
    takes_one_pass,
    tokens_of,
    trace_scores,
    verdicts,
)
from stepsight.core.scoring.packed import PackedForward
from stepsight.core.scoring.prefixes import shared
from stepsight.core.scoring.scorer_base import AbstractScorer, left_out_scores
from stepsight.core.trace import Label, Trace, check_candidates


class Scorer(AbstractScorer):
    """A scorer of traces with one evaluator.

    A causal evaluator needs one pass per trace, whatever the mode. A bidirectional evaluator needs one pass per
    prefix online and in hindsight; in hindsight, each pass fills one row of the hindsight matrix. Equal inputs
    within a window of traces are run only once. Several threads can use a scorer at once.
    """

    def __init__(self, evaluator: Evaluator, forward: Forward | None = None, window: int | None = None) -> None:
        """Create a scorer. `forward` is the forward pass of a model; by default, the fastest one is chosen.

        `window` is the number of traces that are processed together. Raises `TypeError` unless the evaluator is a
        model, a set of rules, or judges many traces at once.
        """
        if not isinstance(evaluator, ModelEvaluator | RuleEvaluator | BatchEvaluator):
            raise TypeError(f"{type(evaluator).__name__} cannot be scored with")
        self.evaluator: Evaluator = evaluator
        self._next: NextSteps | None = None
        if isinstance(evaluator, ModelEvaluator):
            forward = forward or fastest_forward(evaluator)
            if evaluator.reading.window is None:
                self._next = NextSteps(evaluator, forward)
        self.forward = forward
        # Padded batches need many inputs of similar length; other passes gain nothing from a long wait.
        self.window = window or (256 if isinstance(forward, PaddedForward) else 16)

    def score(
        self, traces: Iterable[Trace], mode: Mode | str = Mode.OFFLINE, on_skip: Skip | None = None
    ) -> Iterator[Judgment]:
        """Yield a judgment for each trace, in input order.

        At most `window` traces are in memory at a time; with a server, a few for each concurrent request. In
        float32, a trace's results depend on the other traces by at most 1e-5. Raises `UserError` if a trace is
        longer than the evaluator's context, or if a critic writes no verdict on it that can be read; if `on_skip`
        is given, the trace is skipped instead, and `on_skip` is called with the trace and the error. `UserError` is
        also raised if a probability is not a number.
        """
        return judgments_of(self.stream(traces, mode, on_skip), on_skip)

    def stream(
        self, traces: Iterable[Trace], mode: Mode | str = Mode.OFFLINE, on_skip: Skip | None = None
    ) -> Iterator[Event]:
        """Like `score`, but yield all events. Whoever stops reading them stops the work. In hindsight mode, a
        bidirectional model yields the online scores of a sub-step as soon as they are known."""
        return self.stream_encoded(encode_all(self.evaluator, traces, on_skip), mode)

    def stream_encoded(
        self, encoded: Iterable[tuple[Trace, Encoded]], mode: Mode | str = Mode.OFFLINE
    ) -> Iterator[Event]:
        """Like `stream`, but for traces that `Evaluator.encode` has already encoded."""
        mode, rest = Mode(mode), iter(encoded)
        if isinstance(self.evaluator, BatchEvaluator):
            yield from self.evaluator.judge_all(rest, mode)
            return
        for start in count(0, self.window):
            if not (window := list(islice(rest, self.window))):
                return
            yield from self._score_window(window, start, mode)

    def tokens(self, trace: Trace, encoded: Encoded, mode: Mode | str = Mode.OFFLINE) -> int:
        """Return the total number of tokens in all inputs of a trace, or 0 if the evaluator uses rules."""
        if isinstance(self.evaluator, RuleEvaluator):
            return 0
        if isinstance(self.evaluator, BatchEvaluator):
            return self.evaluator.tokens(trace, encoded, Mode(mode))
        return tokens_of(self._inputs(trace, encoded, Mode(mode)))

    def score_next(
        self,
        problem: str,
        steps: Sequence[str | Sequence[str]],
        candidates: Sequence[str],
    ) -> Floats32:
        """Score each candidate as the step after `steps`, which may be empty.

        A step-level beam search calls this repeatedly. The results are online scores: probabilities of neg, neu
        and pos, with shape (candidates, 3). In float32 they are within 1e-5 of those from scoring the problem,
        the steps and the candidate from scratch. A causal evaluator reads the problem and the steps only once. If
        a call extends an earlier one, it reads only the new tokens. Raises `UserError` if there is no candidate,
        or if a candidate is empty or makes the input too long.
        """
        if self._next is not None:
            return self._next.score(problem, steps, candidates)
        traces = [Trace.of(problem, [*steps, candidate]) for candidate in check_candidates(candidates)]
        # The last step has no later one in either mode; with windows, online would read more.
        mode = Mode.OFFLINE if self._reads_windows else Mode.ONLINE
        judged = [judgment.offline or judgment.online for judgment in self.score(traces, mode)]
        return np.array([scores.probs[-1] for scores in judged if scores is not None])

    def leave_one_out(self, trace: Trace) -> LeaveOneOut:
        """Like `AbstractScorer.leave_one_out`, but faster for a causal model that reads a solution once. For each
        omitted sub-step, such a model reads only the tokens after it again."""
        *_, scores = self.stream_left_out(trace)
        assert scores is not None
        return scores

    def stream_left_out(self, trace: Trace) -> Iterator[LeaveOneOut | None]:
        """Like `leave_one_out`, but yield None between parts of the work, and finally the scores. Whoever stops
        reading stops the work."""
        model = self.evaluator
        if isinstance(model, ModelEvaluator) and self.forward is not None:
            is_separate = model.sees_later_steps or self._reads_windows or len(trace.substeps) == 1
            if not is_separate and continues(model, self.forward):
                yield from leave_out(model, self.forward, trace)
                return
        scores: list[StepScores] = []
        for event in self.stream([trace, *shortened(trace)]):
            yield None
            if isinstance(event, NoJudgment):
                raise event.error
            if isinstance(event, Judgment) and event.offline is not None:
                scores.append(event.offline)
        yield left_out_scores(scores)

    @property
    def next_steps(self) -> "NextSteps | None":
        """The dedicated scorer of candidates for a next step. It is None if scoring each candidate offline, as the
        last step of a trace, takes no more work."""
        special = self._next is not None and (self._next.keeps_prefixes or self._next.asks_each_step)
        return self._next if special else None

    @property
    def _reads_windows(self) -> bool:
        return isinstance(self.evaluator, ModelEvaluator) and self.evaluator.reading.window is not None

    def _inputs(self, trace: Trace, encoded: Encoded, mode: Mode) -> list[Input]:
        assert isinstance(self.evaluator, ModelEvaluator)
        return mode_inputs(trace, encoded, mode, causal=self.evaluator.is_causal)

    def _score_window(
        self,
        window: list[tuple[Trace, Encoded]],
        start: int,
        mode: Mode,
    ) -> Iterator[Event]:
        """Yield the events of a window, each judgment once its trace is read. `start` numbers the first trace."""
        if isinstance(self.evaluator, RuleEvaluator):
            yield from (self.evaluator.judge(trace, mode) for trace, _ in window)
            return
        assert isinstance(self.evaluator, ModelEvaluator)
        assert self.forward is not None
        inputs = [self._inputs(trace, encoded, mode) for trace, encoded in window]
        ends = [self._last_in_view(trace, encoded, mode) for trace, encoded in window]
        equal: dict[tuple[bytes, bytes], list[tuple[int, int]]] = {}
        for number, part in enumerate(inputs):
            for place, item in enumerate(part):
                equal.setdefault((item.key, item.reads.tobytes()), []).append((number, place))
        groups = list(equal.values())
        results: list[dict[int, Floats32]] = [{} for _ in window]
        waiting = [*zip(window, inputs, results, strict=True)][::-1]
        yield None
        for distinct, rows in self.forward.run([inputs[number][place] for (number, place), *_ in groups]):
            for number, place in groups[distinct]:
                results[number][place] = rows
                if ends[number]:
                    for substep, row in _last_step(window[number][0], ends[number][place], rows):
                        yield StepScore(start + number, substep, row)
            yield None
            while waiting and len(waiting[-1][2]) == len(waiting[-1][1]):
                (trace, encoded), part, by_place = waiting.pop()
                outputs = tuple(by_place[place] for place in range(len(part)))
                by_place.clear()
                self.evaluator.check_numbers(outputs, trace)
                yield Judgment(trace, mode, trace_scores(self.evaluator, trace, encoded, mode, outputs))

    def _last_in_view(self, trace: Trace, encoded: Encoded, mode: Mode) -> list[tuple[int, int, Window | None]]:
        """Return the `last_in_view` of a trace whose steps are judged one after the other, or an empty list if all
        of them are known at once or are not requested."""
        assert isinstance(self.evaluator, ModelEvaluator)
        at_once = takes_one_pass(encoded, causal=self.evaluator.is_causal)
        return [] if mode != Mode.HINDSIGHT or at_once else last_in_view(encoded, prefixes(trace, mode))


def _last_step(trace: Trace, end: tuple[int, int, Window | None], rows: Floats32) -> Iterator[tuple[int, Floats32]]:
    """Yield the sub-steps of the step with which an input ends, if they are judged in it, with their scores."""
    last, first, window = end
    for substep in np.flatnonzero(trace.step_ends == last).tolist():
        if window is None or window.first <= substep < window.stop:
            yield substep, rows[substep - first, :3]


def continues(evaluator: ModelEvaluator, forward: Forward) -> bool:
    """True if inputs of the evaluator can continue from a prefix. Otherwise each has to be read from its start."""
    return not evaluator.encoder.asks_each_step and forward.continues


def leave_out(evaluator: ModelEvaluator, forward: Forward, trace: Trace) -> Iterator[LeaveOneOut | None]:
    """Score a trace with a causal model, both complete and with each of its sub-steps left out in turn. Yields None
    between parts of the work, and finally the scores. The trace must have several sub-steps.

    The sub-steps before the omitted one keep the scores that they have in the whole trace. The whole trace is read
    once, then about half of the tokens of the n shortened traces. Raises `UserError` if the trace is longer than
    the context.
    """
    whole, n = evaluator.encode(trace), len(trace.substeps)
    inputs: dict[int, Input] = {}
    for place, shorter in enumerate(shortened(trace)):
        yield None
        encoded = evaluator.encode(shorter)
        reads = encoded.reads[place:]
        if len(reads):
            inputs[place] = Input(encoded.ids, len(encoded), reads)
    places, parts, after = list(inputs), [], {}
    prefix = Input(whole.ids, len(whole), whole.reads)
    for number, rows in forward.run_after(prefix, list(inputs.values())):
        yield None
        if number is None:
            parts.append(rows)
        else:
            after[places[number]] = rows
    probs = np.concatenate(parts)
    evaluator.check_numbers([probs, *after.values()], trace)
    others = {
        place: np.concatenate([probs[:place, :3], after[place][:, :3] if place in after else probs[:0, :3]])
        for place in range(n)
    }
    yield LeaveOneOut.of(StepScores.from_rows(probs), others)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Encoded candidates for the next step. `unique` holds the distinct ones among the `texts`, and `encoded` their
    encodings."""

    texts: tuple[str, ...]
    unique: tuple[str, ...]
    encoded: tuple[Encoded, ...]

    @cached_property
    def inputs(self) -> list[Input]:
        """An input for each distinct candidate: the problem, the earlier steps and the candidate. It is read only
        at the end of the candidate."""
        return [Input(encoded.ids, len(encoded), encoded.reads[-1:]) for encoded in self.encoded]

    @cached_property
    def shared(self) -> int:
        """The number of shared leading tokens to keep. If there are earlier steps, a common beginning of the
        candidates does not count, nor what a template puts before them."""
        tokens = shared([item.ids for item in self.inputs])
        earlier = [int(encoded.ends[-2]) + 1 for encoded in self.encoded if len(encoded.ends) > 1]
        # A step that is read at the token before its last can be read in the prefix.
        return min(tokens, *earlier, *(item.first_read for item in self.inputs))


class NextSteps:
    """A scorer of candidates for the next step with one evaluator. Several threads can use it at once.

    A causal evaluator reads the problem and the steps once, keeps the keys and values, and continues from them with
    all candidates at once. A later call continues from the longest matching prefix. With a bidirectional evaluator,
    every candidate changes every step, so everything is read again for each candidate, in batches.
    """

    def __init__(self, evaluator: ModelEvaluator, forward: Forward) -> None:
        self._evaluator = evaluator
        self._forward = forward

    def score(
        self,
        problem: str,
        steps: Sequence[str | Sequence[str]],
        candidates: Sequence[str],
    ) -> Floats32:
        """Like `Scorer.score_next`."""
        return self.score_encoded(self.encode(problem, steps, candidates))

    def encode(
        self,
        problem: str,
        steps: Sequence[str | Sequence[str]],
        candidates: Sequence[str],
    ) -> Candidates:
        """Encode candidates for `score_encoded`. Raises `UserError` in the same cases as `Scorer.score_next`."""
        unique: dict[str, int] = {}
        for number, text in enumerate(check_candidates(candidates), start=1):
            unique.setdefault(text, number)
        encoded = []
        for text, number in unique.items():
            with located(f"candidate {number}"):
                encoded.append(self._evaluator.encode(Trace.of(problem, [*steps, text])))
        return Candidates(tuple(candidates), tuple(unique), tuple(encoded))

    def tokens(self, candidates: Candidates) -> int:
        """Return an upper bound on the number of tokens to compute. Tokens that the candidates share count once if
        the evaluator can continue from a prefix."""
        if self.asks_each_step:
            return sum(len(call) for encoded in candidates.encoded for call in encoded.calls[-1])
        if not self.keeps_prefixes:
            return sum(map(len, candidates.encoded))
        return candidates.shared + sum(len(encoded) - candidates.shared for encoded in candidates.encoded)

    @property
    def asks_each_step(self) -> bool:
        """True if the evaluator needs separate inputs for each step."""
        return self._evaluator.encoder.asks_each_step

    @property
    def keeps_prefixes(self) -> bool:
        """True if tokens shared by the candidates are read only once."""
        return continues(self._evaluator, self._forward)

    def score_encoded(self, candidates: Candidates) -> Floats32:
        """Return the probabilities of each candidate, with shape (candidates, 3)."""
        if self.asks_each_step:
            calls = [encoded.calls[-1] for encoded in candidates.encoded]
            outputs = run_all(self._forward, call_inputs(calls))
            rows = list(verdicts(self._evaluator.encoder, calls, outputs)[:, None])
        elif self.keeps_prefixes:
            inputs = candidates.inputs
            prefix = Input(inputs[0].ids, candidates.shared, np.zeros(0, np.int64))
            results = dict(self._forward.run_after(prefix, inputs))
            rows = [results[number] for number in range(len(inputs))]
        else:
            rows = run_all(self._forward, candidates.inputs)
        self._evaluator.check_numbers(rows)
        scored = dict(zip(candidates.unique, rows, strict=True))
        return np.concatenate([scored[text][:, : len(Label)] for text in candidates.texts])


def encode_all(
    evaluator: Evaluator, traces: Iterable[Trace], on_skip: Skip | None = None
) -> Iterator[tuple[Trace, Encoded]]:
    """Yield each trace with its token ids.

    Raises `UserError` if a trace is too long. If `on_skip` is given, the trace is skipped instead, and `on_skip` is
    called with the trace and the error.
    """
    for trace in traces:
        try:
            encoded = evaluator.encode(trace)
        except UserError as error:
            if on_skip is None:
                raise
            on_skip(trace, error)
            continue
        yield trace, encoded


def fastest_forward(evaluator: ModelEvaluator) -> Forward:
    """Return the fastest forward pass for the model on its device."""
    return (PackedForward if PackedForward.supports(evaluator.model) else PaddedForward)(evaluator.model)
