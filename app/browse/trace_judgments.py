"""Judgments of one trace by several evaluators, stored or made now."""

import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import Future

from stepsight.app.browse.evaluator_choice import EvaluatorChoice
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.step_bars import TraceJudgments
from stepsight.core.errors import UserError
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Thresholds
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.evaluators import find_thresholds
from stepsight.storage.judgments.judgments import StoredJudgment, read_judgments, standing
from stepsight.storage.traces.queries import StoredTrace


def judge_trace(
    store: Store,
    evaluators: Evaluators,
    chosen: Sequence[EvaluatorChoice],
    trace: StoredTrace,
    patience: float | None = None,
) -> list[TraceJudgments]:
    """The judgments by each chosen evaluator, in order: stored ones if they are fresh, else one made now if the
    evaluator runs here.

    One that is not ready after `patience` seconds in all continues in the background, for a later request; None
    means no limit.
    """
    stored: defaultdict[int, list[StoredJudgment]] = defaultdict(list)
    for judgment in read_judgments(store, trace):
        stored[judgment.evaluator.id].append(judgment)
    # All are started before the first one is waited for.
    begun = [_begin(evaluators, choice, trace, stored[choice.id or 0]) for choice in chosen]
    until = None if patience is None else time.monotonic() + patience
    return [
        _judgments(choice, _thresholds(store, evaluators, choice), stored[choice.id or 0], made, until)
        for choice, made in zip(chosen, begun, strict=True)
    ]


def _begin(
    evaluators: Evaluators, choice: EvaluatorChoice, trace: StoredTrace, stored: Sequence[StoredJudgment]
) -> "Future[Judgment] | None":
    """The future judgment; None if a stored hindsight judgment stands, or the evaluator does not run here."""
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
    """The thresholds in force, which the filters of lists use too."""
    if choice.id is None:
        return evaluators.thresholds(store, choice.loaded) if choice.loaded is not None else Thresholds()
    return find_thresholds(store, choice.id)
