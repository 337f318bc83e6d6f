"""What is chosen, and what its row says."""

import json

import numpy as np
import pytest

from stepsight.core.metrics.best_of_n import NO_ANSWER, Aggregation, RankingMethod
from stepsight.core.scores import Outputs, StepScores
from stepsight.training.experiments.reranking.answers import AnswerComparer
from stepsight.training.experiments.reranking.candidates import read_candidates
from stepsight.training.experiments.reranking.choices import choices, rank
from tests.training.experiments.reranking.samples import ROWS, write_rows


def scores(*validities):
    return StepScores([[1 - v, 0.25 * v, 0.75 * v] for v in validities])


# Least validities of the first problem's candidates: 0.8 (6), 0.5 (5), 0.4 (5), none (no answer); then 0.9.
SCORED = [scores(0.8, 0.9), scores(0.9), scores(0.5, 1.0), scores(0.6, 0.4), None]


@pytest.fixture
def pool(tmp_path):
    return read_candidates(write_rows(tmp_path / "c.jsonl", ROWS))


@pytest.fixture
def ranked(pool):
    with AnswerComparer(symbolic=False) as answers:
        return rank(pool, SCORED, answers)


def rows(pool, ranked, method, by=Aggregation.MIN, outputs=Outputs.THREE_WAY):
    found = list(choices(pool, SCORED, ranked, method, by, outputs))
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    return found


def test_candidates_are_ranked_by_problem(ranked):
    first, second = ranked
    assert first.numbers == (0, 2, 3, 4)
    assert first.groups.tolist() == [0, 1, 1, NO_ANSWER]
    assert first.sizes.tolist() == [15, 10 + 13 + 5, 19 + 6, 17]
    assert first.correct.tolist() == [False, True, True, False]
    np.testing.assert_allclose(np.exp(first.logs[Aggregation.MIN]), [0.8, 0.5, 0.4, 0.0], rtol=1e-6)
    np.testing.assert_allclose(np.exp(first.logs[Aggregation.PRODUCT]), [0.72, 0.5, 0.24, 0.0], rtol=1e-6)
    np.testing.assert_allclose(np.exp(first.logs[Aggregation.LAST]), [0.9, 1.0, 0.4, 0.0], rtol=1e-6)
    assert second.correct.tolist() == [True]


def test_the_choice_of_each_method(pool, ranked):
    best = rows(pool, ranked, RankingMethod.BEST_OF_N)
    assert [row["choice"]["line"] for row in best] == [1, 2]
    assert [row["choice"]["correct"] for row in best] == [False, True]
    # 0.5 + 0.4 for 5 against 0.8 for 6; the better one of 5 is on line 3.
    voted = rows(pool, ranked, RankingMethod.WEIGHTED_VOTE)[0]
    assert voted["choice"]["line"] == 3
    assert voted["votes"] == [
        {"answer": "5.0", "candidates": 2, "weight": 0.9},
        {"answer": "6", "candidates": 1, "weight": 0.8},
    ]
    # By the last step 5 has 1.4 against 0.9, and by the product 0.74 against 0.72.
    assert rows(pool, ranked, RankingMethod.WEIGHTED_VOTE, Aggregation.LAST)[0]["votes"][0]["weight"] == 1.4
    majority = rows(pool, ranked, RankingMethod.MAJORITY)[0]
    assert majority["choice"]["line"] == 3
    assert [vote["weight"] for vote in majority["votes"]] == [2, 1]


def test_a_row_has_the_chosen_solution_and_every_score(pool, ranked):
    row = rows(pool, ranked, RankingMethod.BEST_OF_N)[0]
    assert row["problem"] == "What is 2 + 3?"
    assert row["choice"] == {
        "line": 1, "answer": "6", "correct": False, "min": 0.8, "product": 0.72, "last": 0.9,
        "geometric-mean": 0.848528, "mean": 0.85,
        "validity": [0.8, 0.9], "redundancy": [0.2, 0.225],
        "id": "a", "solution": "2 + 3 = 6.\nSo 6.", "score": 0.8,
    }  # fmt: skip
    assert [candidate["line"] for candidate in row["candidates"]] == [1, 3, 4, 5]
    assert row["candidates"][0]["id"] == "a"
    assert row["candidates"][3] == {"line": 5, "answer": None, "correct": False, "too_long": True}


def test_an_evaluator_of_validity_alone_says_nothing_of_redundancy(pool, ranked):
    row = rows(pool, ranked, RankingMethod.BEST_OF_N, outputs=Outputs.VALIDITY)[0]
    assert "redundancy" not in row["choice"]
    assert all("redundancy" not in candidate for candidate in row["candidates"])


def test_without_a_right_answer_nothing_is_said_of_it(tmp_path):
    plain = [{key: row[key] for key in row if key != "gold"} for row in ROWS]
    pool = read_candidates(write_rows(tmp_path / "c.jsonl", plain))
    with AnswerComparer(symbolic=False) as answers:
        ranked = rank(pool, SCORED, answers)
    assert ranked[0].correct is None
    assert "correct" not in rows(pool, ranked, RankingMethod.BEST_OF_N)[0]["choice"]


def test_the_files_word_on_a_candidate_precedes_its_answer(tmp_path):
    told = [ROWS[0] | {"correct": True}, *ROWS[1:]]
    pool = read_candidates(write_rows(tmp_path / "c.jsonl", told))
    with AnswerComparer(symbolic=False) as answers:
        assert rank(pool, SCORED, answers)[0].correct.tolist() == [True, True, True, False]


def test_a_tiny_product_keeps_its_digits(pool):
    long = StepScores(np.tile([0.5, 0.0, 0.5], (300, 1)))
    with AnswerComparer(symbolic=False) as answers:
        ranked = rank(pool, [long] * 5, answers)
    row = next(choices(pool, [long] * 5, ranked, RankingMethod.BEST_OF_N, Aggregation.PRODUCT, Outputs.THREE_WAY))
    assert row["choice"]["score"] == pytest.approx(0.5**300, rel=1e-5)
    assert row["choice"]["score"] > 0
