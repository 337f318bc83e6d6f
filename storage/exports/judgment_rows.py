"""Judgments as a tidy table: a row per trace, step, sub-step, evaluator and mode.

Steps and sub-steps are counted from 1. `gold` is of the step: neg, neu, pos, or `valid` where the benchmark says
that alone. `verdict` is by the thresholds in force: valid, redundant or not valid. What an evaluator does not say
is empty: of a sub-step that it passed over, the numbers and the verdict; of one that speaks in words, every
number; of one that gives validity only, the probabilities. `spread` is given by an ensemble alone. One that speaks
of the whole solution alone has a single row, without a step. `solution` and `rationale` are of the whole solution,
the same in each row.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from stepsight.core.judgment import Mode
from stepsight.core.label import LABEL_NAMES
from stepsight.core.scores import Outputs, StepScores, Thresholds, verdict_word
from stepsight.core.trace import Step
from stepsight.storage.database.store import Store
from stepsight.storage.exports.table_files import Row
from stepsight.storage.exports.trace_lines import batches
from stepsight.storage.judgments.calibrations import find_thresholds
from stepsight.storage.judgments.judgments import StoredJudgment, read_many
from stepsight.storage.traces.queries import StoredTrace

COLUMNS: dict[str, type] = {
    "dataset": str,
    "trace": str,
    "step": int,
    "substep": int,
    "gold": str,
    "evaluator": str,
    "fingerprint": str,
    "mode": str,
    **dict.fromkeys(LABEL_NAMES, float),
    "validity": float,
    "redundancy": float,
    "spread": float,
    "verdict": str,
    "solution": float,
    "rationale": str,
}

_DIGITS = 6


def judgment_rows(
    store: Store, trace_ids: Sequence[int], evaluators: Collection[int] | None = None
) -> Iterator[Row]:
    """The rows of the stored judgments of these traces, in their order, by these evaluators, None: by all.

    A judgment of an earlier version of its trace has none. A hindsight judgment has rows of both modes, and stands
    for the evaluator's others.
    """
    thresholds: dict[int, Thresholds] = {}
    one = next(iter(evaluators)) if evaluators is not None and len(evaluators) == 1 else None
    for batch in batches(store, trace_ids):
        for trace, judgments in zip(batch, read_many(store, batch, one), strict=True):
            for judgment in _chosen(judgments, evaluators):
                id = judgment.evaluator.id
                if id not in thresholds:
                    thresholds[id] = find_thresholds(store, id)
                yield from _rows(trace, judgment, thresholds[id])


def _chosen(judgments: Sequence[StoredJudgment], evaluators: Collection[int] | None) -> list[StoredJudgment]:
    fresh = [one for one in judgments if not one.stale]
    whole = {one.evaluator.id for one in fresh if one.mode == Mode.HINDSIGHT}
    return [
        one
        for one in fresh
        if (evaluators is None or one.evaluator.id in evaluators)
        and (one.mode == Mode.HINDSIGHT or one.evaluator.id not in whole)
    ]


def _rows(trace: StoredTrace, judgment: StoredJudgment, thresholds: Thresholds) -> Iterator[Row]:
    evaluator = judgment.evaluator
    common = dict.fromkeys(COLUMNS) | {
        "dataset": trace.dataset,
        "trace": trace.id,
        "evaluator": evaluator.name,
        "fingerprint": evaluator.fingerprint,
        "solution": None if judgment.solution is None else _rounded(judgment.solution),
        "rationale": judgment.rationale or None,
    }
    for mode, scores in ((Mode.ONLINE, judgment.online), (Mode.OFFLINE, judgment.offline)):
        if scores is None:
            continue
        in_mode = common | {"mode": mode.value}
        if not evaluator.outputs.has_steps:
            yield in_mode
            continue
        for i, place in enumerate(_places(trace)):
            yield in_mode | place | substep_numbers(scores, i, evaluator.outputs, thresholds)


def _places(trace: StoredTrace) -> Iterator[dict[str, Any]]:
    for number, step in enumerate(trace.steps, 1):
        for part in range(1, len(step.substeps) + 1):
            yield {"step": number, "substep": part, "gold": gold_word(step)}


def gold_word(step: Step) -> str | None:
    """The gold of a step: its label, `valid` where that is all that is known, None where there is none."""
    if step.label is not None:
        return step.label.text
    return "valid" if step.valid else None


def substep_numbers(scores: StepScores, i: int, outputs: Outputs, thresholds: Thresholds) -> dict[str, Any]:
    """What an evaluator says of sub-step `i`, by column; probabilities of zero stand for nothing."""
    probs = scores.probs[i]
    if not probs.any():
        return {}
    verdict = {"verdict": verdict_word(probs, thresholds, outputs)}
    if outputs.in_words:
        return verdict
    numbers = {"validity": _rounded(scores.validity[i])}
    if scores.spread is not None:
        numbers["spread"] = _rounded(scores.spread[i])
    if outputs != Outputs.THREE_WAY:
        return numbers | verdict
    three = dict(zip(LABEL_NAMES, map(_rounded, probs), strict=True))
    return three | numbers | {"redundancy": three["neu"]} | verdict


def _rounded(value: Any) -> float:
    return round(float(value), _DIGITS)
