"""Files of candidates as datasets: problems, answers, and what is refused."""

import json

from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.experiments.reranking.candidates import CandidateSet, import_candidates
from tests.cases import each
from tests.messages import refused
from tests.training.experiments.reranking.samples import CANDIDATES, ROWS, write_rows


def read(store, tmp_path, rows, name="c"):
    return CandidateSet.read(store, import_candidates(store, write_rows(tmp_path / "c.jsonl", rows), name))


def test_candidates_by_problem(tmp_path, sqlite_store):
    pool = read(sqlite_store, tmp_path, ROWS)
    assert [problem.candidates for problem in pool.problems] == [[0, 2, 3, 4], [1]]
    assert [problem.gold for problem in pool.problems] == ["5", "5"]
    assert [(one.id, one.line, one.answer) for one in pool.candidates] == [
        ("a", 1, "6"), ("line 2", 2, "5"), ("line 3", 3, "5.0"), ("line 4", 4, "5"), ("line 5", 5, None)
    ]  # fmt: skip
    # "2 + 3 = 6." and "So 6." have 10 and 5 signs.
    assert pool.candidates[0].size == 15
    first, third = pool.traces([0, 2])
    assert first.substeps == ("2 + 3 = 6.", "So 6.")
    assert third.owners.tolist() == [0, 1, 1]
    # What pages show as the right answer is not the candidate's own.
    assert first.meta["answer"] == "5"
    # Again, nothing is new; equal rows are different candidates.
    again = read(sqlite_store, tmp_path, ROWS)
    assert [one.trace_id for one in again.candidates] == [one.trace_id for one in pool.candidates]
    assert len(read(sqlite_store, tmp_path, [ROWS[3]] * 3, "equal").candidates) == 3


def test_problems_with_an_id_are_told_apart_by_it(tmp_path, sqlite_store):
    twice = [ROWS[3] | {"problem_id": number} for number in (1, "2")]
    pool = read(sqlite_store, tmp_path, [*twice, ROWS[3]])
    assert [problem.candidates for problem in pool.problems] == [[0], [1], [2]]


def test_the_row_says_whether_a_candidate_is_right(tmp_path, sqlite_store):
    pool = read(sqlite_store, tmp_path, [ROWS[0] | {"correct": True}, ROWS[2] | {"correct": None}])
    assert [candidate.correct for candidate in pool.candidates] == [True, None]


def test_strictprmbench_is_read_from_its_file_and_from_its_dataset(tmp_path, sqlite_store):
    path = write_rows(tmp_path / "c.jsonl", CANDIDATES)
    import_file(sqlite_store, "strict-prmbench", path, "benchmark")
    for dataset in (find_dataset(sqlite_store, "benchmark"), import_candidates(sqlite_store, path)):
        pool = CandidateSet.read(sqlite_store, dataset)
        assert [(one.id, one.answer, one.correct) for one in pool.candidates] == [
            ("a/0", "5", True), ("a/1", "6", False), ("b/0", "5", True),
        ]  # fmt: skip
        assert [problem.gold for problem in pool.problems] == ["5", "5"]


def test_a_dataset_may_have_the_names_of_a_file(tmp_path, sqlite_store):
    rows = [{"id": "x", "problem": "q", "steps": ["a"], "answer": 6, "gold": 5, "correct": "no"}]
    import_file(sqlite_store, "plain", write_rows(tmp_path / "c.jsonl", rows), "mine")
    pool = CandidateSet.read(sqlite_store, find_dataset(sqlite_store, "mine"))
    assert (pool.candidates[0].answer, pool.candidates[0].correct, pool.problems[0].gold) == ("6", None, "5")


GOOD = ROWS[0]
BAD = [
    {"solution": "So 5."},
    GOOD | {"problem": 5},
    GOOD | {"steps": ["a"]},
    {"problem": "q"},
    {"problem": "q", "solution": "  "},
    {"problem": "q", "solution": None},
    {"problem": "q", "steps": []},
    {"problem": "q", "steps": ["a", 2]},
    {"problem": "q", "steps": ["a", ["b", ""]]},
    GOOD | {"answer": [5]},
    GOOD | {"answer": " "},
    GOOD | {"answer": True},
    GOOD | {"gold": "6", "id": "b"},
    GOOD | {"correct": 1},
    GOOD | {"problem_id": {}},
    GOOD | {"solution": "Other."},
    [GOOD],
]


@each("row", BAD)
def test_a_bad_row_is_named_by_its_line(tmp_path, sqlite_store, row):
    with refused():
        read(sqlite_store, tmp_path, [GOOD, row], json.dumps(row))


def test_one_id_for_two_problems_is_refused(tmp_path, sqlite_store):
    with refused():
        read(sqlite_store, tmp_path, [ROWS[0] | {"problem_id": "7"}, ROWS[1] | {"problem_id": 7}])


@each(
    "responses",
    [{"completions": ["So 6.", "So 5."]}, {"generations": [["So 6."]]}, {"response": "So 6."}],
)
def test_a_reference_is_no_candidate_beside_responses(tmp_path, sqlite_store, responses):
    row = {"problem": "?", "solution": "2 + 3 = 5.\nSo 5.", "answer": "5", "ground_truth": "So\n5."}
    assert len(read(sqlite_store, tmp_path, [row], "sound").candidates) == 1
    with refused():
        read(sqlite_store, tmp_path, [row | responses], str(responses))
