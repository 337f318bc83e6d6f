import numpy as np
import pytest

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.first_error import OUTCOMES
from stepsight.core.metrics.table import SILENT
from stepsight.core.scores import Outputs, StepScores, Thresholds
from stepsight.storage.browse.trace_columns import read_trace_columns
from stepsight.storage.browse.verdict_columns import read_verdicts
from stepsight.storage.judgments.evaluators import amend_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from tests.storage.samples import ERROR, add, evaluator


def read(store, traces, evaluator_id, **options):
    given = {"outputs": options.get("outputs", Outputs.THREE_WAY).value}
    with store.write() as session:
        amend_evaluator(session, evaluator_id, given | {"thresholds": vars(options.get("cut", Thresholds()))})
    with store.read() as session:
        catalogue = read_trace_columns(session, traces[0].dataset_id)
        return read_verdicts(session, catalogue, traces[0].dataset_id, evaluator_id)


def rows(*validity):
    """Validity without redundancy."""
    return StepScores(np.array([[1 - value, 0, value] for value in validity], np.float32))


@pytest.mark.parametrize(
    ("validity", "found", "mistake", "valid"),
    [
        # ERROR's steps have one and two sub-steps; its second step is wrong.
        ((0.9, 0.8, 0.2), 1, "right", 0),
        ((0.9, 0.8, 0.7), SILENT, "missed", 1),
        ((0.1, 0.2, 0.2), 0, "wrong-step", 0),
    ],
)
def test_steps_and_solution(store, validity, found, mistake, valid):
    traces, mini = add(store, [ERROR]), evaluator(store)
    save_judgments(store, mini.id, [Judgment(traces[0], Mode.OFFLINE, rows(*validity))])
    said = read(store, traces, mini.id)
    offline, online = said[Mode.OFFLINE], said[Mode.ONLINE]
    assert offline.validity.tolist() == pytest.approx([min(validity)])
    assert (offline.first_wrong.tolist(), offline.valid.tolist()) == ([found], [valid])
    assert [OUTCOMES[code] for code in offline.mistake] == [mistake]
    # Nothing was said online.
    assert (online.first_wrong.tolist(), online.valid.tolist(), online.mistake.tolist()) == ([SILENT],) * 3
    assert (offline.judged.tolist(), online.judged.tolist()) == ([True], [False])


def test_a_threshold_is_reached_by_what_equals_it_in_single_precision(store):
    traces, mini = add(store, [ERROR]), evaluator(store)
    save_judgments(store, mini.id, [Judgment(traces[0], Mode.OFFLINE, rows(0.7, 0.7, 0.7))])
    for cut, valid in ((0.7, 1), (0.70001, 0)):
        said = read(store, traces, mini.id, cut=Thresholds(validity=cut))[Mode.OFFLINE]
        assert said.valid.tolist() == [valid]
        assert said.first_wrong.tolist() == [SILENT if valid else 0]
