"""ReasonEval's protocol: the solutions and steps on which invalid and redundant errors are measured.

Sources are Xia et al., "Evaluating Mathematical Reasoning Beyond Accuracy", and the paper, §4.1. The official
script compares with `>` and the paper with `>=`. The two differ only on exact ties, and this module follows the
paper.

Invalid errors: a step's score is the least validity of its sub-steps, and a solution's score the least of its
steps. The gold is 1 before the first error and 0 at the error; later steps are left out at step level. Redundant
errors: the score is `-s_red`, and a score of `-0.15` or below means redundant. The gold is 0 for the label neu, and
every labelled step counts. An evaluator that gives only validity is scored on redundancy by its validity.

A verdict in words blames one step. Earlier steps then count as valid and later steps as unread, and an unread step
counts as a wrong prediction whatever its gold label. A verdict that cannot be read and blames no step is treated in
two ways. In the official script, all steps count as free of error, but the solution itself counts as a wrong
prediction. `items` follows the script unless `strict` is True; then all steps of such a trace count as unread.

`prm_items` adds PRMScore, PRMBench's metric of step labels.
"""

from enum import StrEnum

import numpy as np

from stepsight.core.arrays import Bools
from stepsight.core.metrics.table import SILENT, Items, StepTable
from stepsight.core.scores import Outputs, Thresholds
from stepsight.core.trace import Label

SOLUTION_THRESHOLD = 0.025
"""The threshold of evaluators with one score per solution (ROSCOE, in the official script)."""
CATEGORIES = {
    "simplicity": ("redundency", "circular"),
    "soundness": ("counterfactual", "step_contradiction", "domain_inconsistency", "confidence"),
    "sensitivity": ("missing_condition", "deception", "multi_solutions"),
}
"""PRMBench's classes, in its own spelling, by category."""


class Errors(StrEnum):
    """The kind of error that a benchmark contains and a metric measures."""

    INVALID = "invalid"
    REDUNDANT = "redundant"


class Level(StrEnum):
    """The level of an item: a step or a solution."""

    SOLUTION = "solution"
    STEP = "step"


def items(
    table: StepTable,
    errors: Errors,
    level: Level,
    outputs: Outputs = Outputs.THREE_WAY,
    thresholds: Thresholds | None = None,
    *,
    strict: bool = False,
) -> Items:
    """Return the steps or solutions as items of a two-class metric. Positive means free of this kind of error. The
    result is empty if the evaluator gives no output at that level.

    If `strict` is True, the steps of a trace whose verdict blames no step and cannot be read count as unread;
    otherwise they count as free of error.
    """
    if outputs == Outputs.CHECKS and errors == Errors.REDUNDANT:
        empty = np.zeros(0)
        return Items(empty, empty > 0, empty > 0, empty.astype(np.int64))
    trace = table.trace
    if errors == Errors.INVALID or outputs == Outputs.VALIDITY:
        scores = table.validity.astype(np.float64)
    else:
        # A verdict on redundancy is 1 or 0 per step.
        redundancy = table.redundancy.astype(np.float64)
        scores = 1 - redundancy if outputs == Outputs.VERDICT else -redundancy
    if level == Level.STEP:
        gold, counts = _step_gold(table, errors)
        counts = counts & outputs.has_steps
        if outputs == Outputs.VERDICT and not strict:
            is_silent = np.bincount(trace, ~np.isnan(table.validity), table.traces) == 0
            scores = np.where(is_silent[trace], 1.0, scores)
    else:
        gold, counts = _solution_gold(table, errors)
        least = np.full(table.traces, np.inf)
        # A solution with an unscored step has no score either.
        with np.errstate(invalid="ignore"):
            np.minimum.at(least, trace, scores)
        scores = table.solution if outputs == Outputs.SOLUTION or outputs.in_words else least
        trace = np.arange(table.traces)
    if outputs == Outputs.CHECKS:
        counts = counts & ~np.isnan(scores)
    cut, is_exceeded = _rule(errors, outputs, thresholds or Thresholds())
    # Probabilities are stored in single precision. Thresholds are compared in it too, so that ties remain ties.
    single, limit = scores.astype(np.float32), np.float32(cut)
    predicted = np.where(np.isnan(scores), ~gold, single > limit if is_exceeded else single >= limit)
    ranking = scores if outputs.has_scores else np.full(len(scores), np.nan)
    return Items(ranking, gold, predicted, trace).where(counts)


