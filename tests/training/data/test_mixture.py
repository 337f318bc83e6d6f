import json
from collections import Counter

import pytest

from stepsight.core.files.jsonl import format_trace
from stepsight.core.trace import Label, Trace
from stepsight.storage.database.store import open_store
from stepsight.training.data.mixture import Mixture
from stepsight.training.data.sources_config import Data, Source, TraceOrigin
from stepsight.training.synth.corpus import generate
from tests.messages import refused
from tests.storage.samples import add, write_lines


def trace(number, labels=("pos", "neg"), **meta):
    return Trace.of(f"Problem {number}", [f"Step {i}" for i in range(len(labels))], labels, str(number), meta)


@pytest.fixture
def source(tmp_path):
    """A source of the given traces."""

    def source(name, traces, **keys):
        write_lines(tmp_path / name, map(format_trace, traces))
        return Source("jsonl", path=name, **keys)

    return source


@pytest.fixture
def mix(tmp_path):
    def mix(*sources, benchmarks=(), truncation="random", seed=13):
        data = Data(sources, tuple(benchmarks))
        return Mixture(data, tmp_path, truncation, seed)

    return mix


def ids(traces):
    return [trace.id for trace in traces]


def test_sources_follow_one_another(mix, source):
    mixture = mix(source("b", [trace(2), trace(1)]), Source("synthetic", size=2), source("a", [trace(3)]))
    expected = ["2", "1", *ids(generate(0, 2)), "3"]
    assert ids(mixture) == expected
    assert ids(mixture) == expected
    assert mixture.notices() == []
    assert [read["kept"] for read in mixture.record["sources"]] == [2, 2, 1]
    assert mixture.record["traces"] == 5


def test_the_fraction_of_a_weight_is_drawn_for_every_trace(mix, source):
    traces = [trace(i) for i in range(1000)]
    counts = Counter(ids(mix(source("a", traces, weight=2.25))))
    assert len(counts) == 1000
    assert set(counts.values()) == {2, 3}
    # A quarter has a third copy; the standard deviation is 13.7.
    assert sum(counts.values()) == pytest.approx(2250, abs=55)
    fewer = mix(source("a", traces, weight=0.25))
    kept = ids(fewer)
    assert len(kept) == len(set(kept)) == pytest.approx(250, abs=55)
    assert fewer.record["sources"][0]["kept"] == 1000
    assert fewer.record["sources"][0]["copies"] == fewer.record["traces"] == len(kept)
    # The same draws give both.
    assert kept == [id for id, count in counts.items() if count == 3]


def test_the_draw_depends_on_the_seed_and_on_the_place_in_the_source_alone(mix, source):
    traces = [trace(i) for i in range(200)]
    half = source("a", traces, weight=0.5)
    drawn = ids(mix(half))
    assert ids(mix(half)) == drawn
    assert ids(mix(half, seed=14)) != drawn
    # Without the first trace, the others are drawn as before.
    benchmark = source("b", traces[:1])
    left = ids(mix(half, benchmarks=[TraceOrigin("jsonl", path=benchmark.path)]))
    assert left == [id for id in drawn if id != "0"]


def test_the_tokenizer_meets_every_source(mix, source):
    first = source("a", [trace(i) for i in range(5)], weight=4.0)
    mixture = mix(first, source("b", [trace(i) for i in range(5, 7)]), source("c", [trace(7)], weight=0.001))
    assert ids(mixture.heads(3)) == ["0", "5", "7", "1", "6", "2"]
    # That counts for nothing.
    assert len(list(mixture)) >= 22
    assert mixture.record["sources"][0]["read"] == 5


def test_how_many_to_expect_is_known_of_synthetic_traces_alone(mix, source):
    assert mix(Source("synthetic", size=10, weight=1.5), Source("synthetic", size=3, seed=1)).expected == 18
    assert mix(Source("synthetic", size=10), source("a", [trace(1)])).expected is None


