"""Judgments of one trace by several evaluators, stored or made now: the columns of a trace's page."""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property

from stepsight.app.browse.evaluator_choice import EvaluatorChoice
from stepsight.app.markup.text import CHECK_WORDS, VERDICT_WORDS
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.arrays import Bools, Floats32
from stepsight.core.errors import UserError
from stepsight.core.judgment import Judgment, Mode, Usage
from stepsight.core.scores import Hindsight, Outputs, StepScores, Thresholds
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import find_thresholds
from stepsight.storage.judgments.judgments import StoredJudgment, read_judgments, standing
from stepsight.storage.traces.queries import StoredTrace


def words_of(outputs: Outputs) -> dict[str, str]:
    """What an evaluator that speaks in words says of a step, by the label that it stands for."""
    return CHECK_WORDS if outputs == Outputs.CHECKS else VERDICT_WORDS


@dataclass(frozen=True, eq=False)
class TraceJudgments:
    """The judgment of a trace that stands in each mode, by the evaluator called `name`.

    Where there is none, `silence` tells why; `stored` says whether they are the store's or were made for this
    page. `runs` says whether the evaluator can score here, `waits` that it is doing so.
    """

    name: str
    outputs: Outputs
    thresholds: Thresholds
    by_mode: Mapping[Mode, Judgment] = field(default_factory=dict)
    stored: bool = False
    runs: bool = False
    silence: str = ""
    waits: bool = False

    @property
    def judgments(self) -> tuple[Judgment, ...]:
        """Each judgment that stands in a mode, once."""
        return tuple(dict.fromkeys(self.by_mode.values()))

    @cached_property
    def online(self) -> StepScores | None:
        """A row per sub-step, or None where it says nothing of steps in that mode."""
        return self.by_mode[Mode.ONLINE].online if Mode.ONLINE in self.by_mode and self.outputs.has_steps else None

    @cached_property
    def offline(self) -> StepScores | None:
        """The same of the other mode."""
        return (
            self.by_mode[Mode.OFFLINE].offline if Mode.OFFLINE in self.by_mode and self.outputs.has_steps else None
        )

    @property
    def hindsight(self) -> Hindsight | None:
        """The matrix to look at, where there is one."""
        judgment = self.by_mode.get(Mode.HINDSIGHT)
        return judgment.hindsight if judgment is not None and self.outputs.has_scores else None

    @cached_property
    def modes(self) -> dict[Mode, StepScores]:
        """The modes in which it says something of steps, online first."""
        both = {Mode.ONLINE: self.online, Mode.OFFLINE: self.offline}
        if self.outputs == Outputs.CHECKS:
            # No later step changes what is checked.
            del both[Mode.ONLINE if self.offline is not None else Mode.OFFLINE]
        return {mode: scores for mode, scores in both.items() if scores is not None}

    @cached_property
    def silent(self) -> dict[Mode, Bools]:
        """The sub-steps of which it says nothing, a row of zeros each, shape (n,) for each mode."""
        return {mode: scores.probs.sum(axis=1) == 0 for mode, scores in self.modes.items()}

    @cached_property
    def change(self) -> Floats32 | None:
        """Offline minus online validity of each sub-step, shape (n,), of the hindsight judgment where there is one;
        None where it has one mode alone."""
        if self.online is None or self.offline is None or self.outputs.in_words:
            return None
        if self.hindsight is not None:
            return self.hindsight.retroactive
        return self.offline.validity - self.online.validity

    @property
    def shape(self) -> str:
        """What a column shows: `marks` for verdicts, bars of a `single` mode or of `both`."""
        if self.outputs.in_words:
            return "marks"
        return "single" if self.change is None else "both"

    @property
    def titles(self) -> dict[Mode, str]:
        """What its modes are called where a column has no head: nothing, where they do not differ."""
        return {mode: "" if self.outputs == Outputs.CHECKS else mode.value for mode in self.modes}

    @property
    def words(self) -> dict[str, str]:
        """What its verdict on a step is called, by the label that it stands for."""
        return words_of(self.outputs)

    @property
    def unsaid(self) -> str:
        """What stands where it says nothing of a step."""
        return "nothing to check" if self.outputs == Outputs.CHECKS else "no verdict"

    @property
    def solution(self) -> float | None:
        """What it says of the whole by itself, offline where it does."""
        both = [self.by_mode.get(mode) for mode in (Mode.OFFLINE, Mode.ONLINE)]
        return next((one.solution for one in both if one is not None and one.solution is not None), None)

    @property
    def rationales(self) -> list[str]:
        """The words that it gave for its verdicts, each once."""
        return list(dict.fromkeys(one.rationale for one in self.judgments if one.rationale))

    @property
    def spent(self) -> Usage | None:
        """What a server was asked for its judgments, in all."""
        each = [one.spent for one in self.judgments if one.spent is not None]
        return sum(each[1:], each[0]) if each else None


