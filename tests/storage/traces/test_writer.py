import pytest

from stepsight.core.trace import Step, Trace
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset, get_trace, iterate_traces, list_datasets
from stepsight.storage.traces.writer import SAVED, TraceWriter, save_trace
from tests.cases import each
from tests.messages import refused
from tests.storage.samples import CLEAN, ERROR, MISSING, SAMPLES, add, many


def test_traces_come_back_as_they_were(store):
    stored = add(store)
    for trace, before in zip(stored, SAMPLES, strict=True):
        assert trace.digest == before.digest
        assert trace.steps == before.steps
        assert (trace.id, trace.problem, trace.meta) == (before.id, before.problem, before.meta)
        assert trace.labels == before.labels
        assert [step.valid for step in trace.steps] == [step.valid for step in before.steps]


def test_texts_of_every_script_and_meta_of_every_shape_come_back(store):
    problem = "π ≤ 4? 数学 🙂 \t' \" \\ % _ ; -- \u202e \r\n"
    meta = {"nested": {"z": [1, 2.5, None, True, {"é": "\\u0000"}]}, "big": 10**30, "": []}
    trace = add(store, [Trace("ид 1", problem, (Step((problem,)),), meta)])[0]
    assert (trace.id, trace.problem, trace.substeps) == ("ид 1", problem, (problem,))
    assert trace.meta == meta
    assert list(trace.meta) == list(meta)


def test_counts_and_positions(store):
    add(store, many(3))
    with store.write() as session:
        writer = TraceWriter(session, "sums", "plain", "more.jsonl")
        five = many(5)
        writer.add([("row", trace) for trace in five[:4]])
        writer.add([("row", trace) for trace in [five[4], five[3], five[0]]])
        # 3 and 4 are new, 0, 1, 2 and 0 again were stored before, 3 is repeated.
        assert (writer.added, writer.unchanged, writer.repeated) == (2, 4, 1)
        assert (writer.read, writer.total) == (7, 5)
    assert [(trace.id, trace.position) for trace in add(store, [])] == [(str(i), i) for i in range(5)]


def test_meta_is_kept_as_first_stored(store):
    add(store, [CLEAN])
    assert add(store, [Trace(CLEAN.id, CLEAN.problem, CLEAN.steps, {"generator": "other"})])[0].meta == CLEAN.meta


@pytest.mark.parametrize(
    "other", [Trace(ERROR.id, "Other?", ERROR.steps), Trace.of(ERROR.problem, ["x"], id=ERROR.id)]
)
def test_the_same_id_with_other_content_is_refused(store, other):
    with refused():
        add(store, [ERROR, other])
    add(store, [ERROR])
    with refused():
        add(store, [other])
    assert add(store, [])[0].digest == ERROR.digest


def test_the_same_id_in_another_dataset_is_another_trace(store):
    assert add(store, [ERROR])[0].trace_id != add(store, [ERROR], "other")[0].trace_id


def test_numbers_that_json_does_not_have_are_stored_as_null(store):
    meta = {"score": float("nan"), "deep": {"a": [float("-inf"), 1.5]}}
    (stored,) = add(store, [Trace("a", "p", (Step(("s",)),), meta)])
    assert stored.meta == {"score": None, "deep": {"a": [None, 1.5]}}


@each(
    "id, meta",
    [
        ("", {}),
        ("a\x00", {}),
        ("\ud800", {}),
        ("x" * 501, {}),
        ("a", {"text": ["\\\x00"]}),
        ("a", {"text": "\udfff"}),
    ],
)
def test_traces_that_cannot_be_stored_are_refused(store, id, meta):
    with refused():
        add(store, [Trace(id, "p", (Step(("s",)),), meta)])


def test_the_longest_id_in_any_script(store):
    assert add(store, [Trace("🙂" * 500, "p", (Step(("s",)),))])[0].id == "🙂" * 500


def test_a_dataset_keeps_its_kind(store):
    add(store)
    with refused(), store.write() as session:
        TraceWriter(session, "sums", "other", "f")


def test_statistics_are_refreshed_on_the_way(sqlite_store, monkeypatch):
    refreshed = []
    monkeypatch.setattr(TraceWriter, "_refresh", lambda self: refreshed.append(self.added))
    rows = [("row", trace) for trace in many(5000)]
    with sqlite_store.write() as session:
        writer = TraceWriter(session, "d", "plain", "f")
        for start in range(0, 5000, 500):
            writer.add(rows[start : start + 500])
        writer.finish("f", "0" * 64)
    assert refreshed == [1000, 4000, 5000]
    assert find_dataset(sqlite_store, "d").traces == 5000


def test_a_saved_trace_is_in_the_dataset_for_such(store):
    trace, is_new = save_trace(store, MISSING)
    assert is_new
    assert (trace.dataset, trace.steps, trace.problem) == (SAVED, MISSING.steps, MISSING.problem)
    assert trace.id == MISSING.digest[:16]
    assert get_trace(store, trace.trace_id) == trace


def test_the_same_trace_twice_is_one(store):
    trace, _ = save_trace(store, MISSING)
    assert save_trace(store, MISSING) == (trace, False)
    save_trace(store, CLEAN)
    assert find_dataset(store, SAVED).traces == 2
    assert [trace.problem for trace in iterate_traces(store, trace.dataset_id)] == [
        MISSING.problem,
        CLEAN.problem,
    ]


def test_gold_makes_another_trace_and_another_dataset_another_copy(store):
    bare = type(ERROR).of(ERROR.problem, [step.substeps for step in ERROR.steps])
    save_trace(store, ERROR)
    assert save_trace(store, bare)[1]
    assert save_trace(store, ERROR, "mine")[1]
    assert {dataset.name: dataset.traces for dataset in list_datasets(store)} == {SAVED: 2, "mine": 1}


def test_an_imported_dataset_is_left_as_it_is(store, tmp_path):
    path = tmp_path / "plain.jsonl"
    path.write_text('{"id": "1", "problem": "q", "steps": ["a"]}\n')
    import_file(store, "jsonl", path, "plain")
    with refused():
        save_trace(store, MISSING, "plain")
    assert find_dataset(store, "plain").traces == 1
