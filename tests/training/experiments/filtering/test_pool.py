"""Files as pools: which of their rows are solutions, how they are stored, and which of them are drawn."""

import gzip
import hashlib
import json
import math

import numpy as np

from stepsight.core.scores import Thresholds
from stepsight.storage.traces.queries import iterate_traces, list_left_out
from stepsight.training.experiments.filtering.pool import (
    Pool,
    PoolScores,
    SubsetRule,
    choose,
    import_pool,
    output_row,
    overlaps,
)
from tests.cases import each
from tests.messages import refused
from tests.training.experiments.filtering.pools import sums, write_rows

MMIQC = {"instruction": "Compute 2 + 3.", "output": "We add.\nThe answer is: 5", "source": "MATH"}


def stored(store, dataset):
    return list(iterate_traces(store, dataset.id))


def test_rows_are_written_as_they_were_with_query_and_response(tmp_path, sqlite_store):
    row = MMIQC | {"is_correct": True, "nested": {"a": [1, None]}, "id": 7, "labels": "none"}
    # Equal rows are different solutions of the pool.
    path = write_rows(tmp_path / "pool.jsonl", [row, "", row])
    dataset = import_pool(sqlite_store, [path])
    first, second = stored(sqlite_store, dataset)
    assert (dataset.name, first.id, second.id) == ("pool", "line 1", "line 3")
    assert (first.problem, first.substeps) == ("Compute 2 + 3.", ("We add.", "The answer is: 5"))
    expected = {"query": row["instruction"], "response": row["output"]} | row
    del expected["instruction"], expected["output"]
    assert output_row(first) == expected
    assert [*output_row(first)][:3] == ["query", "response", "source"]


def test_steps_that_are_given_are_not_split(tmp_path, sqlite_store):
    path = write_rows(tmp_path / "pool.jsonl", [{"problem": "Q", "steps": ["One\nstep.", ["a", "b"]]}])
    (trace,) = stored(sqlite_store, import_pool(sqlite_store, [path]))
    assert [step.substeps for step in trace.steps] == [("One\nstep.",), ("a", "b")]
    assert output_row(trace) == {"query": "Q", "response": "One\nstep.\na\nb"}


def test_files_of_one_pool_have_fields_of_their_own(tmp_path, sqlite_store):
    first = write_rows(tmp_path / "a.jsonl", [MMIQC])
    second = tmp_path / "b.jsonl.gz"
    second.write_bytes(gzip.compress(json.dumps({"problem": "P", "solution": "S", "answer": "5"}).encode()))
    for _ in range(2):
        dataset = import_pool(sqlite_store, [first, second], "both")
        found = [(trace.id, trace.problem) for trace in stored(sqlite_store, dataset)]
        assert found == [("a.jsonl line 1", "Compute 2 + 3."), ("b.jsonl.gz line 1", "P")]


def test_fields_that_are_not_recognised_are_named(tmp_path, sqlite_store):
    path = write_rows(tmp_path / "pool.jsonl", [{"ask": "P", "tell": "C"}])
    with refused():
        import_pool(sqlite_store, [path])
    assert [
        trace.problem for trace in stored(sqlite_store, import_pool(sqlite_store, [path], None, ("ask", "tell")))
    ]
    # The solution is a reference beside the responses.
    row = {"problem": "P", "solution": "a\nb", "answer": "5", "generations": ["c", "d"]}
    path = write_rows(tmp_path / "other.jsonl", [row])
    with refused():
        import_pool(sqlite_store, [path])
    (trace,) = stored(sqlite_store, import_pool(sqlite_store, [path], None, ("problem", "solution")))
    assert output_row(trace)["generations"] == ["c", "d"]


@each(
    "change",
    [
        {"output": " \n\t"},
        {"output": None},
        {"output": ["a", 5]},
        {"output": []},
        {"instruction": 5},
        {"query": "x"},
    ],
)
def test_bad_rows_are_refused_or_kept_with_the_dataset(tmp_path, sqlite_store, change):
    path = write_rows(tmp_path / "pool.jsonl", [MMIQC, MMIQC | change])
    fields, name = ("instruction", "output"), json.dumps(change)
    with refused():
        import_pool(sqlite_store, [path], name, fields)
    dataset = import_pool(sqlite_store, [path], name, fields, skip_bad=True)
    assert len(stored(sqlite_store, dataset)) == 1
    assert [(row["file"], row["place"]) for row in list_left_out(sqlite_store, dataset.id)] == [
        ("pool.jsonl", "line 2")
    ]


