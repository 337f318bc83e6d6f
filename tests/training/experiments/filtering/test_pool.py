import gzip
import hashlib
import json

import pytest

from stepsight.training.experiments.filtering.pool import BadRow, Chunks, Overlap, Pool, Solution
from tests.messages import refused
from tests.training.experiments.filtering.pools import open_pool, sums, write_rows

GOOD = {"instruction": "Q", "output": "One.\nTwo."}


def test_rows_and_what_is_none_come_in_order(tmp_path):
    pool = open_pool(tmp_path, [GOOD, "", {"instruction": "Q"}, "oops", GOOD])
    found = list(pool)
    assert [type(entry) for entry in found] == [Solution, BadRow, BadRow, Solution]
    assert [entry.where for entry in found] == [f"pool.jsonl line {number}" for number in (1, 3, 4, 5)]
    # Read again, it is the same.
    assert [entry.where for entry in pool] == [entry.where for entry in found]


def test_each_file_has_its_own_fields(tmp_path):
    first = write_rows(tmp_path / "a.jsonl", [GOOD])
    second = tmp_path / "b.jsonl.gz"
    second.write_bytes(gzip.compress(json.dumps({"problem": "P", "solution": "S", "answer": "5"}).encode()))
    pool = Pool.open([first, second])
    assert [file.fields for file in pool.files] == [("instruction", "output"), ("problem", "solution")]
    assert [(entry.where, entry.query) for entry in pool] == [("a.jsonl line 1", "Q"), ("b.jsonl.gz line 1", "P")]
    assert [file["name"] for file in pool.as_json()] == ["a.jsonl", "b.jsonl.gz"]
    assert len(set(pool.sha256)) == 2


def test_files_of_one_name_are_told_apart(tmp_path):
    paths = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        paths.append(write_rows(tmp_path / folder / "train.jsonl", [GOOD]))
    assert [entry.where for entry in Pool.open(paths)] == [f"{path} line 1" for path in paths]


def test_fields_can_be_named(tmp_path):
    path = write_rows(tmp_path / "pool.jsonl", [{"prompt": "P", "completion": "C"}])
    assert [entry.query for entry in Pool.open([path], ("prompt", "completion"))] == ["P"]
    with refused():
        Pool.open([path])


def test_a_reference_beside_responses_is_no_response(tmp_path):
    row = {"problem": "P", "solution": "a\nb", "answer": "5", "generations": ["c", "d"]}
    path = write_rows(tmp_path / "pool.jsonl", [row])
    with refused():
        Pool.open([path])
    assert [entry.query for entry in Pool.open([path], ("problem", "solution"))] == ["P"]


@pytest.mark.parametrize("content", ["", "oops\n"])
def test_a_file_without_rows_is_refused(tmp_path, content):
    path = tmp_path / "pool.jsonl"
    path.write_text(content)
    with refused():
        Pool.open([path])


def test_a_file_given_twice_is_refused(tmp_path):
    path = write_rows(tmp_path / "pool.jsonl", [GOOD])
    with refused():
        Pool.open([path, tmp_path / "." / "pool.jsonl"])


def test_problems_of_benchmarks_are_no_candidates(tmp_path):
    paths = []
    for folder, row in (("one", {"problem": "$Q$"}), ("two", {"question": "R"})):
        (tmp_path / folder).mkdir()
        paths.append(write_rows(tmp_path / folder / "test.jsonl", [row]))
    rows = [{**GOOD, "instruction": query} for query in "QPR"]
    # The last is a benchmark's problem in other words.
    pool = write_rows(tmp_path / "pool.jsonl", [*rows, {**GOOD, "instruction": "S", "original_question": "$r$"}])
    first, other, *last = Pool.open([pool], benchmarks=paths)
    digests = [hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in paths]
    assert first == Overlap("pool.jsonl line 1", digests[0])
    assert isinstance(other, Solution)
    assert last == [Overlap(f"pool.jsonl line {number}", digests[1]) for number in (3, 4)]
    with refused():
        Pool.open([pool], benchmarks=[paths[0], write_rows(tmp_path / "copy.jsonl", [{"problem": "$Q$"}])])


@pytest.mark.parametrize("content", [None, '{"answer": "5"}\n', ""])
def test_a_benchmark_that_is_none_is_refused(tmp_path, content):
    pool, benchmark = write_rows(tmp_path / "pool.jsonl", [GOOD]), tmp_path / "test.jsonl"
    if content is not None:
        benchmark.write_text(content)
    with refused():
        Pool.open([pool], benchmarks=[benchmark])


def test_a_file_that_changes_is_noticed(tmp_path):
    pool = open_pool(tmp_path, [GOOD])
    pool.check_unchanged()
    write_rows(tmp_path / "pool.jsonl", [GOOD, GOOD])
    with refused():
        pool.check_unchanged()


def test_chunks_in_any_order(tmp_path):
    chunks = Chunks(open_pool(tmp_path, sums(10)), 4)
    # Rows 0 to 3, 4 to 7 and 8 to 9; the second is asked for again once the last was read.
    for number, rows in ((0, [0, 1, 2, 3]), (2, [8, 9]), (1, [4, 5, 6, 7]), (3, [])):
        assert [entry.query for entry in chunks[number]] == [f"What is {row} + 3?" for row in rows]
