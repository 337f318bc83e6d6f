import numpy as np
import pytest

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.first_error import OUTCOMES
from stepsight.core.metrics.table import SILENT
from stepsight.core.scores import Outputs, StepScores, Thresholds
from stepsight.core.trace import Step, Trace
from stepsight.storage.browse.columns import GOLD, TraceColumns, read_trace_columns, read_verdicts
from stepsight.storage.judgments.evaluators import amend_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from tests.storage.samples import ERROR, SAMPLES, add, evaluator


def late(n, first, id):
    """A trace of `n` steps with its first error at the 0-based `first`."""
    steps = tuple(Step((f"s{i}",), valid=i != first) for i in range(n))
    return Trace(id, "p", steps, {"question_type": "algebra", "family": "f"})


def test_a_dataset_as_columns(store):
    add(store, [late(2, 0, "x")], "elsewhere")
    traces = add(store, [*SAMPLES, late(3, 2, "late"), late(1, 0, "only")])
    with store.read() as session:
        found = read_trace_columns(session, traces[0].dataset_id)
    assert found.trace_ids.tolist() == [trace.trace_id for trace in traces]
    assert found.counts.tolist() == [2, 1, 2, 3, 3, 1]
    assert found.sizes.tolist() == [3, 1, 2, 4, 3, 1]
    assert found.first_error.tolist() == [1, SILENT, SILENT, 1, 2, 0]
    assert [GOLD[code] for code in found.gold] == ["error", "clean", "missing", "error", "error", "error"]
    assert [found.group_names[code] if code >= 0 else "" for code in found.group] == [
        "", "hand", "", "", "algebra", "algebra",
    ]  # fmt: skip
    # The second of 2 and of 3 steps is in the middle, the third of 3 late, an only one early.
    assert found.third.tolist() == [1, SILENT, SILENT, 1, 2, 0]
    assert found.nbytes > 6 * 8


def test_places():
    names = ("a", "b", "c")
    one = dict.fromkeys(("counts", "label", "valid", "substeps"), np.ones(3, np.int64))
    found = TraceColumns(trace_ids=np.array([7, 3, 9]), ids=names, digests=names, groups=names, **one)
    assert found.places(np.array([9, 7, 4, 99, 3])).tolist() == [2, 0, SILENT, SILENT, 1]


@pytest.mark.parametrize("dataset_id", [1, 99])
def test_an_empty_dataset(store, dataset_id):
    add(store, [])
    with store.read() as session:
        found = read_trace_columns(session, dataset_id)
    assert (len(found), found.group_names, found.gold.tolist()) == (0, (), [])
    assert found.places(np.array([1])).tolist() == [SILENT]


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
