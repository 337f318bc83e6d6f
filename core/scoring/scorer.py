"""The scorer, which turns traces into judgments in one of three modes.

`BothOrders` is an evaluator that has a causal one read the steps forwards and backwards. A step is judged twice:
after the steps that precede it, and in an input that holds the first `j` steps in reverse order, after the steps
that follow it. The two probabilities are averaged, so that later steps count. BiPRM also scores the reverse order,
but its code is not public: this rule is ours. The spread of an ensemble is left out, because it differs between
prefixes. Windows, if there are any, are cut in each order by itself.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count, islice

import numpy as np

from stepsight.core.arrays import Floats32
from stepsight.core.errors import Check, UserError, never_cancel
from stepsight.core.evaluator_summary import Reading, Rereading, causal_attention
from stepsight.core.evidence import Gap, LeaveOneOut
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.evaluator import ModelEvaluator
from stepsight.core.models.evaluator_base import BatchEvaluator, Evaluator, RuleEvaluator
from stepsight.core.prompts.encoding import Encoded, Window
from stepsight.core.scores import Hindsight, StepScores
from stepsight.core.scoring.forward import (
    Forward,
    Input,
    PaddedForward,
    last_in_view,
    mode_inputs,
    prefixes,
    takes_one_pass,
    tokens_of,
    trace_scores,
)
from stepsight.core.scoring.next_step import ContinuedForward, NextSteps, leave_out
from stepsight.core.scoring.packed import PackedForward
from stepsight.core.scoring.scorer_base import AbstractScorer, Skip
from stepsight.core.trace import Trace, check_candidates

OnStep = Callable[[int, int, Floats32], None]
"""Called with the number of a trace, the index of a sub-step, and its probabilities, of shape (3,)."""


def ignore_step(trace: int, substep: int, row: Floats32) -> None:
    """Do nothing with a score that the judgment has as well."""


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
        self._continued: ContinuedForward | None = None
        if isinstance(evaluator, ModelEvaluator):
            forward = forward or fastest_forward(evaluator)
            self._continued = ContinuedForward(evaluator, forward)
            if evaluator.window is None:
                self._next = NextSteps(evaluator, forward, self._continued)
        self.forward = forward
        # Padded batches want many inputs of similar length; the other passes gain nothing from a long wait.
        self.window = window or (256 if isinstance(forward, PaddedForward) else 16)

    def score(
        self,
        traces: Iterable[Trace],
        mode: Mode | str = Mode.OFFLINE,
        on_skip: Skip | None = None,
        check: Check = never_cancel,
    ) -> Iterator[Judgment]:
        """Yield a judgment for each trace, in input order.

        At most `window` traces are in memory at a time; with a server, a few for each concurrent request. In
        float32, a trace's results depend on the other traces by at most 1e-5. Raises `UserError` if a trace is
        longer than the evaluator's context; if `on_skip` is given, the trace is skipped instead, and `on_skip` is
        called with the trace and the error. `UserError` is also raised if a probability is not a number. An error
        that `check` raises stops the work, as in `score_encoded`.
        """
        return self.score_encoded(encode_all(self.evaluator, traces, on_skip), mode, check)

    def score_encoded(
        self,
        encoded: Iterable[tuple[Trace, Encoded]],
        mode: Mode | str = Mode.OFFLINE,
        check: Check = never_cancel,
        on_step: OnStep = ignore_step,
    ) -> Iterator[Judgment]:
        """Like `score`, but for traces that `Evaluator.encode` has already encoded. `check` is called between parts
        of the work, and an error that it raises stops the work. In hindsight mode, a bidirectional model calls
        `on_step` as soon as the online scores of a sub-step are known, with the trace's number in `encoded`."""
        mode, rest = Mode(mode), iter(encoded)
        if isinstance(self.evaluator, BatchEvaluator):
            yield from self.evaluator.judge_all(rest, mode, check)
            return
        for start in count(0, self.window):
            if not (window := list(islice(rest, self.window))):
                return
            yield from self._score_window(window, start, mode, check, on_step)

    def offline_scores(self, traces: Sequence[Trace], check: Check = never_cancel) -> list[StepScores | None]:
        """Return the offline scores of each trace, or None for a trace that is too long or on which a critic writes
        no verdict that can be read. An error that `check` raises stops the work."""
        left_out: set[int] = set()
        encoded = encode_all(self.evaluator, traces, lambda trace, _: left_out.add(id(trace)))
        judged: Iterator[Judgment | None] = (
            self.evaluator.judge_each(encoded, Mode.OFFLINE, check)
            if isinstance(self.evaluator, BatchEvaluator)
            else self.score_encoded(encoded, Mode.OFFLINE, check)
        )
        scores = iter([None if judgment is None else judgment.offline for judgment in judged])
        return [None if id(trace) in left_out else next(scores) for trace in traces]

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
        # The last step has no later one in either mode; in windows, online would read more.
        mode = Mode.OFFLINE if self._reads_windows else Mode.ONLINE
        judged = [judgment.offline or judgment.online for judgment in self.score(traces, mode)]
        return np.array([scores.probs[-1] for scores in judged if scores is not None])

    def leave_one_out(self, trace: Trace, gap: Gap | str = Gap.DELETED, check: Check = never_cancel) -> LeaveOneOut:
        """Like `AbstractScorer.leave_one_out`, but faster for a causal model that reads a solution once. For each
        omitted sub-step, such a model reads only the tokens after it again."""
        apart = self.evaluator.sees_later_steps or self._reads_windows or len(trace.substeps) == 1
        if self._continued is None or not self._continued.continues or apart:
            return super().leave_one_out(trace, gap, check)
        assert isinstance(self.evaluator, ModelEvaluator)
        return leave_out(self.evaluator, self._continued, trace, Gap(gap), check)

    def _judge_offline(self, traces: Sequence[Trace], check: Check) -> Iterator[Judgment]:
        return self.score(traces, Mode.OFFLINE, check=check)

    def reread(self, reading: Rereading) -> "Scorer":
        """Return a scorer for the evaluator with another reading (see `Evaluator.reread`). It uses the same forward
        pass. Raises `UserError` if the evaluator cannot have the reading."""
        evaluator = (
            BothOrders.of(self, reading)
            if reading.reading == Reading.BOTH_ORDERS and isinstance(self.evaluator, ModelEvaluator)
            else self.evaluator.reread(reading)
        )
        return self if evaluator is self.evaluator else Scorer(evaluator, self.forward, self.window)

    @property
    def next_steps(self) -> NextSteps | None:
        """The dedicated scorer of candidates for a next step. It is None if scoring each candidate offline, as the
        last step of a trace, takes no more work."""
        special = self._next is not None and (self._next.keeps_prefixes or self._next.asks_each_step)
        return self._next if special else None

    @property
    def _reads_windows(self) -> bool:
        return isinstance(self.evaluator, ModelEvaluator) and self.evaluator.window is not None

    def _inputs(self, trace: Trace, encoded: Encoded, mode: Mode) -> list[Input]:
        assert isinstance(self.evaluator, ModelEvaluator)
        return mode_inputs(trace, encoded, mode, causal=self.evaluator.is_causal)

    def _score_window(
        self,
        window: list[tuple[Trace, Encoded]],
        start: int,
        mode: Mode,
        check: Check,
        on_step: OnStep,
    ) -> Iterator[Judgment]:
        """Yield the judgments of a window, whose first trace has the number `start`. Each distinct input is run
        once."""
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
        check()
        for distinct, rows in self.forward.run([inputs[number][place] for (number, place), *_ in groups]):
            for number, place in groups[distinct]:
                results[number][place] = rows
                if ends[number]:
                    for substep, row in _ended(window[number][0], ends[number][place], rows):
                        on_step(start + number, substep, row)
            check()
        for (trace, encoded), part, by_place in zip(window, inputs, results, strict=True):
            check()
            outputs = tuple(by_place[place] for place in range(len(part)))
            by_place.clear()
            self.evaluator.check_numbers(outputs, trace)
            yield Judgment(trace, mode, trace_scores(self.evaluator, trace, encoded, mode, outputs))

    def _last_in_view(self, trace: Trace, encoded: Encoded, mode: Mode) -> list[tuple[int, int, Window | None]]:
        """Return the `last_in_view` of a trace whose steps are judged one after the other, or an empty list if all
        of them are known at once or are not asked for."""
        assert isinstance(self.evaluator, ModelEvaluator)
        at_once = takes_one_pass(encoded, causal=self.evaluator.is_causal)
        return [] if mode != Mode.HINDSIGHT or at_once else last_in_view(encoded, prefixes(trace, mode))