def _rule(errors: Errors, outputs: Outputs, thresholds: Thresholds) -> tuple[float, bool]:
    """Return the score that means no error, and whether it has to be exceeded."""
    if outputs == Outputs.SOLUTION:
        return SOLUTION_THRESHOLD, False
    if outputs.in_words:
        return 0.5, False
    if errors == Errors.REDUNDANT and outputs == Outputs.THREE_WAY:
        # A score at the threshold is redundant, so that a tie counts as an error.
        return -thresholds.redundancy, True
    return thresholds.validity, False


def _step_gold(table: StepTable, errors: Errors) -> tuple[Bools, Bools]:
    """Return two flags for each step: whether its gold label is free of error, and whether the step counts."""
    if errors == Errors.REDUNDANT:
        return table.label != Label.NEU, table.label != SILENT
    first = table.first_errors()[table.trace]
    counts = (table.valid != SILENT) & ((first == SILENT) | (table.position <= first))
    return table.valid == 1, counts


def _solution_gold(table: StepTable, errors: Errors) -> tuple[Bools, Bools]:
    """Return two flags for each solution: whether it is free of error according to the gold labels, and whether
    they decide this. A solution is free of error only if every step is labelled and no step has the error."""
    if errors == Errors.INVALID:
        wrong, labelled = table.valid == 0, table.valid != SILENT
    else:
        wrong, labelled = table.label == Label.NEU, table.label != SILENT
    has_error = np.zeros(table.traces, np.bool_)
    has_error[table.trace[wrong]] = True
    complete = table.present
    complete[table.trace[~labelled]] = False
    return ~has_error, has_error | complete


def prm_items(
    table: StepTable,
    thresholds: Thresholds | None = None,
    classes: tuple[str, ...] = (),
    outputs: Outputs = Outputs.THREE_WAY,
) -> Items:
    """Return the steps as items for the PRMScore. Positive means free of error.

    The PRMScore (Song et al., 2025) is the `macro_f1` of these items: half the F1 of correct steps plus half the F1
    of wrong steps, pooled over steps.

    Every step counts, including those after the first error. In PRMBench's simplicity classes the error is
    redundancy, i.e. the label neu. It is scored by `s_red` or, as in the official script, by validity if the
    evaluator gives nothing else. Two results differ from that script. For a category, the script averages the
    scores of its classes, while steps are pooled here. For `multi_solutions`, whose steps are all right, the script
    takes the F1 of the positive class alone, while the result is undefined here.

    `classes` names the groups of the table to include; if it is empty, all groups are included. `outputs` is the
    kind of the evaluator's outputs.
    """
    cut = thresholds or Thresholds()
    group = np.array(table.groups, dtype=object)[table.trace]
    simple = np.isin(group, CATEGORIES["simplicity"])
    by_redundancy = simple & outputs.has_redundancy
    scores = np.where(by_redundancy, 1 - table.redundancy.astype(np.float64), table.validity)
    # In single precision, like every comparison with a threshold, so that 0.7 is not above 0.7.
    valid, redundant = np.float32(cut.validity), np.float32(cut.redundancy)
    predicted = np.where(by_redundancy, table.redundancy <= redundant, table.validity > valid)
    gold = np.where(simple, table.label != Label.NEU, table.valid == 1) & (table.valid != 0)
    kept = (table.valid != SILENT) & ~np.isnan(scores)
    if classes:
        kept &= np.isin(group, classes)
    return Items(scores, gold, predicted, table.trace).where(kept)


def kinds_of_error(table: StepTable) -> list[Errors]:
    """Return the kinds of error that occur in the gold labels.

    Redundant errors are included if a step is neu. Invalid errors are included if a step is wrong, or if no step is
    neu.
    """
    kinds = []
    if (table.valid == 0).any() or not (table.label == Label.NEU).any():
        kinds.append(Errors.INVALID)
    if (table.label == Label.NEU).any():
        kinds.append(Errors.REDUNDANT)
    return kinds
