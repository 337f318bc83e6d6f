"""Whole filterings: what is scored, chosen and written, and that the same is done once."""

import hashlib
from pathlib import Path

import pytest

from stepsight.core.evaluators import loading
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scores import judge_solution
from stepsight.core.scoring.scorer import Scorer
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.traces.queries import iterate_traces
from stepsight.training.experiments.filtering.pool import SUBSETS, import_pool
from stepsight.training.experiments.filtering.run import Filtering, filter_pool, summary
from tests.checkpoints import write_evaluator, write_math_shepherd
from tests.messages import refused
from tests.training.experiments.filtering.pools import lines, sums, write_rows

LONG = {"instruction": "Q", "output": "word " * 400}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The folder of an evaluator that reads at most 256 tokens."""
    return write_evaluator(tmp_path_factory.mktemp("evaluators") / "tiny")


@pytest.fixture
def pool(tmp_path, sqlite_store):
    return import_pool(sqlite_store, [write_rows(tmp_path / "pool.jsonl", sums(40))])


def options(folder, evaluator, **changes):
    """A tiny random evaluator calls hardly a solution not redundant, so the threshold of redundancy is high."""
    return Filtering(
        **({"output": folder, "evaluator": str(evaluator), "validity": 0.3, "redundancy": 0.6} | changes)
    )


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_four_subsets_of_one_size(tmp_path, sqlite_store, pool, tiny):
    seen = []
    manifest = filter_pool(sqlite_store, pool, options(tmp_path / "out", tiny), lambda *done: seen.append(done))
    assert seen == [("solutions scored", number, 40) for number in range(1, 41)]
    scorer = Scorer(load_evaluator(tiny))
    scores = [judge_solution(one.offline) for one in scorer.score(iterate_traces(sqlite_store, pool.id))]
    passing = [row for row, one in enumerate(scores) if one.validity >= 0.3 and one.redundancy < 0.6]
    # Neither all nor none, or the test would show nothing.
    assert 4 <= len(passing) <= 36
    assert manifest["size"] == len(passing) == manifest["solutions"]["valid_and_not_redundant"]
    subsets = {name: lines(tmp_path / "out" / f"{name}.jsonl") for name in SUBSETS}
    queries = [row["instruction"] for row in sums(40)]
    rows = {name: [queries.index(row["query"]) for row in subset] for name, subset in subsets.items()}
    assert rows["val+red"] == passing
    assert rows["val"] == sorted(sorted(range(40), key=lambda row: -scores[row].validity)[: len(passing)])
    assert rows["red"] == sorted(sorted(range(40), key=lambda row: scores[row].redundancy)[: len(passing)])
    assert rows["random"] == sorted(rows["random"])
    assert manifest["shared"]["val and red"] == len({*rows["val"]} & {*rows["red"]})


def test_the_manifest_says_how_it_was_chosen(tmp_path, sqlite_store, pool, tiny):
    manifest = filter_pool(sqlite_store, pool, options(tmp_path / "out", tiny))
    digests = "".join(f"{trace.digest}\n" for trace in iterate_traces(sqlite_store, pool.id))
    assert manifest["pool"] == {
        "dataset": "pool", "sha256": hashlib.sha256(digests.encode()).hexdigest(), "rows": 40,
    }  # fmt: skip
    assert manifest["evaluator"] == {
        "name": "tiny",
        "format": "stepsight",
        "outputs": "three-way",
        "fingerprint": load_evaluator(tiny).fingerprint,
    }
    assert manifest["thresholds"] == {"validity": 0.3, "redundancy": 0.6}
    assert (manifest["match"], manifest["seed"], manifest["mode"]) == ("val+red", 0, "offline")
    assert manifest["left_out"] == {"rows": 0, "first": []}
    for name in SUBSETS:
        content = (tmp_path / "out" / f"{name}.jsonl").read_bytes()
        assert manifest["subsets"][name]["sha256"] == hashlib.sha256(content).hexdigest()
    # Where files lay concerns nobody else.
    assert str(tmp_path).encode() not in b"".join(files(tmp_path / "out").values())


def test_what_is_done_is_not_repeated_and_scores_are_used_again(tmp_path, sqlite_store, pool, tiny, monkeypatch):
    def stop(what, done, total):
        if done == 17:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        filter_pool(sqlite_store, pool, options(tmp_path / "out", tiny), stop)
    assert not (tmp_path / "out").exists()
    seen = []
    first = filter_pool(sqlite_store, pool, options(tmp_path / "out", tiny), lambda *done: seen.append(done))
    assert seen[-1] == ("solutions scored", 23, 23)
    before = files(tmp_path / "out")
    assert set(before) == {"run.json", "manifest.json", *(f"{name}.jsonl" for name in SUBSETS)}
    seen.clear()
    watch = lambda *done: seen.append(done)  # noqa: E731
    # What is needed of the evaluator is its fingerprint, for which no network is built.
    monkeypatch.setattr(loading.StepModel, "__init__", lambda *_: pytest.fail("the evaluator is loaded"))
    assert filter_pool(sqlite_store, pool, options(tmp_path / "out", tiny), watch) == first
    assert filter_pool(sqlite_store, pool, options(tmp_path / "two", tiny, match=5, seed=7), watch)["size"] == 5
    assert (files(tmp_path / "out"), seen) == (before, [])


def test_a_folder_of_another_run_is_refused(tmp_path, sqlite_store, pool, tiny):
    filter_pool(sqlite_store, pool, options(tmp_path / "out", tiny))
    another = write_evaluator(tmp_path / "another", seed=1)
    for changes in ({"redundancy": 0.7}, {"sample": 39}):
        with refused():
            filter_pool(sqlite_store, pool, options(tmp_path / "out", tiny, **changes))
    with refused():
        filter_pool(sqlite_store, pool, options(tmp_path / "out", another))
    grown = import_pool(sqlite_store, [write_rows(tmp_path / "pool.jsonl", sums(41))])
    with refused():
        filter_pool(sqlite_store, grown, options(tmp_path / "out", tiny))


def test_solutions_that_are_too_long_are_refused_or_left_out(tmp_path, sqlite_store, tiny):
    rows = [*sums(9), {"instruction": "Q", "output": " "}, LONG, *sums(12)[9:]]
    path = write_rows(tmp_path / "pool.jsonl", rows)
    pool = import_pool(sqlite_store, [path], skip_bad=True)
    with refused():
        filter_pool(sqlite_store, pool, options(tmp_path / "out", tiny))
    assert not (tmp_path / "out").exists()
    manifest = filter_pool(sqlite_store, pool, options(tmp_path / "out", tiny, skip_bad=True))
    assert (manifest["pool"]["rows"], manifest["solutions"]["scored"], manifest["left_out"]["rows"]) == (13, 12, 2)
    empty, too_long = manifest["left_out"]["first"]
    assert empty == (
        "pool.jsonl line 10: the column 'output' is ' ', expected a list of steps, or a solution as one text."
        " Choose another column."
    )
    assert too_long.startswith("trace 'line 11' has ")
    only = import_pool(sqlite_store, [write_rows(tmp_path / "long.jsonl", [LONG])])
    with refused():
        filter_pool(sqlite_store, only, options(tmp_path / "long", tiny, skip_bad=True))


def test_problems_of_a_benchmark_are_left_out_and_counted(tmp_path, sqlite_store, pool, tiny):
    (tmp_path / "sums").mkdir()
    rows = [{"problem": "what is $7 + 3$?"}, {"question": "Why?"}]
    benchmark = write_rows(tmp_path / "sums" / "test.jsonl", rows)
    given = options(tmp_path / "out", tiny, benchmarks=(benchmark,), by=("random",), match=40)
    manifest = filter_pool(sqlite_store, pool, given)
    digest = hashlib.sha256(benchmark.read_bytes()).hexdigest()
    assert manifest["benchmarks"] == [{"name": "sums/test.jsonl", "sha256": digest, "problems": 2, "rows": 1}]
    assert (manifest["solutions"]["scored"], manifest["left_out"]["rows"]) == (39, 0)
    queries = {row["query"] for row in lines(tmp_path / "out" / "random.jsonl")}
    assert len(queries) == 39
    assert "What is 7 + 3?" not in queries
    write_rows(benchmark, [{"problem": row["instruction"]} for row in sums(40)])
    with refused():
        filter_pool(sqlite_store, pool, options(tmp_path / "all", tiny, benchmarks=(benchmark,)))


def test_an_evaluator_of_validity_alone(tmp_path, sqlite_store, pool):
    folder = tmp_path / "math-shepherd-mistral-7b-prm"
    write_math_shepherd(folder)
    for changes in ({}, {"by": ("red",), "match": 3}, {"by": ("both",)}, {"by": ("val",), "match": 0}):
        with refused():
            filter_pool(sqlite_store, pool, options(tmp_path / "out", folder, **changes))
    manifest = filter_pool(sqlite_store, pool, options(tmp_path / "out", folder, by=("val", "random"), match=3))
    assert manifest["evaluator"]["outputs"] == "validity"
    assert [len(lines(tmp_path / "out" / f"{name}.jsonl")) for name in manifest["subsets"]] == [3, 3]
    assert set(manifest["solutions"]) == {"scored", "valid"}


def test_scores_of_an_evaluator_that_cannot_run_here(tmp_path, sqlite_store):
    pool = import_pool(sqlite_store, [write_rows(tmp_path / "pool.jsonl", sums(3))])
    scores = [{"id": f"line {number}", "scores": [0.5, number / 4]} for number in (1, 2, 3)]
    import_scores(sqlite_store, "pool", write_rows(tmp_path / "scores.jsonl", scores), "theirs")
    given = options(tmp_path / "out", "theirs", by=("val",), match=1)
    assert filter_pool(sqlite_store, pool, given)["subsets"]["val"]["tied_at_edge"] == 2
    with refused():
        filter_pool(sqlite_store, pool, options(tmp_path / "none", "nobody"))


def test_steps_that_equations_do_not_judge_count_as_faultless(tmp_path, sqlite_store):
    rows = [{"instruction": "Add.", "output": text} for text in ("2 + 2 = 4.", "2 + 2 = 5.\nDone.", "It is so.")]
    pool = import_pool(sqlite_store, [write_rows(tmp_path / "pool.jsonl", rows)])
    given = options(tmp_path / "out", "equations", by=("val",), match=2)
    assert filter_pool(sqlite_store, pool, given)["subsets"]["val"]["edge"] == 1
    assert [row["response"] for row in lines(tmp_path / "out" / "val.jsonl")] == ["2 + 2 = 4.", "It is so."]


MANIFEST = {
    "pool": {"rows": 5276},
    "evaluator": {"name": "mini-bidir"},
    "thresholds": {"validity": 0.5, "redundancy": 0.15},
    "solutions": {"scored": 5276, "valid": 5000, "redundant": 300, "valid_and_not_redundant": 4800},
    "left_out": {"rows": 0, "first": []},
    "benchmarks": [{"name": "c/test.jsonl", "rows": 0}],
    "match": "val+red",
    "size": 4800,
    "subsets": {"val+red": {}, "val": {}},
}
JUDGED = (
    "5,276 solutions judged by mini-bidir: 5,000 valid (from 0.5), 300 redundant (from 0.15), 4,800 valid and not"
    " redundant."
)
WRITTEN = "4,800 of them in each of val+red, val."


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [JUDGED, WRITTEN]),
        ({"match": 100, "size": 100}, [JUDGED, WRITTEN.replace("4,800", "100")]),
        (
            {"match": 5000},
            [
                JUDGED,
                WRITTEN,
                "5,000 were requested, and there are no more to choose from: all subsets have as many.",
            ],
        ),
        ({"left_out": {"rows": 1}}, [JUDGED, WRITTEN, "1 row was left out; out/manifest.json says why."]),
        (
            {"benchmarks": [{"name": "a/test.jsonl", "rows": 1}, {"name": "b/test.jsonl", "rows": 1200}]},
            [
                *(JUDGED, WRITTEN, "1 row is a problem of a/test.jsonl, and left out."),
                "1,200 rows are problems of b/test.jsonl, and left out.",
            ],
        ),
        (
            {"solutions": {"scored": 2, "valid": 1}},
            ["2 solutions judged by mini-bidir: 1 valid (from 0.5).", WRITTEN],
        ),
        (
            {"pool": {"rows": 12, "drawn": {"where": ["source=B"], "met": 20}}},
            ["The pool: 12 of 20 solutions that meet source=B.", JUDGED, WRITTEN],
        ),
    ],
)
def test_a_manifest_in_lines(changes, expected):
    assert summary(MANIFEST | changes, Path("out")).splitlines() == expected
