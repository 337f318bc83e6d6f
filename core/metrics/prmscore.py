"""PRMScore, PRMBench's metric of step labels, by class of error (Song et al., 2025).

Half the F1 of correct steps plus half that of wrong ones, pooled over steps. Every step counts, also after the
first error. In the classes of simplicity the error is redundancy: neu, which shows as `s_red`, or, as in the
official script, as validity if the evaluator gives nothing else.

Two figures differ from the official script's. A category is pooled over its steps here, while the script averages
the scores of its classes. `multi_solutions`, whose steps are all right, is undefined here, while the script takes
the F1 of the positive class alone.
"""

import numpy as np

from stepsight.core.label import Label
from stepsight.core.metrics.items import Items
from stepsight.core.metrics.table import SILENT, StepTable
from stepsight.core.scores import Outputs, Thresholds

CATEGORIES = {
    "simplicity": ("redundency", "circular"),
    "soundness": ("counterfactual", "step_contradiction", "domain_inconsistency", "confidence"),
    "sensitivity": ("missing_condition", "deception", "multi_solutions"),
}
"""PRMBench's classes, in its own spelling, by category."""


def prm_items(
    table: StepTable,
    thresholds: Thresholds | None = None,
    classes: tuple[str, ...] = (),
    outputs: Outputs = Outputs.THREE_WAY,
) -> Items:
    """Steps as items, positive if free of error; `macro_f1` of them is the PRMScore.

    `classes`: the groups of the table to include, all if empty. `outputs`: the evaluator's; one without redundancy
    is measured by its validity in every class.
    """
    cut = thresholds or Thresholds()
    group = np.array(table.groups, dtype=object)[table.trace]
    simple = np.isin(group, CATEGORIES["simplicity"])
    by_redundancy = simple & outputs.has_redundancy
    scores = np.where(by_redundancy, 1 - table.redundancy.astype(np.float64), table.validity)
    # In single precision, as every comparison with a threshold is: 0.7 is not below 0.7.
    valid, redundant = np.float32(cut.validity), np.float32(cut.redundancy)
    predicted = np.where(by_redundancy, table.redundancy < redundant, table.validity >= valid)
    gold = np.where(simple, table.label != Label.NEU, table.valid == 1) & (table.valid != 0)
    kept = (table.valid != SILENT) & ~np.isnan(scores)
    if classes:
        kept &= np.isin(group, classes)
    return Items(scores, gold, predicted, table.trace).where(kept)