def judge_trace(
    store: Store,
    evaluators: Evaluators,
    chosen: Sequence[EvaluatorChoice],
    trace: StoredTrace,
    patience: float | None = None,
) -> list[TraceJudgments]:
    """The judgments by each of the chosen, in their order: the stored ones where they are fresh, else, where the
    evaluator runs here, one made now. What is not made after `patience` seconds in all is waited for by whoever
    asks again; None is no limit."""
    stored: defaultdict[int, list[StoredJudgment]] = defaultdict(list)
    for judgment in read_judgments(store, trace):
        stored[judgment.evaluator.id].append(judgment)
    # All of them, before the first is waited for.
    begun = [_begin(evaluators, choice, trace, stored[choice.id or 0]) for choice in chosen]
    until = None if patience is None else time.monotonic() + patience
    return [
        _judgments(choice, _thresholds(store, evaluators, choice), stored[choice.id or 0], made, until)
        for choice, made in zip(chosen, begun, strict=True)
    ]


def _begin(
    evaluators: Evaluators, choice: EvaluatorChoice, trace: StoredTrace, stored: Sequence[StoredJudgment]
) -> "Future[Judgment] | None":
    """The judgment to come; None where a stored one says it all, or the evaluator does not run here."""
    if choice.loaded is None or standing(stored, Mode.HINDSIGHT) is not None:
        return None
    try:
        return evaluators.begin(choice.loaded, trace)
    except UserError as error:
        refused: Future[Judgment] = Future()
        refused.set_exception(error)
        return refused


def _judgments(
    choice: EvaluatorChoice,
    thresholds: Thresholds,
    stored: Sequence[StoredJudgment],
    begun: "Future[Judgment] | None",
    until: float | None,
) -> TraceJudgments:
    by_mode = {mode: one for mode in Mode if (one := standing(stored, mode)) is not None}
    silence = "its judgment is of an earlier version of this trace" if stored else "has not judged this trace"
    waits = False
    if begun is not None:
        try:
            made = begun.result(None if until is None else max(0.0, until - time.monotonic()))
            return TraceJudgments(choice.key, choice.outputs, thresholds, dict.fromkeys(Mode, made), runs=True)
        except TimeoutError:
            waits = True
        except UserError as error:
            silence = str(error)
    runs = choice.loaded is not None
    if by_mode:
        return TraceJudgments(choice.key, choice.outputs, thresholds, by_mode, stored=True, runs=runs, waits=waits)
    return TraceJudgments(choice.key, choice.outputs, thresholds, runs=runs, silence=silence, waits=waits)


def _thresholds(store: Store, evaluators: Evaluators, choice: EvaluatorChoice) -> Thresholds:
    """Those in force, by which the lists are filtered as well."""
    if choice.id is None:
        return evaluators.thresholds(store, choice.loaded) if choice.loaded is not None else Thresholds()
    return find_thresholds(store, choice.id)
