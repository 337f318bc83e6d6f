"""What each evaluator says of one trace, as far as it says anything: the columns of a trace's page."""

import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from stepsight.app.browse.offered import Offered
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.arrays import Floats32
from stepsight.core.errors import UserError
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Outputs, StepScores, Thresholds
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.calibrations import find_thresholds
from stepsight.storage.judgments.judgments import StoredJudgment, read_judgments
from stepsight.storage.traces.queries import StoredTrace


@dataclass(frozen=True, eq=False)
class Answer:
    """What the evaluator called `name` says of a trace.

    `judgments` are what it rests on, none where `silence` tells why there is none; `stored` says whether they are
    the store's or were made for this page. `runs` says whether the evaluator can score here, `waits` that it is
    doing so.
    """

    name: str
    outputs: Outputs
    thresholds: Thresholds
    judgments: tuple[Judgment, ...] = ()
    stored: bool = False
    runs: bool = False
    silence: str = ""
    waits: bool = False

    @cached_property
    def online(self) -> StepScores | None:
        """A row per sub-step, or None where it says nothing of steps in that mode."""
        return self._scores([judgment.online for judgment in self.judgments])

    @cached_property
    def offline(self) -> StepScores | None:
        """The same of the other mode."""
        return self._scores([judgment.offline for judgment in self.judgments])

    @cached_property
    def modes(self) -> dict[Mode, StepScores]:
        """The modes in which it says something of steps, online first."""
        found = {Mode.ONLINE: self.online, Mode.OFFLINE: self.offline}
        return {mode: scores for mode, scores in found.items() if scores is not None}

    @cached_property
    def silent(self) -> dict[Mode, NDArray[np.bool_]]:
        """The sub-steps of which it says nothing, a row of zeros each, shape (n,) for each mode."""
        return {mode: scores.probs.sum(axis=1) == 0 for mode, scores in self.modes.items()}

    @cached_property
    def change(self) -> Floats32 | None:
        """Offline minus online validity of each sub-step, shape (n,); None where it has one mode alone."""
        if self.online is None or self.offline is None:
            return None
        return self.offline.validity - self.online.validity

    def _scores(self, found: Sequence[StepScores | None]) -> StepScores | None:
        return next((scores for scores in found if scores is not None and self.outputs.has_steps), None)

    @property
    def solution(self) -> float | None:
        """What it says of the whole by itself."""
        return next((one.solution for one in self.judgments if one.solution is not None), None)


def find_answers(
    store: Store,
    evaluators: Evaluators,
    chosen: Sequence[Offered],
    trace: StoredTrace,
    patience: float | None = None,
) -> list[Answer]:
    """The answer of each of the chosen, in their order: the stored one where there is a fresh one, else, where the
    evaluator runs here, one made now. What is not made after `patience` seconds in all is waited for by whoever
    asks again; None is no limit."""
    stored: defaultdict[int, list[StoredJudgment]] = defaultdict(list)
    for judgment in read_judgments(store, trace):
        stored[judgment.evaluator.id].append(judgment)
    # All of them, before the first is waited for.
    begun = [_begin(evaluators, offer, trace, stored[offer.id or 0]) for offer in chosen]
    until = None if patience is None else time.monotonic() + patience
    return [
        _answer(offer, _thresholds(store, evaluators, offer), stored[offer.id or 0], made, until)
        for offer, made in zip(chosen, begun, strict=True)
    ]


def _begin(
    evaluators: Evaluators, offer: Offered, trace: StoredTrace, stored: Sequence[StoredJudgment]
) -> "Future[Judgment] | None":
    """The judgment to come; None where a stored one says it all, or the evaluator does not run here."""
    if offer.loaded is None or any(one.mode == Mode.HINDSIGHT and not one.stale for one in stored):
        return None
    try:
        return evaluators.begin(offer.loaded, trace)
    except UserError as error:
        refused: Future[Judgment] = Future()
        refused.set_exception(error)
        return refused


def _answer(
    offer: Offered,
    thresholds: Thresholds,
    stored: Sequence[StoredJudgment],
    begun: "Future[Judgment] | None",
    until: float | None,
) -> Answer:
    fresh = tuple(judgment for judgment in stored if not judgment.stale)
    whole = tuple(judgment for judgment in fresh if judgment.mode == Mode.HINDSIGHT)
    silence = "its judgment is of an earlier version of this trace" if stored else "has not judged this trace"
    waits = False
    if begun is not None:
        try:
            made = begun.result(None if until is None else max(0.0, until - time.monotonic()))
            return Answer(offer.key, offer.outputs, thresholds, (made,), runs=True)
        except TimeoutError:
            waits = True
        except UserError as error:
            silence = str(error)
    runs = offer.loaded is not None
    if fresh:
        return Answer(offer.key, offer.outputs, thresholds, whole or fresh, stored=True, runs=runs, waits=waits)
    return Answer(offer.key, offer.outputs, thresholds, runs=runs, silence=silence, waits=waits)


def _thresholds(store: Store, evaluators: Evaluators, offer: Offered) -> Thresholds:
    """Those in force, by which the lists are filtered as well."""
    if offer.id is None:
        return evaluators.thresholds(store, offer.loaded) if offer.loaded is not None else Thresholds()
    return find_thresholds(store, offer.id)
