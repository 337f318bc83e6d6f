"""Agreement of an evaluator with the people who labelled a dataset, by hand."""

import numpy as np
import pytest

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import StepScores
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import iterate_traces, list_datasets
from stepsight.training.evaluate.people import agreement_with_people, labels_version
from tests.storage.labelling.labelled_sums import labelled
from tests.storage.samples import evaluator
from tests.training.judged import measure_stored

# Of sub-steps, of which the second step of "two" has two. People's majorities are: "two" valid, wrong; "three"
# valid, a tie, valid; "one" valid.
VALIDITY = {"two": [0.9, 0.2, 0.9], "three": [0.4, 0.9, 0.9], "one": [0.8]}


def found(store):
    (dataset,) = list_datasets(store)
    evaluation = measure_stored(store, dataset, evaluators_of(store, dataset.id), force=True, draws=20)
    row = next(row for row in evaluation.rows if not row.is_baseline and row.mode == Mode.OFFLINE)
    return list(agreement_with_people(store, dataset.id, row.subject, evaluation.weights))


def test_verdicts_are_compared_with_the_majority_of_blind_labels(sqlite_store):
    labelled(sqlite_store)
    (dataset,) = list_datasets(sqlite_store)
    before = labels_version(sqlite_store, dataset.id)
    one = evaluator(sqlite_store)
    judgments = [
        Judgment(trace, Mode.OFFLINE, StepScores(np.array([[1 - v, 0, v] for v in VALIDITY[trace.id]], np.float32)))
        for trace in iterate_traces(sqlite_store, dataset.id)
        if trace.id in VALIDITY
    ]
    save_judgments(sqlite_store, one.id, judgments)
    (agreement,) = found(sqlite_store)
    # Of five steps with a majority, "three"'s first is judged otherwise.
    assert (agreement.steps, agreement.traces, agreement.people) == (5, 3, 3)
    assert agreement.agreeing.number == pytest.approx(4 / 5)
    # Chance: people say valid 4/5, the evaluator 3/5.
    chance = 4 / 5 * 3 / 5 + 1 / 5 * 2 / 5
    assert agreement.kappa.number == pytest.approx((4 / 5 - chance) / (1 - chance))
    # Equal pairs: 3 + 3 of "two"; 3, 1 and 0 of 0 of "three"; 1 of 1 of "one".
    assert agreement.among_people.number == pytest.approx(11 / 13)
    assert labels_version(sqlite_store, dataset.id) == before
