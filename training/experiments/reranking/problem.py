"""The candidates of one problem in a stored dataset, and the candidate that each rule chooses."""

from collections.abc import Sequence
from dataclasses import dataclass

from stepsight.core.judgment import Mode
from stepsight.storage.database.store import Store
from stepsight.storage.judgments.judgments import StoredJudgment, read_many, standing
from stepsight.storage.traces.queries import StoredTrace, count_siblings, read_siblings
from stepsight.training.experiments.reranking.answers import AnswerComparer
from stepsight.training.experiments.reranking.candidates import CandidateScores, candidates_of
from stepsight.training.experiments.reranking.choices import RuleChoice, choices_of, rank


@dataclass(frozen=True, eq=False)
class ShownCandidate:
    """A candidate solution of a problem.

    `number` counts the candidates from 1. `correct` is None if no right answer is known, and `judgment` is None if
    the evaluator has not judged the candidate. `rules` are the rules that choose this candidate.
    """

    number: int
    trace: StoredTrace
    answer: str | None
    correct: bool | None
    judgment: StoredJudgment | None
    rules: tuple[RuleChoice, ...]


@dataclass(frozen=True, eq=False)
class ProblemCandidates:
    """The candidates of a problem in file order, the right answer if it is known, and the choices of the rules.

    `mode` is the mode of the judgments. `unscored` counts the candidates without scores; if there are any, only a
    majority vote can choose. `more` counts the solutions of the problem that are not read (see
    `MOST_SIBLINGS`).
    """

    candidates: tuple[ShownCandidate, ...]
    gold: str | None
    choices: tuple[RuleChoice, ...]
    mode: Mode
    unscored: int
    more: int


def problem_candidates(store: Store, trace: StoredTrace, evaluator_id: int | None, name: str) -> ProblemCandidates:
    """Return the candidates of the problem that `trace` solves, with their judgments by one evaluator.

    `evaluator_id` and `name` identify the evaluator; an id of None means no judgments. The judgments are offline
    or, if there are none, online. Answers are compared as texts and numbers. Raises `UserError` if two candidates
    contradict each other in their meta.
    """
    traces = read_siblings(store, trace)
    pool = candidates_of(traces)
    mode, judgments = _judgments(store, traces, evaluator_id)
    scored = [_step_scores(one, mode) for one in judgments]
    with AnswerComparer(symbolic=False) as answers:
        (ranked,) = rank(pool, scored, answers)
    correct = [None] * len(traces) if ranked.correct is None else ranked.correct.tolist()
    unscored = scored.count(None)
    choices = choices_of(ranked, "" if unscored else name)
    shown = tuple(
        ShownCandidate(
            place + 1,
            one,
            pool.candidates[place].answer,
            correct[place],
            judgments[place],
            tuple(rule for rule in choices if rule.place == place),
        )
        for place, one in enumerate(traces)
    )
    more = count_siblings(store, trace) - len(traces)
    return ProblemCandidates(shown, pool.problems[0].gold, choices, mode, unscored, more)


def _judgments(
    store: Store, traces: Sequence[StoredTrace], evaluator_id: int | None
) -> tuple[Mode, list[StoredJudgment | None]]:
    if evaluator_id is None:
        return Mode.OFFLINE, [None] * len(traces)
    stored = read_many(store, traces, evaluator_id)
    by_mode = {mode: [standing(theirs, mode) for theirs in stored] for mode in (Mode.OFFLINE, Mode.ONLINE)}
    mode = Mode.OFFLINE if any(by_mode[Mode.OFFLINE]) else Mode.ONLINE
    return mode, by_mode[mode]


def _step_scores(judgment: StoredJudgment | None, mode: Mode) -> CandidateScores:
    """Return the scores of a judgment, one row per step, or None if any step has no score."""
    if judgment is None:
        return None
    scores = judgment.online if mode == Mode.ONLINE else judgment.offline
    if scores is None or not scores.probs.sum(axis=1).all():
        return None
    return scores.by_step(judgment.trace.owners)
