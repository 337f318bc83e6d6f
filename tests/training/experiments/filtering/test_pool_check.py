import pytest

from stepsight.core.errors import UserError
from stepsight.training.experiments.filtering.pool import Pool
from stepsight.training.experiments.filtering.scoring import check_pool
from stepsight.training.runs.progress import unwatched
from tests.messages import refused
from tests.training.experiments.filtering.pools import open_pool, sums, write_rows

BAD = {"instruction": "Q"}
LONG = {"instruction": "Q", "output": "word " * 400}


def checked(tmp_path, evaluator, rows, skip_bad=False):
    return check_pool(open_pool(tmp_path, rows), evaluator, skip_bad, unwatched)


def test_the_rows_are_counted(tmp_path, evaluator):
    seen = []
    pool = open_pool(tmp_path, sums(3))
    assert check_pool(pool, evaluator, False, lambda *told: seen.append(told)) == 3
    assert seen == [("rows checked", number, None) for number in (1, 2, 3)]


def test_one_bad_row_is_told_with_file_and_line(tmp_path, evaluator):
    with refused():
        checked(tmp_path, evaluator, [*sums(2), BAD])


def test_a_row_that_is_too_long_is_told_with_file_and_line(tmp_path, evaluator):
    with refused():
        checked(tmp_path, evaluator, [sums(1)[0], LONG])


def test_the_first_of_many_bad_rows_are_shown(tmp_path, evaluator):
    with pytest.raises(UserError) as told:
        checked(tmp_path, evaluator, [sums(1)[0], *[BAD] * 7, "oops"])
    lines = str(told.value).splitlines()
    assert lines[0] == "8 of 9 rows cannot be scored; fix them, or leave them out with --skip-bad."
    assert [line.split(":")[0] for line in lines[1:6]] == [f"  pool.jsonl line {number}" for number in range(2, 7)]
    assert lines[6:] == ["  and 3 more"]


def test_bad_rows_can_be_left_out(tmp_path, evaluator):
    assert checked(tmp_path, evaluator, [sums(1)[0], BAD, LONG], skip_bad=True) == 3


def test_a_pool_of_nothing_but_benchmark_problems_is_refused(tmp_path, evaluator):
    benchmark = write_rows(tmp_path / "test.jsonl", [{"problem": row["instruction"]} for row in sums(2)])
    pool = Pool.open([write_rows(tmp_path / "pool.jsonl", sums(2))], benchmarks=[benchmark])
    with refused():
        check_pool(pool, evaluator, False, unwatched)


def test_a_pool_of_which_nothing_can_be_scored_is_refused(tmp_path, evaluator):
    with refused():
        checked(tmp_path, evaluator, [LONG, LONG], skip_bad=True)


def test_an_empty_pool_is_refused(tmp_path, evaluator):
    pool = Pool.open([write_rows(tmp_path / "pool.jsonl", [])], ("query", "response"))
    with refused():
        check_pool(pool, evaluator, False, unwatched)
