"""PRMScore: PRMBench's measure of step labels, by the kind of error (Song et al., 2025).

Half the F1 of correct steps and half that of wrong ones, pooled over steps. Every step counts, also after the first
error. In the classes of simplicity the error is redundancy, which is neu here and shows as `s_red`.
"""

import numpy as np

from core.label import Label
from core.metrics.items import Items
from core.metrics.table import SILENT, StepTable
from core.scores import Thresholds

CATEGORIES = {
    "simplicity": ("redundency", "circular"),
    "soundness": ("counterfactual", "step_contradiction", "domain_inconsistency", "confidence"),
    "sensitivity": ("missing_condition", "deception", "multi_solutions"),
}
"""PRMBench's classes, in its own spelling, by category."""


def prm_items(table: StepTable, thresholds: Thresholds | None = None, classes: tuple[str, ...] = ()) -> Items:
    """Steps as items whose positive is a step without error; `macro_f1` of them is the PRMScore.

    `classes`: those of the table's groups to take; all where empty.
    """
    cut = thresholds or Thresholds()
    group = np.array(table.groups, dtype=object)[table.trace]
    simple = np.isin(group, CATEGORIES["simplicity"])
    scores = np.where(simple, 1 - table.redundancy, table.validity)
    predicted = np.where(simple, table.redundancy < cut.redundancy, table.validity >= cut.validity)
    golds = np.where(simple, table.label != Label.NEU, table.valid == 1) & (table.valid != 0)
    kept = (table.valid != SILENT) & ~np.isnan(scores)
    if classes:
        kept &= np.isin(group, classes)
    return Items(scores, golds, predicted, table.trace).where(kept)
