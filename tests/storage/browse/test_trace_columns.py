import numpy as np
import pytest

from stepsight.core.metrics.table import SILENT
from stepsight.core.trace import Step, Trace
from stepsight.storage.browse.filter_columns import read_relabelled
from stepsight.storage.browse.trace_columns import GOLD, TraceColumns, read_trace_columns
from tests.storage.labelling.samples import TRACES, campaign, label_all, people, take
from tests.storage.samples import SAMPLES, add


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


def test_traces_that_people_labelled(store):
    made = campaign(store, TRACES, overlap=2)
    first, second = people(store, 2)
    with store.read() as session:
        assert read_relabelled(session, made.dataset_id).tolist() == []
    task = take(store, made, first)
    label_all(store, task, first, ["pos", "neg"])
    # Somebody who has only begun gave no labels yet; two who labelled the same trace make it one.
    label_all(store, take(store, made, second), second, ["pos", "neg"])
    take(store, made, second)
    with store.read() as session:
        found = read_relabelled(session, made.dataset_id)
        assert read_relabelled(session, made.dataset_id + 1).tolist() == []
    assert found.tolist() == [task.trace.trace_id]