def _ended(trace: Trace, end: tuple[int, int, Window | None], rows: Floats32) -> Iterator[tuple[int, Floats32]]:
    """Yield the sub-steps of the step with which an input ends, if they are judged in it, with their scores."""
    last, first, window = end
    for substep in np.flatnonzero(trace.step_ends == last).tolist():
        if window is None or window.first <= substep < window.stop:
            yield substep, rows[substep - first, :3]


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


@dataclass(frozen=True, eq=False, kw_only=True)
class BothOrders(BatchEvaluator):
    """An evaluator that averages the scores of a causal model over both orders of the steps. `scorer` scores each
    order, and `identify` computes the fingerprint."""

    scorer: Scorer
    identify: Callable[[], str]

    @classmethod
    def of(cls, scorer: Scorer, reading: Rereading) -> "BothOrders":
        """Return the evaluator of `scorer`, which is a causal model, with this reading. Raises `UserError` if it
        cannot have it."""
        model = scorer.evaluator
        assert isinstance(model, ModelEvaluator)
        reading.check(model.name, is_causal=model.is_causal, context=model.context)
        return cls(
            name=f"{model.name}{reading}",
            format=model.format,
            thresholds=model.thresholds,
            provenance=model.provenance,
            outputs=model.outputs,
            scorer=scorer.reread(Rereading(window=reading.window)),
            identify=lambda: reading.fingerprint(model.fingerprint),
        )

    @property
    def _model(self) -> ModelEvaluator:
        assert isinstance(self.scorer.evaluator, ModelEvaluator)
        return self.scorer.evaluator

    @cached_property
    def fingerprint(self) -> str:
        return self.identify()

    @property
    def attention(self) -> str:
        return causal_attention(Reading.BOTH_ORDERS)

    @property
    def context(self) -> int | None:
        return self._model.context

    @property
    def dtype(self) -> str:
        return self._model.dtype

    @property
    def parameters(self) -> int:
        return self._model.parameters

    @property
    def described(self) -> str:
        return f"{self.name}: the mean of both orders of the steps. {self._model.described}"

    def reread(self, reading: Rereading) -> Evaluator:
        """Like `Evaluator.reread`. Both orders are read in windows, if there are any."""
        if reading.reading == Reading.ONCE:
            return self._model.reread(reading)
        windows = Rereading(window=reading.window)
        scorer = self.scorer.reread(windows)
        if scorer is self.scorer:
            return self
        return replace(
            self,
            name=f"{self.name}{windows}",
            scorer=scorer,
            identify=lambda: windows.fingerprint(self.fingerprint),
        )

    def encode(self, trace: Trace) -> Encoded:
        """Return the token ids of the whole trace, forwards. Raises `UserError` if it is too long in either
        order."""
        self._model.encode(_reversed(trace, len(trace.substeps)))
        return self._model.encode(trace)

    def tokens(self, trace: Trace, encoded: Encoded, mode: Mode) -> int:
        orders = (_reversed(trace, stop) for _, stop in prefixes(trace, mode))
        backward = sum(self.scorer.tokens(order, self._model.encode(order)) for order in orders)
        return self.scorer.tokens(trace, encoded) + backward

    def judge_all(self, encoded: Iterable[tuple[Trace, Encoded]], mode: Mode, check: Check) -> Iterator[Judgment]:
        begun: deque[Trace] = deque()

        def orders() -> Iterator[Trace]:
            for trace, _ in encoded:
                begun.append(trace)
                yield trace
                yield from (_reversed(trace, stop) for _, stop in prefixes(trace, mode))

        scores = (judgment.offline for judgment in self.scorer.score(orders(), check=check))
        for forward in scores:
            trace, rows = begun.popleft(), []
            assert forward is not None
            for start, stop in prefixes(trace, mode):
                backward = next(scores)
                assert backward is not None
                rows.append(((forward.probs[:stop] + backward.probs[::-1]) / np.float32(2))[start:])
            together = np.concatenate(rows)
            yield Judgment(
                trace, mode, Hindsight.from_packed(together) if mode == Mode.HINDSIGHT else StepScores(together)
            )


def _reversed(trace: Trace, count: int) -> Trace:
    """Return the first `count` sub-steps of a trace in reverse order."""
    return Trace.of(trace.problem, trace.substeps[:count][::-1], id=trace.id)
