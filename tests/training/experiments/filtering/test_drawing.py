"""Pools that are drawn: rows that meet conditions, and samples of them."""

import json

import pytest

from stepsight.core.errors import UserError
from stepsight.training.experiments.filtering.drawing import Draw, draw_rows
from stepsight.training.experiments.filtering.output import summary
from stepsight.training.experiments.filtering.pool import BadRow, Pool, Solution
from stepsight.training.experiments.filtering.run import filter_pool
from tests.messages import refused
from tests.training.experiments.filtering.pools import files, lines, sums, wanted, write_rows

ROWS = [{"source": "MATH" if number % 3 else "GSM8K", "n": number} for number in range(90)]


def drawn(draw, rows=ROWS):
    halves = draw_rows((rows[:40], rows[40:]), draw)
    assert [len(part) for part in halves.chosen] == [40, len(rows) - 40]
    return [row["n"] for row, chosen in zip(rows, [*halves.chosen[0], *halves.chosen[1]], strict=True) if chosen]


def test_rows_that_meet_the_conditions_are_the_pool():
    assert drawn(Draw(("source=GSM8K",))) == list(range(0, 90, 3))
    assert drawn(Draw(("source!=GSM8K", "n=1,2,3"))) == [1, 2]


def test_a_sample_is_drawn_of_the_rows_that_meet_them():
    found = drawn(Draw(("source=MATH",), 20, seed=3))
    assert len(found) == 20
    assert found == sorted(found)
    assert all(number % 3 for number in found)
    assert drawn(Draw(("source=MATH",), 20, seed=3)) == found
    assert drawn(Draw(("source=MATH",), 20, seed=4)) != found
    assert drawn(Draw((), 90)) == list(range(90))


def test_every_row_is_as_likely_as_any_other():
    counts = [0] * 90
    for seed in range(400):
        for number in drawn(Draw((), 30, seed)):
            counts[number] += 1
    # A third of 400, of which the standard deviation is 9.4.
    assert all(95 < count < 172 for count in counts)


def test_rows_that_cannot_be_read_are_not_drawn():
    bad = [UserError("bad"), *ROWS[:5]]
    halves = draw_rows((bad,), Draw((), 5))
    assert halves.chosen[0].tolist() == [False, *[True] * 5]
    assert (halves.read, halves.met) == (6, 5)


@pytest.mark.parametrize(
    "draw",
    [Draw(("source=AIME",)), Draw(("sauce=MATH",)), Draw(("source",)), Draw((), 91), Draw(("source=GSM8K",), 31)],
)
def test_an_impossible_draw_is_refused(draw):
    with refused():
        drawn(draw)


def test_a_pool_holds_what_was_drawn_and_bad_rows_only_where_nothing_is(tmp_path):
    path = write_rows(
        tmp_path / "pool.jsonl", ["nonsense", *sums(10), {"instruction": "", "output": "x", "source": "é"}]
    )
    whole = list(Pool.open([path]))
    assert [type(entry) for entry in whole] == [BadRow, *[Solution] * 10, BadRow]
    chosen = list(Pool.open([path], draw=Draw((), 4, seed=1)))
    assert len(chosen) == 4
    assert all(entry in whole for entry in chosen)
    # A row that can be read and is no solution is a row of the pool.
    met = list(Pool.open([path], draw=Draw(("source=é",))))
    assert [type(entry) for entry in met] == [*[Solution] * 10, BadRow]


def test_a_filtering_scores_what_is_drawn_alone(tmp_path, tiny):
    write_rows(tmp_path / "pool.jsonl", [row | {"source": "AB"[number % 2]} for number, row in enumerate(sums(40))])
    asked = wanted(tmp_path, tiny, where=("source=B",), sample=12, seed=5)
    manifest = filter_pool(asked)
    assert len(lines(tmp_path / "out" / "scores.jsonl")) == 12
    assert manifest["pool"]["rows"] == 12
    assert manifest["pool"]["drawn"] == {
        "where": ["source=B"], "size": 12, "seed": 5, "of": 40, "met": 20, "left_out": {"source=B": 20},
    }  # fmt: skip
    assert {row["source"] for name in manifest["subsets"] for row in lines(tmp_path / "out" / f"{name}.jsonl")} == {
        "B"
    }
    assert summary(manifest, tmp_path).startswith("The pool: 12 rows of 20 rows that meet source=B, of 40.\n")
    before = files(tmp_path / "out")
    assert filter_pool(asked) == json.loads(before["manifest.json"])
    assert files(tmp_path / "out") == before


def test_scores_of_another_draw_are_not_taken(tmp_path, tiny):
    filter_pool(wanted(tmp_path, tiny, sample=12))
    with refused():
        filter_pool(wanted(tmp_path, tiny, name="other", scores=tmp_path / "out", sample=13))
    with refused():
        filter_pool(wanted(tmp_path, tiny, name="other", scores=tmp_path / "out"))


def test_a_sample_has_a_row_at_least(tmp_path, tiny):
    with refused():
        filter_pool(wanted(tmp_path, tiny, sample=0))
