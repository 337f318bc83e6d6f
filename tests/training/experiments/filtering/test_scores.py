from dataclasses import asdict

import pytest

from stepsight.training.experiments.filtering.scores import ChunkedScores, ScoredRow, UnscoredRow, copy_scores
from stepsight.training.runs.row_file import format_line
from tests.messages import refused


def scored(row, validity=0.75):
    return ScoredRow(row, "0123456789abcdef", 2, validity, 0.25)


def line(row):
    return format_line(asdict(scored(row)))


def written(folder, rows, total=10):
    """A file of chunks of 4 with that many rows, whole chunks or all."""
    with ChunkedScores(folder, 4, total) as scores:
        while scores.rows < rows:
            first = scores.rows + 1
            scores.add_chunk([scored(row) for row in range(first, min(first + 4, total + 1))])
    return folder / "scores.jsonl"


def test_rows_come_back_as_they_were(tmp_path):
    rows = [ScoredRow(1, "0123456789abcdef", 3, 0.1 + 0.2, 1e-7), UnscoredRow(2, "pool line 2: é")]
    with ChunkedScores(tmp_path, 2, 3) as scores:
        scores.add_chunk(rows)
        assert list(scores.scores()) == rows
        assert (scores.rows, scores.chunks, scores.planned, scores.is_whole) == (2, 1, 2, False)
        scores.add_chunk([ScoredRow(3, "0123456789abcdef", 3, 0.5, None)])
        assert scores.is_whole


# A line is 95 bytes or so; 4 rows are a chunk.
@pytest.mark.parametrize(
    "left", ["", line(9)[:40], line(9), line(9) + line(10)[:-1], line(10), "\x00" * 50, "[]\n", "{}\n"]
)
def test_a_partial_chunk_of_a_killed_process_is_cut_off(tmp_path, left):
    path = written(tmp_path, 8)
    whole = path.read_bytes()
    with open(path, "ab") as file:
        file.write(left.encode())
    with ChunkedScores(tmp_path, 4, 10) as scores:
        assert (scores.rows, scores.chunks) == (8, 2)
    assert path.read_bytes() == whole


def test_a_damaged_line_costs_its_chunk_and_what_follows(tmp_path):
    path = written(tmp_path, 10)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:5], b"oops\n", *lines[6:]]))
    with ChunkedScores(tmp_path, 4, 10) as scores:
        assert scores.rows == 4
    assert path.read_bytes() == b"".join(lines[:4])


def test_a_last_chunk_may_be_short(tmp_path):
    written(tmp_path, 10)
    with ChunkedScores(tmp_path, 4, 10) as scores:
        assert (scores.rows, scores.chunks, scores.is_whole) == (10, 3, True)


@pytest.mark.parametrize("rows", [[1, 2, 3], [1, 2, 3, 5], [1, 2, 3, 3], [2, 3, 4, 5], [1, 2, 3, 4, 5], []])
def test_no_row_is_lost_or_doubled(tmp_path, rows):
    with ChunkedScores(tmp_path, 4, 10) as scores:
        with refused():
            scores.add_chunk([scored(row) for row in rows])
        assert scores.rows == 0


def test_scores_can_be_taken_over(tmp_path):
    path = written(tmp_path, 8)
    (tmp_path / "other").mkdir()
    copy_scores(tmp_path, tmp_path / "other")
    assert (tmp_path / "other" / "scores.jsonl").read_bytes() == path.read_bytes()
    with refused():
        copy_scores(tmp_path / "none", tmp_path / "other")