def test_a_dataset_of_other_solutions_is_no_pool_of_a_file(tmp_path, sqlite_store):
    path = write_rows(tmp_path / "pool.jsonl", sums(3))
    import_pool(sqlite_store, [path])
    for rows in (sums(2), [*sums(2), MMIQC]):
        write_rows(path, rows)
        with refused():
            import_pool(sqlite_store, [path])
    # A file that has grown is the whole pool again.
    assert import_pool(sqlite_store, [write_rows(path, sums(4))]).traces == 4


def drawn(store, dataset, **options):
    return [trace.meta["n"] for trace in Pool.read(store, dataset, **options).traces(store)]


def test_a_sample_is_drawn_of_the_rows_that_meet_the_conditions(tmp_path, sqlite_store):
    rows = [row | {"n": n, "source": "MATH" if n % 3 else "GSM8K"} for n, row in enumerate(sums(90))]
    dataset = import_pool(sqlite_store, [write_rows(tmp_path / "pool.jsonl", rows)])
    assert drawn(sqlite_store, dataset, where=["source=GSM8K"]) == list(range(0, 90, 3))
    sample = drawn(sqlite_store, dataset, where=["source=MATH"], sample=20, seed=3)
    assert len(sample) == 20
    assert sample == sorted(sample)
    assert all(n % 3 for n in sample)
    assert drawn(sqlite_store, dataset, where=["source=MATH"], sample=20, seed=3) == sample
    assert drawn(sqlite_store, dataset, where=["source=MATH"], sample=20, seed=4) != sample
    # Conditions leave rows out of the import too.
    only = import_pool(sqlite_store, [tmp_path / "pool.jsonl"], "only", where=["source=MATH"])
    assert only.traces == 60
    assert drawn(sqlite_store, only, where=["source=MATH"], sample=20, seed=3) == sample
    for options in ({"where": ["source=AIME"]}, {"where": ["source"]}, {"sample": 91}, {"sample": 0}):
        with refused():
            drawn(sqlite_store, dataset, **options)


def test_problems_of_benchmarks_are_marked(tmp_path, sqlite_store):
    paths = []
    for folder, row in (("one", {"problem": "$Q$"}), ("two", {"question": "R"})):
        (tmp_path / folder).mkdir()
        paths.append(write_rows(tmp_path / folder / "test.jsonl", [row]))
    rows = [{**MMIQC, "instruction": query} for query in "QPR"]
    # The last is a benchmark's problem in other words.
    rows.append({**MMIQC, "instruction": "S", "original_question": "$r$"})
    dataset = import_pool(sqlite_store, [write_rows(tmp_path / "pool.jsonl", rows)])
    pool = Pool.read(sqlite_store, dataset, benchmarks=paths)
    assert [pool.problem_of.get(id) for id in pool.trace_ids] == [0, None, 1, 1]
    assert [trace.problem for trace in pool.traces(sqlite_store)] == ["P"]
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]
    assert [one.records[0]["files"][0]["sha256"] for one in pool.benchmarks] == digests
    for content in (None, '{"answer": "5"}\n', ""):
        benchmark = tmp_path / "test.jsonl"
        if content is not None:
            benchmark.write_text(content)
        with refused():
            Pool.read(sqlite_store, dataset, benchmarks=[benchmark])


#              row  1     2     3     4     5     6     7     8     9    10
VALIDITY = [0.90, 0.49, 0.50, 0.80, 0.95, 0.60, 0.99, 0.70, 0.10, 0.85]
REDUNDANCY = [0.10, 0.02, 0.14, 0.15, 0.01, 0.05, 0.40, 0.12, 0.03, 0.11]
# Valid from 0.5: not 2 and 9. Redundant from 0.15: 4 and 7. Left are:
PASSING = [1, 3, 5, 6, 8, 10]


def scores(validity=VALIDITY, redundancy=REDUNDANCY):
    return PoolScores(np.arange(1, len(validity) + 1), np.array(validity), np.array(redundancy))


def chosen(found=None, **rule):
    return {name: subset.rows.tolist() for name, subset in choose(found or scores(), SubsetRule(**rule)).items()}


def test_the_papers_rules():
    subsets = choose(scores(), SubsetRule())
    assert {name: len(subset.rows) for name, subset in subsets.items()} == dict.fromkeys(
        ("val+red", "val", "red", "random"), 6
    )
    assert subsets["val+red"].rows.tolist() == PASSING
    # By validity: 0.99 (7), 0.95 (5), 0.90 (1), 0.85 (10), 0.80 (4), 0.70 (8).
    assert subsets["val"].rows.tolist() == [1, 4, 5, 7, 8, 10]
    assert (subsets["val"].edge, subsets["val"].tied) == (0.70, 1)
    # By redundancy: 0.01 (5), 0.02 (2), 0.03 (9), 0.05 (6), 0.10 (1), 0.11 (10).
    assert subsets["red"].rows.tolist() == [1, 2, 5, 6, 9, 10]
    assert (subsets["red"].edge, subsets["red"].tied) == (0.11, 1)
    assert len(set(subsets["random"].rows.tolist())) == 6
    # Of 1, 3, 5, 6, 8, 10: val has 1, 5, 8, 10, and red 1, 5, 6, 10.
    shared = overlaps(subsets)
    assert (shared["val+red and val"], shared["val+red and red"]) == (4, 4)
    assert len(shared) == 6


