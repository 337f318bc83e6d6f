"""Files as pools: which of their rows are solutions, how they are stored, and which of them are drawn."""

import gzip
import hashlib
import json

from stepsight.storage.traces.queries import iterate_traces, list_left_out
from stepsight.training.experiments.filtering.pool import Pool, import_pool, output_row
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
