"""Reading candidates: problems, answers, and what is refused."""

import gzip
import json

from stepsight.training.experiments.reranking.candidates import read_candidates
from tests.cases import each
from tests.messages import refused
from tests.training.experiments.reranking.samples import ROWS, write_rows


def test_candidates_by_problem(tmp_path):
    pool = read_candidates(write_rows(tmp_path / "c.jsonl", ROWS))
    assert [problem.candidates for problem in pool.problems] == [[0, 2, 3, 4], [1]]
    assert [problem.gold for problem in pool.problems] == ["5", "5"]
    assert [candidate.answer for candidate in pool.candidates] == ["6", "5", "5.0", "5", None]
    # "2 + 3 = 6." and "So 6." have 10 and 5 signs.
    assert pool.candidates[0].size == 15
    assert [candidate.line for candidate in pool.candidates] == [1, 2, 3, 4, 5]
    traces = list(pool.traces())
    assert traces[0].substeps == ("2 + 3 = 6.", "So 6.")
    assert traces[2].owners.tolist() == [0, 1, 1]
    assert traces[4].id == f"{tmp_path}/c.jsonl line 5"
    assert [trace.substeps for trace in pool.traces(3)] == [trace.substeps for trace in traces[3:]]
    assert list(pool.traces(5)) == []
    assert [row.get("id") for row in pool.read([4, 0])] == [None, "a"]


def test_blank_lines_other_fields_and_a_mark_at_the_beginning(tmp_path):
    path = tmp_path / "c.jsonl"
    rows = [json.dumps(row | {"more": [1]}) for row in ROWS]
    path.write_bytes("\ufeff".encode() + "\n\n".join(rows).encode() + b"\n \n")
    pool = read_candidates(path)
    assert [candidate.line for candidate in pool.candidates] == [1, 3, 5, 7, 9]
    assert [trace.problem for trace in pool.traces()] == [row["problem"] for row in ROWS]


def test_problems_with_an_id_are_told_apart_by_it(tmp_path):
    twice = [row | {"problem_id": number} for number in (1, "2") for row in ROWS[:1]]
    pool = read_candidates(write_rows(tmp_path / "c.jsonl", [*twice, ROWS[0]]))
    assert [problem.candidates for problem in pool.problems] == [[0], [1], [2]]


def test_it_is_said_of_a_candidate_whether_it_is_right(tmp_path):
    rows = [ROWS[0] | {"correct": True}, ROWS[2] | {"correct": None}]
    pool = read_candidates(write_rows(tmp_path / "c.jsonl", rows))
    assert [candidate.correct for candidate in pool.candidates] == [True, None]


GOOD = ROWS[0]
BAD = [
    {"solution": "So 5."},
    GOOD | {"problem": 5},
    GOOD | {"steps": ["a"]},
    {"problem": "q"},
    {"problem": "q", "solution": "  "},
    {"problem": "q", "solution": None},
    {"problem": "q", "steps": []},
    {"problem": "q", "steps": "a"},
    {"problem": "q", "steps": ["a", 2]},
    {"problem": "q", "steps": ["a", ["b", ""]]},
    GOOD | {"answer": [5]},
    GOOD | {"answer": " "},
    GOOD | {"answer": True},
    GOOD | {"gold": "6"},
    GOOD | {"correct": 1},
    GOOD | {"problem_id": {}},
    [GOOD],
]


@each("row", BAD)
def test_a_bad_row_is_named_by_its_line(tmp_path, row):
    path = write_rows(tmp_path / "c.jsonl", [GOOD, row])
    with refused():
        read_candidates(path)


def test_one_id_for_two_problems_is_refused(tmp_path):
    rows = [ROWS[0] | {"problem_id": "7"}, ROWS[1] | {"problem_id": 7}]
    with refused():
        read_candidates(write_rows(tmp_path / "c.jsonl", rows))


def test_a_file_without_candidates_or_without_json_is_refused(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text("\n\n")
    with refused():
        read_candidates(path)
    path.write_text(json.dumps(GOOD) + '\n{"problem":')
    with refused():
        read_candidates(path)
    path.write_bytes(json.dumps(GOOD).encode() + b"\n\xff\n")
    with refused():
        read_candidates(path)
    # Rows are read again from where they stand in the file, which a compressed one does not allow.
    path.write_bytes(gzip.compress(json.dumps(GOOD).encode()))
    with refused():
        read_candidates(path)
    with refused():
        read_candidates(tmp_path / "none.jsonl")


@each(
    "responses",
    [{"completions": ["So 6.", "So 5."]}, {"generations": [["So 6."]]}, {"response": "So 6."}],
)
def test_a_reference_is_no_candidate_beside_responses(tmp_path, responses):
    row = {"problem": "?", "solution": "2 + 3 = 5.\nSo 5.", "answer": "5", "ground_truth": "So\n5."}
    assert len(read_candidates(write_rows(tmp_path / "sound.jsonl", [row]))) == 1
    with refused():
        read_candidates(write_rows(tmp_path / "rows.jsonl", [row | responses]))
