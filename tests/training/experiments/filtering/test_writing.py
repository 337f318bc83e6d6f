import hashlib

import numpy as np
import pytest

from stepsight.core.scoring.scorer import Scorer
from stepsight.training.experiments.filtering.output import subset_path, write_subsets
from stepsight.training.experiments.filtering.scores import ChunkedScores
from stepsight.training.experiments.filtering.scoring import ChunkScorer
from stepsight.training.experiments.filtering.subsets import ChosenSubset
from stepsight.training.runs.progress import unwatched
from tests.messages import refused
from tests.training.experiments.filtering.pools import lines, open_pool, sums, write_rows

SUBSETS = {"val": ChosenSubset(np.array([1, 4])), "random": ChosenSubset(np.array([4, 5, 6]))}


@pytest.fixture
def scored(tmp_path, evaluator):
    """A pool of six rows with its scores."""
    pool = open_pool(tmp_path, sums(6))
    with ChunkedScores(tmp_path, 8, 6) as scores:
        scores.add_chunk(ChunkScorer(pool, Scorer(evaluator), 8)(0))
        yield pool, scores


def test_rows_are_in_the_order_of_the_pool(tmp_path, scored):
    hashes = write_subsets(tmp_path, *scored, SUBSETS, unwatched)
    for name, rows in {"val": [1, 4], "random": [4, 5, 6]}.items():
        found = lines(subset_path(tmp_path, name))
        # Row 1 of the pool is about 0.
        assert [row["query"] for row in found] == [f"What is {row - 1} + 3?" for row in rows]
        assert [set(row) for row in found] == [{"query", "response", "source"}] * len(rows)
        assert hashes[name] == hashlib.sha256(subset_path(tmp_path, name).read_bytes()).hexdigest()


def test_a_pool_that_changed_is_refused_and_nothing_is_written(tmp_path, scored):
    rows = sums(6)
    rows[2]["output"] += " Or not."
    write_rows(tmp_path / "pool.jsonl", rows)
    with refused():
        write_subsets(tmp_path, *scored, SUBSETS, unwatched)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pool.jsonl", "scores.jsonl"]


def test_a_change_that_no_score_depends_on_is_refused_too(tmp_path, scored):
    write_rows(tmp_path / "pool.jsonl", [row | {"source": "another"} for row in sums(6)])
    with refused():
        write_subsets(tmp_path, *scored, SUBSETS, unwatched)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pool.jsonl", "scores.jsonl"]
