from dataclasses import replace

import numpy as np
import pytest

from stepsight.core.metrics.bootstrap import resamples
from stepsight.core.metrics.first_error import (
    FirstErrors,
    Outcome,
    accuracy_on_wrong,
    count_outcomes,
    first_errors,
    matthews,
    process_bench_f1,
)
from stepsight.core.metrics.table import SILENT as NONE
from stepsight.core.scores import Outputs
from tests.core.metrics.tables import SILENT, VALID, WRONG, judged_table, scores, table, trace

# Found, found too early, missed; right and seen so, right and blamed.
JUDGED = table(
    ([VALID, WRONG, SILENT], [0.9, 0.1, 0.1]),
    ([VALID, WRONG], [0.4, 0.1]),
    ([WRONG, SILENT], [0.9, 0.9]),
    ([VALID, VALID], [0.9, 0.5]),
    ([VALID], [0.2]),
)


def test_process_bench_by_hand():
    found = first_errors(JUDGED)
    assert found.gold.tolist() == [1, 1, 0, NONE, NONE]
    assert found.predicted.tolist() == [1, 0, NONE, NONE, 0]
    assert accuracy_on_wrong(found).number == pytest.approx(1 / 3)
    # 2 * (1/3) * (1/2) / (1/3 + 1/2) = (1/3) / (5/6)
    assert process_bench_f1(found).number == pytest.approx(2 / 5)


def test_outcomes_by_hand():
    # By the comment on JUDGED: found, another step, missed, right, a false alarm.
    assert count_outcomes(first_errors(JUDGED)) == {
        Outcome.RIGHT: 2, Outcome.MISSED: 1, Outcome.FALSE_ALARM: 1, Outcome.WRONG_STEP: 1
    }  # fmt: skip


def test_matthews_by_hand():
    # Wrong and called so 2, wrong and not 1, right and not 1, right and called wrong 1:
    # (2 * 1 - 1 * 1) / sqrt((2 + 1) (2 + 1) (1 + 1) (1 + 1)) = 1 / 6
    assert matthews(first_errors(JUDGED)).number == pytest.approx(1 / 6)


def test_a_trace_whose_gold_is_not_known_does_not_count():
    judged = table(([VALID, SILENT], [0.9, 0.1]), ([VALID, WRONG], [0.9, 0.1]))
    found = first_errors(judged)
    assert found.trace.tolist() == [1]
    assert process_bench_f1(found).reason == "every trace has an error"
    assert matthews(found).reason == "the gold has one class only"


# The last scores of each trace are silent from where the list ends.
SAID = [
    ([VALID, VALID, VALID], [0.1], 0),  # a false alarm
    ([VALID, VALID, WRONG], [0.9, 0.1], 1),  # blamed too early
    ([VALID, WRONG, WRONG], [0.9, 0.1], 1),  # found
    ([VALID, WRONG, VALID], [0.9, 0.9], NONE),  # missed, whatever would come
    ([VALID, VALID, WRONG], [0.9, 0.9], None),
    ([VALID, VALID, VALID], [0.9, 0.9], None),
    ([VALID, VALID, SILENT], [0.1], None),
]


def said_in_part(words=None):
    return judged_table(
        *(
            (trace(*golds, id=str(i)), [*scores(*said).probs, *np.zeros((3 - len(said), 3))], words and words[i])
            for i, (golds, said, _) in enumerate(SAID)
        )
    )


def test_a_verdict_is_known_as_soon_as_its_first_blamed_step_is():
    found = first_errors(said_in_part())
    assert found.trace.tolist() == [0, 1, 2, 3]
    assert found.predicted.tolist() == [blamed for *_, blamed in SAID if blamed is not None]
    assert count_outcomes(found) == {
        Outcome.RIGHT: 1, Outcome.MISSED: 1, Outcome.FALSE_ALARM: 1, Outcome.WRONG_STEP: 1
    }  # fmt: skip


def test_traces_that_do_not_count_are_told_beside_the_figure():
    found = first_errors(said_in_part())
    assert (found.no_gold, found.no_verdict) == (1, 2)
    told = (
        "1 of 7 traces do not count: their gold says too little; "
        "2 of 7 traces do not count: the evaluator says too little of them"
    )
    for figure in (accuracy_on_wrong, process_bench_f1, matthews):
        assert figure(found).reason == told
    assert first_errors(JUDGED).left_out == accuracy_on_wrong(first_errors(JUDGED)).reason == ""


def test_a_word_on_the_solution_is_a_verdict_of_its_own():
    # The fourth trace is called wrong, though no step of it is blamed.
    on_redundancy = said_in_part([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0])
    judged = replace(on_redundancy, redundancy=np.zeros(len(on_redundancy)))
    assert first_errors(judged).called_wrong.tolist() == [True, True, True, False]
    assert first_errors(judged, outputs=Outputs.VERDICT).called_wrong.all()
    # A word on redundancy says nothing of errors.
    assert not first_errors(on_redundancy, outputs=Outputs.VERDICT).called_wrong[3]


def test_only_right_traces_and_none_at_all():
    found = first_errors(table(([VALID], [0.9])))
    assert accuracy_on_wrong(found).reason == "no trace has an error"
    empty = first_errors(table())
    assert process_bench_f1(empty).reason == "no trace has an error"


def test_no_hit_at_all_is_zero():
    assert process_bench_f1(first_errors(table(([WRONG], [0.9]), ([VALID], [0.1])))).number == 0


def test_draws_equal_the_metric_on_repeated_traces():
    found = first_errors(JUDGED)
    weights = resamples(5, 40)
    for row, value in zip(weights, process_bench_f1.draws(found, weights), strict=True):
        chosen = np.repeat(np.arange(5), row.astype(int))
        columns = (found.gold, found.predicted, found.trace, found.called_wrong)
        part = FirstErrors(*(column[chosen] for column in columns))
        expected = process_bench_f1(part)
        assert (np.isnan(value) and not expected.exists) or value == pytest.approx(expected.number)
