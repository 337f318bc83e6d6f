"""Evaluators' evidence against the steps that people name."""

import numpy as np
import pytest

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.training.report.stored_tables import evidence_table
from stepsight.training.report.tables import rows_as_json
from tests.storage.labelling.samples import DATASET, change_minds
from tests.storage.samples import evaluator


def test_an_evaluator_is_measured_by_the_steps_that_people_name(sqlite_store):
    """Step 3 changed the label of step 1, and the evaluator's verdict on it falls there."""
    change_minds(sqlite_store)
    dataset = find_dataset(sqlite_store, DATASET)
    mini, other = evaluator(sqlite_store), evaluator(sqlite_store, "other")
    (trace,) = iterate_traces(sqlite_store, dataset.id)
    first = [0.9, 0.8, 0.1, 0.1]
    validity = [[first[row], *[0.5] * row] for row in range(4)]
    rows = tuple(np.array([[1 - one, 0, one] for one in row], np.float32) for row in validity)
    evaluators = [("mini", mini.id), ("other", other.id)]
    assert evidence_table(sqlite_store, dataset, evaluators, 20) is None
    save_judgments(sqlite_store, mini.id, [Judgment(trace, Mode.HINDSIGHT, Hindsight(rows))])
    table = evidence_table(sqlite_store, dataset, evaluators, 20)
    assert table is not None
    (row,) = rows_as_json(table)
    assert (row["evaluator"], row["links"], row["traces"]) == ("mini", 1, 1)
    values = {key: value["value"] for key, value in row.items() if isinstance(value, dict)}
    # The next step is step 2; three later steps make chance 1/3 and 1.
    assert values == pytest.approx(
        {"hit_1": 1, "hit_3": 1, "above_next_1": 1, "above_next_3": 0, "above_chance_1": 2 / 3, "above_chance_3": 0}
    )
