"""What each evaluator says of one trace, as far as it says anything: the columns of a trace's page."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.browse.offered import Offered
from app.evaluators import Evaluators
from core.errors import UserError
from core.judgment import Judgment, Mode
from core.outputs import Outputs
from core.scores import Floats, StepScores, Thresholds
from storage.calibrations import find_calibration
from storage.judgments import StoredJudgment, read_judgments
from storage.queries import StoredTrace
from storage.store import Store


@dataclass(frozen=True, eq=False)
class Answer:
    """What the evaluator called `name` says of a trace.

    `judgments` are what it rests on, none where `silence` tells why there is none; `stored` says whether they are
    the store's or were made for this page. `runs` says whether the evaluator can score here.
    """

    name: str
    outputs: Outputs
    thresholds: Thresholds
    judgments: tuple[Judgment, ...] = ()
    stored: bool = False
    runs: bool = False
    silence: str = ""

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
    def change(self) -> Floats | None:
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
    store: Store, evaluators: Evaluators, chosen: Sequence[Offered], trace: StoredTrace
) -> list[Answer]:
    """The answer of each of the chosen, in their order: the stored one where there is a fresh one, else, where the
    evaluator runs here, one made now."""
    stored: defaultdict[int, list[StoredJudgment]] = defaultdict(list)
    for judgment in read_judgments(store, trace):
        stored[judgment.evaluator.id].append(judgment)
    return [_answer(store, evaluators, offer, trace, stored[offer.id or 0]) for offer in chosen]


def _answer(
    store: Store, evaluators: Evaluators, offer: Offered, trace: StoredTrace, stored: list[StoredJudgment]
) -> Answer:
    thresholds = _thresholds(store, offer)
    fresh = tuple(judgment for judgment in stored if not judgment.stale)
    whole = next((judgment for judgment in fresh if judgment.mode == Mode.HINDSIGHT), None)
    if whole is not None:
        fresh = (whole,)
    runs = offer.loaded is not None
    if whole is None and offer.loaded is not None:
        try:
            made = (evaluators.judge(offer.loaded, trace),)
            return Answer(offer.key, offer.outputs, thresholds, made, runs=True)
        except UserError as error:
            if not fresh:
                return Answer(offer.key, offer.outputs, thresholds, runs=True, silence=str(error))
    if fresh:
        return Answer(offer.key, offer.outputs, thresholds, fresh, stored=True, runs=runs)
    silence = "its judgment is of an earlier version of this trace" if stored else "has not judged this trace"
    return Answer(offer.key, offer.outputs, thresholds, silence=silence)


def _thresholds(store: Store, offer: Offered) -> Thresholds:
    """Those in force, by which the lists are filtered as well."""
    calibration = find_calibration(store, offer.id) if offer.id is not None else None
    return calibration.thresholds if calibration else Thresholds()