def test_records_that_conditions_do_not_want_are_left_out_and_counted(mix, source):
    traces = [
        trace(i, phase=1 + i % 2, finish_reason=reason) for i, reason in enumerate(("solution", "give_up") * 3)
    ]
    mixture = mix(source("a", traces, where={"phase": 1, "finish_reason": ("solution", "found_error")}))
    assert ids(mixture) == ["0", "2", "4"]
    (read,) = mixture.record["sources"]
    assert (read["read"], read["unwanted"], read["kept"]) == (6, 3, 3)
    assert mixture.notices()[0].endswith("6 traces read, 3 by `where` left out.")
    with refused():
        ids(mix(source("a", traces, where={"fase": 1})))
    with refused():
        ids(mix(source("a", traces, where={"phase": 3})))


def test_counts_of_prm800k_stand_beside_the_papers(mix, tmp_path):
    rows = [
        {"question": {"problem": f"q{i}"}, "label": {"steps": [_rated(1), _rated(0)], "finish_reason": "solution"}}
        for i in range(3)
    ]
    write_lines(tmp_path / "p.jsonl", rows)
    mixture = mix(Source("prm800k", path="p.jsonl"))
    list(mixture)
    assert mixture.notices() == [
        "data.sources[0] (prm800k p.jsonl): 3 traces read, left are 3 traces with 6 labelled steps; the paper has "
        "training: 96,280 and 663,101; test: 2,726 and 18,559."
    ]


def _rated(rating):
    return {"completions": [{"text": "s", "rating": rating}], "human_completion": None, "chosen_completion": 0}


def test_benchmark_problems_are_left_out_and_counted(mix, source):
    first = source("a", [trace(i) for i in range(4)], weight=2.0)
    second = source("b", [trace(2), trace(9)])
    benchmarks = [
        TraceOrigin("jsonl", path=source("c", [trace(0), trace(0, name=7), trace(2)]).path),
        TraceOrigin("jsonl", path=source("d", [trace(2)]).path),
    ]
    mixture = mix(first, second, benchmarks=benchmarks)
    assert ids(mixture) == ["1", "1", "3", "3", "9"]
    record = mixture.record
    assert [read["overlapping"] for read in record["sources"]] == [2, 1]
    # Problem 0 once in the first source; Problem 2 in both sources and both benchmarks.
    assert [(read["path"], read["problems"], read["overlapping"]) for read in record["benchmarks"]] == [
        ("c", 2, 3),
        ("d", 1, 2),
    ]
    assert mixture.notices() == [
        "data.sources[0] (jsonl a): 4 traces read, 2 with a benchmark's problem left out.",
        "data.sources[1] (jsonl b): 2 traces read, 1 with a benchmark's problem left out.",
    ]
    assert ids(mixture.heads(9)) == ["1", "9", "3"]


def test_unlabelled_and_unbalanced_traces_are_left_out_and_counted(mix, source):
    traces = [
        trace(0, [None, None]),
        trace(1, ["pos", "pos"]),
        trace(2, ["pos", "pos", "neg"]),
        trace(3, ["pos", "neu", "neg", None]),
        trace(4, ["pos", "pos", "pos", "neg"]),
    ]
    mixture = mix(source("a", traces), source("b", traces, rho=0.5), source("c", traces, rho=0.5, every_label=True))
    assert ids(mixture) == ["1", "2", "3", "4", "2", "3", "3"]
    counts = [(read["read"], read["unlabelled"], read["unbalanced"]) for read in mixture.record["sources"]]
    assert counts == [(5, 1, 0), (5, 1, 2), (5, 1, 3)]
    assert [read["labels"] for read in mixture.record["sources"]] == [
        {"neg": 3, "neu": 1, "pos": 8},
        {"neg": 2, "neu": 1, "pos": 3},
        {"neg": 1, "neu": 1, "pos": 1},
    ]
    assert mixture.notices()[1] == (
        "data.sources[1] (jsonl b): 5 traces read, 1 without a label left out, 2 unbalanced left out."
    )


