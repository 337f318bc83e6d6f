"""The evaluators that can be chosen for a dataset, and their judgments of a trace."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web.step_bars import TraceJudgments
from stepsight.core.errors import UserError
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.location import is_shipped
from stepsight.core.scores import Outputs, Thresholds
from stepsight.storage.database.store import NotFoundError, Store
from stepsight.storage.judgments.evaluators import StoredEvaluator, evaluators_of, find_thresholds, list_evaluators
from stepsight.storage.judgments.judgments import StoredJudgment, read_judgments, standing
from stepsight.storage.traces.queries import StoredTrace

MOST_BESIDE = 5
"""The largest number of evaluators that a page shows side by side."""

_SHOWN_OF_FINGERPRINT = 8


@dataclass(frozen=True)
class EvaluatorChoice:
    """An evaluator that can be chosen. `key` identifies it in URLs.

    `runs` is True if it can score on this server, where `key` is then its name. `row` is its row in the store, or
    None if it has never judged anything. `judged` is True if it has judged a trace of the dataset, and `shipped` if
    every installation has it.
    """

    key: str
    row: StoredEvaluator | None
    judged: bool
    outputs: Outputs = Outputs.THREE_WAY
    shipped: bool = False
    runs: bool = False

    @property
    def id(self) -> int | None:
        """The evaluator's database id, or None if it has never judged anything."""
        return self.row.id if self.row else None


def list_choices(store: Store, evaluators: Evaluators, dataset_id: int, named: str = "") -> list[EvaluatorChoice]:
    """List the loaded evaluators in the order of `evaluators.all_names`, followed by the others that have judged
    the dataset. If `named` names a loaded evaluator with a different reading, that evaluator is included."""
    judged = {row.fingerprint: row for row in evaluators_of(store, dataset_id)}
    rows = {row.fingerprint: row for row in list_evaluators(store)}
    here = [*evaluators.all_names, *([named] if evaluators.has_another_reading(named) else [])]
    loaded = {name: evaluators.about(name) for name in here}
    choices = [
        EvaluatorChoice(
            name,
            rows.get(about.fingerprint),
            about.fingerprint in judged,
            about.outputs,
            is_shipped(name),
            runs=True,
        )
        for name, about in loaded.items()
    ]
    fingerprints = {about.fingerprint for about in loaded.values()}
    others = [row for fingerprint, row in judged.items() if fingerprint not in fingerprints]
    names = Counter([*loaded, *(row.name for row in others)])
    for row in others:
        # Two evaluators with the same name are usually one evaluator before and after a change.
        key = row.name if names[row.name] == 1 else f"{row.name} {row.fingerprint[:_SHOWN_OF_FINGERPRINT]}"
        choices.append(EvaluatorChoice(key, row, True, row.outputs, is_shipped(row.name)))
    return choices


def find_choice(choices: Iterable[EvaluatorChoice], key: str) -> EvaluatorChoice:
    """Return the evaluator with this key. Raises `NotFoundError`, whose hint lists the valid keys, if no evaluator
    has it."""
    keys = {choice.key: choice for choice in choices}
    if key not in keys:
        raise NotFoundError(
            f"No evaluator {key!r:.60} has judged this dataset or can score here.",
            f"Choose one of: {', '.join(keys)}.",
        )
    return keys[key]


def default_choice(choices: Sequence[EvaluatorChoice]) -> EvaluatorChoice:
    """Return the evaluator to use if the URL names none. Evaluators that have judged the dataset are preferred,
    then those with the most informative outputs, then those that can score on this server. The shipped ones are
    demonstrations, so that they come after any other that has judged the dataset."""
    return min(
        choices,
        key=lambda choice: (
            not choice.judged,
            choice.judged and choice.shipped,
            list(Outputs).index(choice.outputs),
            not choice.runs,
        ),
    )


def shown_choices(choices: Sequence[EvaluatorChoice], keys: Sequence[str]) -> list[EvaluatorChoice]:
    """Return the evaluators with these keys, at most `MOST_BESIDE`. If the first key is "", it stands for the
    default evaluator. Raises `NotFoundError` for an unknown key."""
    first, *others = keys
    distinct = dict.fromkeys((first or default_choice(choices).key, *filter(None, others)))
    return [find_choice(choices, key) for key in distinct][:MOST_BESIDE]


def judge_trace(
    store: Store,
    evaluators: Evaluators,
    chosen: Sequence[EvaluatorChoice],
    trace: StoredTrace,
    patience: float,
) -> list[TraceJudgments]:
    """Return the judgments of a trace by each chosen evaluator, in the order of `chosen`.

    Stored judgments are used where they are still valid. Otherwise, the evaluator judges the trace now if it runs
    on this server. All evaluators together get `patience` seconds. A judgment that takes longer continues in the
    background, for a later request.
    """
    stored: defaultdict[int, list[StoredJudgment]] = defaultdict(list)
    for judgment in read_judgments(store, trace):
        stored[judgment.evaluator.id].append(judgment)
    # All are started before waiting for the first one.
    begun = [_begin(evaluators, choice, trace, stored[choice.id or 0]) for choice in chosen]
    deadline = time.monotonic() + patience
    return [
        _judgments(choice, _thresholds(store, evaluators, choice), stored[choice.id or 0], made, deadline)
        for choice, made in zip(chosen, begun, strict=True)
    ]


def _begin(
    evaluators: Evaluators,
    choice: EvaluatorChoice,
    trace: StoredTrace,
    stored: Sequence[StoredJudgment],
) -> "Future[Judgment] | None":
    """Start judging a trace and return the future judgment. Returns None if the store has a standing hindsight
    judgment, or if the evaluator does not run on this server."""
    if not choice.runs or standing(stored, Mode.HINDSIGHT) is not None:
        return None
    try:
        return evaluators.submit(choice.key, trace, comes_back=True)
    except UserError as error:
        refused: Future[Judgment] = Future()
        refused.set_exception(error)
        return refused


def _judgments(
    choice: EvaluatorChoice,
    thresholds: Thresholds,
    stored: Sequence[StoredJudgment],
    begun: "Future[Judgment] | None",
    until: float,
) -> TraceJudgments:
    by_mode = {mode: scores for mode in Mode if (scores := standing(stored, mode)) is not None}
    silence = "its judgment is of an earlier version of this trace" if stored else "has not judged this trace"
    waits = False
    if begun is not None:
        try:
            made = begun.result(max(0.0, until - time.monotonic()))
            return TraceJudgments(choice.key, choice.outputs, thresholds, dict.fromkeys(Mode, made), runs=True)
        except TimeoutError:
            waits = True
        except UserError as error:
            silence = str(error.without_options())
    if by_mode:
        return TraceJudgments(
            choice.key, choice.outputs, thresholds, by_mode, stored=True, runs=choice.runs, waits=waits
        )
    return TraceJudgments(choice.key, choice.outputs, thresholds, runs=choice.runs, silence=silence, waits=waits)


def _thresholds(store: Store, evaluators: Evaluators, choice: EvaluatorChoice) -> Thresholds:
    """Return the evaluator's current thresholds, which are the ones that filters use."""
    if choice.id is None:
        return evaluators.thresholds(store, choice.key) if choice.runs else Thresholds()
    return find_thresholds(store, choice.id)
