"""ReasonEval's protocol: solutions and steps as items, for invalid and for redundant errors.

Xia et al., "Evaluating Mathematical Reasoning Beyond Accuracy", and the paper, §4.1. Where the official script
compares strictly, the paper takes `>=`; the two differ on exact ties only, and the paper is followed.

Invalid errors: a step's score is the least validity of its sub-steps, a solution's the least of its steps. Gold is
1 before the first error and 0 at it; the steps after it are left out of the step level. Redundant errors: the score
is `-s_red`, at most `-0.15` where redundant; gold is 0 where the label is neu; every labelled step counts. An
evaluator that gives validity only is scored on redundancy by its own score.

A verdict in words blames one step: those before it are taken as valid, those after it as unread, and what is unread
counts as wrong whatever the gold.
"""

from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from stepsight.core.label import Label
from stepsight.core.metrics.items import Items
from stepsight.core.metrics.table import SILENT, StepTable
from stepsight.core.scores import Outputs, Thresholds

Floats = NDArray[np.float64]


class Errors(StrEnum):
    """Which kind of error is looked for."""

    INVALID = "invalid"
    REDUNDANT = "redundant"


class Level(StrEnum):
    SOLUTION = "solution"
    STEP = "step"


SOLUTION_THRESHOLD = 0.025
"""Where one score per solution is cut (ROSCOE, in the official script)."""


def items(
    table: StepTable,
    errors: Errors,
    level: Level,
    outputs: Outputs = Outputs.THREE_WAY,
    thresholds: Thresholds | None = None,
) -> Items:
    """The items of one level; positive is what has no error. Empty where the evaluator says nothing at it."""
    rule = _rule(errors, outputs, thresholds or Thresholds())
    scores = _step_scores(table, errors, outputs)
    golds, counts = _golds(table, errors)
    if level == Level.STEP:
        said = counts & outputs.has_steps
        found = _items(scores, golds, rule, table.trace)
        return _as_said(found, outputs).where(said)
    return _solutions(table, errors, outputs, scores, rule)


@dataclass(frozen=True)
class _Rule:
    """Free of error is a score of at least `cut`; where `strict`, one above it."""

    cut: float
    strict: bool = False


def _rule(errors: Errors, outputs: Outputs, thresholds: Thresholds) -> _Rule:
    if outputs == Outputs.SOLUTION:
        return _Rule(SOLUTION_THRESHOLD)
    if outputs == Outputs.VERDICT:
        return _Rule(0.5)
    if errors == Errors.REDUNDANT and outputs == Outputs.THREE_WAY:
        # What reaches the threshold is redundant, so that a tie has the error.
        return _Rule(-thresholds.redundancy, strict=True)
    return _Rule(thresholds.validity)


def _step_scores(table: StepTable, errors: Errors, outputs: Outputs) -> Floats:
    if errors == Errors.INVALID or outputs == Outputs.VALIDITY:
        return table.validity
    # A verdict on redundancy is 1 or 0 per step.
    return 1 - table.redundancy if outputs == Outputs.VERDICT else -table.redundancy


def _golds(table: StepTable, errors: Errors) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Gold of each step, and whether the step counts."""
    if errors == Errors.REDUNDANT:
        return table.label != Label.NEU, table.label != SILENT
    first = table.first_errors()[table.trace]
    counts = (table.valid != SILENT) & ((first == SILENT) | (table.position <= first))
    return table.valid == 1, counts


def _items(scores: Floats, golds: NDArray[np.bool_], rule: _Rule, trace: NDArray[np.int64]) -> Items:
    # Probabilities are stored in single precision: a threshold is compared in it too, so that ties are ties.
    single, cut = scores.astype(np.float32), np.float32(rule.cut)
    predicted = single > cut if rule.strict else single >= cut
    unread = np.isnan(scores)
    return Items(scores, golds, np.where(unread, ~golds, predicted), trace)


def _as_said(found: Items, outputs: Outputs) -> Items:
    if outputs.has_scores:
        return found
    return replace(found, scores=np.full(len(found), np.nan))


def _solutions(table: StepTable, errors: Errors, outputs: Outputs, scores: Floats, rule: _Rule) -> Items:
    golds, counts = _solution_golds(table, errors)
    if outputs in (Outputs.SOLUTION, Outputs.VERDICT):
        least = table.solution
    else:
        least = np.full(table.traces, np.inf)
        np.minimum.at(least, table.trace, scores)
    return _as_said(_items(least, golds, rule, np.arange(table.traces)), outputs).where(counts)


def _solution_golds(table: StepTable, errors: Errors) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Gold of each solution, and whether the benchmark says enough to know it.

    A solution without an error is one all of whose steps are known to have none.
    """
    if errors == Errors.INVALID:
        wrong, known = table.valid == 0, table.valid != SILENT
    else:
        wrong, known = table.label == Label.NEU, table.label != SILENT
    has_error = np.zeros(table.traces, np.bool_)
    has_error[table.trace[wrong]] = True
    all_known = table.present
    all_known[table.trace[~known]] = False
    return ~has_error, has_error | all_known