def test_a_source_of_which_nothing_is_left_is_refused(mix, source):
    mixture = mix(source("a", [trace(1)]), source("b", [trace(2, [None]), trace(3, ["pos"])], rho=0.5))
    with refused():
        list(mixture)


PRMBENCH = {
    "original_question": "Q",
    "modified_question": "Q",
    "original_process": ["a", "b"],
    "modified_process": ["a", "b", "c"],
    "modified_steps": [2],
    "error_steps": [2],
    "reason": "r",
    "idx": "1",
    "question": "Q",
    "classification": "confidence",
}


def test_valid_steps_without_a_label_are_what_the_source_says(mix, tmp_path):
    write_lines(tmp_path / "p", [PRMBENCH])
    (found,) = mix(Source("prmbench", path="p", valid="pos"))
    assert found.labels == (Label.POS, Label.NEG, Label.POS)
    (found,) = mix(Source("prmbench", path="p", valid="unlabelled"))
    assert found.labels == (None, Label.NEG, None)
    with refused():
        list(mix(Source("prmbench", path="p")))


def test_the_balance_counts_the_labels_that_are_learnt_from(mix, tmp_path):
    write_lines(tmp_path / "p", [PRMBENCH])
    # 2 pos and 1 neg, or 1 neg alone.
    assert len(list(mix(Source("prmbench", path="p", valid="pos", rho=0.5)))) == 1
    with refused():
        list(mix(Source("prmbench", path="p", valid="unlabelled", rho=0.5)))


def test_solutions_are_continued_where_their_rest_is_known(mix, source):
    rest = ["Step 0", "Step 1", "Step 2"]
    traces = [trace(0, pre_generated_steps=rest), trace(1), trace(2, finish_reason="solution")]
    mixture = mix(source("a", traces, weight=2.0), truncation="continued")
    assert [(found.id, len(found.steps)) for found in mixture] == [("0", 3)] * 2 + [("1", 2)] * 2 + [("2", 2)] * 2
    read = mixture.record["sources"][0]
    assert [read[key] for key in ("continued", "complete", "not_continued", "kept", "copies")] == [1, 1, 1, 3, 6]
    # Unlabelled steps are no labels.
    assert read["labels"] == {"neg": 3, "neu": 0, "pos": 3}
    assert mixture.notices() == ["data.sources[0] (jsonl a): 3 traces read, 1 continued, 1 could not be."]


def test_the_record_is_json_and_empty_before_anything_is_read(mix, source, tmp_path, monkeypatch):
    monkeypatch.setenv("STEPSIGHT_DB", str(tmp_path / "store.db"))
    with open_store() as store:
        add(store, [trace(8), trace(9, [None])], "mine")
    mixture = mix(
        source("a", [trace(1)]), Source("store", dataset="mine"), Source("synthetic", size=1, seed=2),
        benchmarks=[TraceOrigin("synthetic", size=2, seed=3)],
    )  # fmt: skip
    assert mixture.record["sources"] == []
    assert len(list(mixture)) == 3
    record = mixture.record
    assert json.loads(json.dumps(record)) == record
    assert [read["kind"] for read in record["sources"]] == ["jsonl", "store", "synthetic"]
    assert (record["sources"][1]["traces"], record["sources"][1]["kept"]) == (2, 1)
    assert str(tmp_path) not in json.dumps(record)