def test_thresholds_are_as_in_the_paper_at_the_edge():
    # Valid is >= 0.5, redundant >= 0.15: one float less is neither.
    below = [math.nextafter(0.5, 0), 0.5, 0.5]
    found = scores(below, [0.0, 0.15, math.nextafter(0.15, 0)])
    assert found.passing(Thresholds()).tolist() == [False, False, True]


def test_other_thresholds():
    # Valid from 0.9: 1, 5, 7; redundant from 0.5: none.
    rule = {"thresholds": Thresholds(0.9, 0.5)}
    assert chosen(**rule)["val+red"] == [1, 5, 7]
    assert chosen(**rule)["val"] == [1, 5, 7]


def test_a_smaller_match_draws_from_those_that_pass():
    subsets = chosen(match=3)
    assert {len(rows) for rows in subsets.values()} == {3}
    assert set(subsets["val+red"]) < set(PASSING)
    assert subsets["val"] == [1, 5, 7]
    assert subsets["red"] == [2, 5, 9]


def test_more_than_there_are_gives_all_there_are():
    # 6 pass, so that no subset can have 8 if all are to be of one size.
    assert {len(rows) for rows in chosen(match=8).values()} == {6}
    # Without val+red only the solutions themselves are the limit.
    assert {name: len(rows) for name, rows in chosen(match=8, by=("val", "random")).items()} == {
        "val": 8,
        "random": 8,
    }
    assert chosen(match=50, by=("red",)) == {"red": [*range(1, 11)]}


def test_one_subset_is_matched_to_val_and_red_that_is_not_written():
    assert chosen(by=("val",)) == {"val": [1, 4, 5, 7, 8, 10]}


def test_nothing_that_passes_is_told():
    with refused():
        choose(scores(), SubsetRule(thresholds=Thresholds(0.999, 0.15)))


def test_the_order_of_scoring_changes_nothing():
    found = scores()
    order = [7, 2, 9, 0, 4, 6, 1, 8, 3, 5]
    shuffled = PoolScores(found.rows[order], found.validity[order], found.redundancy[order])
    assert chosen(shuffled, match=4) == chosen(match=4)


def test_the_seed_changes_what_is_left_to_chance_alone():
    one, same, other = chosen(match=4), chosen(match=4), chosen(match=4, seed=3)
    assert one == same
    assert one["random"] != other["random"]
    assert one["val+red"] != other["val+red"]
    assert (one["val"], one["red"]) == (other["val"], other["red"])


def test_chance_favours_no_row():
    found = scores([0.9] * 10, [0.0] * 10)
    drawn = {name: np.zeros(11, int) for name in ("val+red", "val", "red", "random")}
    for seed in range(400):
        for name, rows in chosen(found, match=3, seed=seed).items():
            drawn[name][rows] += 1
    # 3 of 10 in each of 400 draws: 120 for each row, standard deviation sqrt(400 · 0.3 · 0.7) = 9.2. All are tied,
    # so that val and red are left to chance too.
    for counts in drawn.values():
        assert counts[1:].sum() == 1200
        assert np.all(np.abs(counts[1:] - 120) < 4 * 9.2), counts
    assert choose(found, SubsetRule(match=3))["val"].tied == 10


def test_subsets_are_drawn_independently():
    found = scores([0.9] * 100, [0.0] * 100)
    shared = [overlaps(choose(found, SubsetRule(match=20, seed=seed))) for seed in range(50)]
    for pair in shared[0]:
        # 20 · 20 / 100 = 4 on average, with a standard deviation of 1.6, of 50 draws 0.23.
        assert abs(np.mean([counts[pair] for counts in shared]) - 4) < 1, pair


def test_without_redundancy_nothing_passes():
    found = scores([0.9, 0.8], [math.nan, math.nan])
    assert not found.passing(Thresholds()).any()
    assert chosen(found, by=("val", "random"), match=1)["val"] == [1]
    assert not SubsetRule(by=("val", "random"), match=1).needs_redundancy
    assert SubsetRule(by=("val", "random")).needs_redundancy
    assert SubsetRule(by=("red",), match=1).needs_redundancy