def test_real_data(data):
    sources = (
        Source("prm800k", path="prm800k/train.jsonl"),
        Source("prmbench", path="prmbench/prm800k_train_*.jsonl", skip_bad=True, valid="pos"),
    )
    benchmarks = (
        TraceOrigin("prm800k", path="prm800k/test.jsonl"),
        TraceOrigin("mr-math-invalid", path="mr-math/mr-math_invalid_errors.json"),
        TraceOrigin("problems", path="math500/test.jsonl"),
    )
    mixture = Mixture(Data(sources, benchmarks), data, "continued", 13)
    assert len(list(mixture)) == 1407 + 3137
    record = mixture.record
    # A problem of the test file has the first step of a solution at its end; one of PRMBench is in it as well.
    assert [read["overlapping"] for read in record["sources"]] == [12, 8]
    assert [read["overlapping"] for read in record["benchmarks"]] == [20, 0, 0]
    # The public copy of PRM800K keeps no generated rest.
    assert [record["sources"][0][key] for key in ("continued", "complete", "not_continued")] == [0, 189, 1218]
    assert mixture.notices()[1] == (
        "data.sources[1] (prmbench prmbench/prm800k_train_*.jsonl): 3,145 traces read, 58 bad rows left out, "
        "8 with a benchmark's problem left out, 0 continued, 3,137 could not be."
    )


def test_errors_are_planted_in_the_part_before_a_traces_own(mix, source):
    valid = Trace.of("Problem", ["She pays 3 * 4 = 12.", "Then 12 + 1 = 13.", "So 14."], ["pos", "pos", "neg"], "1")
    planted = list(mix(source("a", [valid], corrupt=1.0, weight=40.0)))
    # The step that was wrong by itself is gone; each copy has a draw of its own.
    assert all("So 14." not in trace.substeps for trace in planted)
    assert all({Label.NEG, Label.NEU} & set(trace.labels) for trace in planted)
    assert len({trace.substeps for trace in planted}) > 5
    half = list(mix(source("b", [valid], corrupt=0.5, weight=100.0)))
    untouched = sum(trace.substeps == valid.substeps[:2] for trace in half)
    # One half of a hundred, standard deviation 5; some kinds find nothing to change and leave no copy.
    assert untouched == pytest.approx(50, abs=22)


def test_a_trace_without_two_valid_steps_has_no_place_for_a_planted_error(mix, source):
    mixture = mix(source("a", [trace(1), trace(2, ("pos", "pos", "pos"))], corrupt=1.0, weight=5.0))
    assert {found.id for found in mixture} == {"2"}
    assert mixture.record["sources"][0]["kept"] == 2


def test_an_online_source_stops_at_the_step_it_supervises(mix, source):
    found = list(mix(source("a", [trace(1, ("pos", "pos", "neg"))], online=True, weight=30.0)))
    assert len(found) == 30
    assert {len(copy.steps) for copy in found} == {1, 2, 3}
    assert all(copy.labels[-1] is not None and set(copy.labels[:-1]) <= {None} for copy in found)


def test_a_sample_is_the_same_for_every_seed_and_part_of_a_larger_one(mix, source):
    traces = [trace(number) for number in range(40)]
    small, again, large = (
        ids(mix(source("a", traces, sample=size), seed=seed)) for size, seed in ((10, 13), (10, 7), (30, 13))
    )
    assert len(small) == 10
    assert len(large) == 30
    assert small == again
    assert set(small) < set(large)
    # In the order of the file, and not simply its beginning.
    assert small == sorted(small, key=int) != [str(number) for number in range(10)]


def test_a_sample_is_drawn_of_the_traces_that_are_left(mix, source):
    traces = [trace(number, ("pos", "neg") if number % 2 else ("pos", "pos")) for number in range(20)]
    mixture = mix(source("a", traces, sample=6, rho=0.5))
    assert all(int(id) % 2 for id in ids(mixture))
    (read,) = mixture.record["sources"]
    assert {name: read[name] for name in ("read", "unbalanced", "not_drawn", "kept")} == {
        "read": 20, "unbalanced": 10, "not_drawn": 4, "kept": 6,
    }  # fmt: skip
    assert "4 beyond the sample left out" in mixture.notices()[0]
    assert "not_drawn" not in next(iter_record(mix(source("b", traces))))


def iter_record(mixture):
    list(mixture)
    return iter(mixture.record["sources"])


def test_a_sample_larger_than_what_is_left_is_refused(mix, source):
    with refused():
        list(mix(source("a", [trace(1), trace(2)], sample=3)))
