"""What is chosen by the scores of the store, and what its row says."""

import csv
import json

import numpy as np
import pytest

from stepsight.core.judgment import Mode
from stepsight.core.metrics.best_of_n import NO_ANSWER, Aggregation, RankingMethod, Ties
from stepsight.core.scores import Outputs, StepScores
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.experiments.answers import AnswerComparer
from stepsight.training.experiments.reranking.accuracy import Way
from stepsight.training.experiments.reranking.reranking import (
    CandidateSet,
    RankedPool,
    Reranking,
    import_candidates,
    rank,
    rerank,
    rule_of,
)
from tests.cases import each
from tests.messages import refused
from tests.training.experiments.reranking.samples import CANDIDATES, ROWS, SCORES, score_rows, write_rows


def scores(*validities):
    return StepScores([[1 - v, 0.25 * v, 0.75 * v] for v in validities])


# Least validities of the first problem's candidates: 0.8 (6), 0.5 (5), 0.4 (5), none (no answer); then 0.9.
SCORED = [scores(0.8, 0.9), scores(0.9), scores(0.5, 1.0), scores(0.6, 0.4), None]


@pytest.fixture
def ranked(tmp_path, sqlite_store, monkeypatch):
    monkeypatch.setattr("stepsight.training.experiments.answers.find_spec", lambda name: None)

    def ranked(rows=ROWS, scored=SCORED, outputs=Outputs.THREE_WAY, by=Aggregation.MIN):
        path = write_rows(tmp_path / "c.jsonl", rows)
        pool = CandidateSet.read(sqlite_store, import_candidates(sqlite_store, path))
        # A file is read once; a chosen candidate comes from the store.
        path.unlink()
        with AnswerComparer() as answers:
            found = rank(pool, scored, by, answers)
        ranking = RankedPool("tiny", by, outputs, scored, found, None)
        return Reranking(pool, Mode.OFFLINE, (ranking,), "as texts", Ties.RANDOM)

    return ranked


def chosen(result, method):
    rows = list(result.choices(method))
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    return rows


def test_candidates_are_ranked_by_problem(ranked):
    first, second = ranked().evaluators[0].ranked
    assert first.numbers == (0, 2, 3, 4)
    assert first.groups.tolist() == [0, 1, 1, NO_ANSWER]
    assert first.sizes.tolist() == [15, 10 + 13 + 5, 19 + 6, 17]
    assert first.correct.tolist() == [False, True, True, False]
    np.testing.assert_allclose(np.exp(first.logs), [0.8, 0.5, 0.4, 0.0], rtol=1e-6)
    assert second.correct.tolist() == [True]


def test_the_choice_of_each_method(ranked):
    result = ranked()
    best = chosen(result, RankingMethod.BEST_OF_N)
    assert [row["choice"]["line"] for row in best] == [1, 2]
    assert [row["choice"]["correct"] for row in best] == [False, True]
    # 0.5 + 0.4 for 5 against 0.8 for 6; the better one of 5 is on line 3.
    voted = chosen(result, RankingMethod.WEIGHTED_VOTE)[0]
    assert voted["choice"]["line"] == 3
    assert voted["votes"] == [
        {"answer": "5.0", "candidates": 2, "weight": 0.9},
        {"answer": "6", "candidates": 1, "weight": 0.8},
    ]
    # By the last step 5 has 1.4 against 0.9, and by the product 0.74 against 0.72.
    by_last = ranked(by=Aggregation.LAST)
    assert chosen(by_last, RankingMethod.WEIGHTED_VOTE)[0]["votes"][0]["weight"] == 1.4
    majority = chosen(result, RankingMethod.MAJORITY)[0]
    assert majority["choice"]["line"] == 3
    assert [vote["weight"] for vote in majority["votes"]] == [2, 1]


def test_a_row_has_the_chosen_solution_and_its_scores(ranked):
    first, second = chosen(ranked(), RankingMethod.BEST_OF_N)
    assert first["problem"] == "What is 2 + 3?"
    assert first["choice"] == {
        "line": 1, "answer": "6", "correct": False, "score": 0.8, "validity": [0.8, 0.9],
        "redundancy": [0.2, 0.225], "id": "a", "solution": "2 + 3 = 6.\nSo 6.",
    }  # fmt: skip
    assert [candidate["line"] for candidate in first["candidates"]] == [1, 3, 4, 5]
    assert first["candidates"][3] == {"id": "line 5", "line": 5, "answer": None, "correct": False, "too_long": True}
    assert second["choice"]["steps"] == ["4 + 1 = 5."]


def test_what_is_not_known_is_not_in_the_row(ranked):
    plain = [{key: row[key] for key in row if key != "gold"} for row in ROWS]
    (row, _) = chosen(ranked(plain, outputs=Outputs.VALIDITY), RankingMethod.BEST_OF_N)
    assert all({"redundancy", "correct"}.isdisjoint(one) for one in (row["choice"], *row["candidates"]))


def test_the_files_word_on_a_candidate_precedes_its_answer(ranked):
    (first, _) = ranked([ROWS[0] | {"correct": True}, *ROWS[1:]]).evaluators[0].ranked
    assert first.correct.tolist() == [True, True, True, False]


def test_a_tiny_product_keeps_its_digits(ranked):
    long = StepScores(np.tile([0.5, 0.0, 0.5], (300, 1)))
    (row, _) = chosen(ranked(scored=[long] * 5, by=Aggregation.PRODUCT), RankingMethod.BEST_OF_N)
    assert row["choice"]["score"] == pytest.approx(0.5**300, rel=1e-5)
    assert row["choice"]["score"] > 0


@pytest.fixture
def benchmark(tmp_path, sqlite_store):
    import_file(sqlite_store, "strict-prmbench", write_rows(tmp_path / "c.jsonl", CANDIDATES), "pool")
    return find_dataset(sqlite_store, "pool")


def test_evaluators_choose_by_their_standing_judgments(tmp_path, sqlite_store, benchmark):
    for name, given in (("qwen_prm", SCORES), ("skywork_prm", [steps[::-1] for steps in SCORES])):
        import_scores(sqlite_store, "pool", write_rows(tmp_path / f"{name}.jsonl", score_rows(name, given)))
    pool = CandidateSet.read(sqlite_store, benchmark)
    result = rerank(pool, evaluators_of(sqlite_store, benchmark.id), by="last", draws=10)
    assert [ranking.name for ranking in result.evaluators] == ["qwen_prm", "skywork_prm"]
    validities = [steps.validity.tolist() for steps in result.evaluators[1].scores]
    np.testing.assert_allclose(validities, [steps[::-1] for steps in SCORES])
    assert [row["choice"]["id"] for row in chosen(result, RankingMethod.BEST_OF_N)] == [
        "a/0", "b/0", "a/1", "b/0",
    ]  # fmt: skip
    # By the last 0.75 against 0.25.
    frame = result.frame()
    assert frame[(frame.evaluator == "qwen_prm") & (frame.n == 2) & (frame.way == "best-of-n")].accuracy.item() == 1
    assert [rule_of(name, "official") for name in ("qwen_prm", "skywork_prm")] == ["product", "mean"]
    with refused():
        rule_of("ours", "official")


def test_a_candidate_without_scores_is_named_or_chosen_last(tmp_path, sqlite_store, benchmark):
    import_scores(sqlite_store, "pool", write_rows(tmp_path / "s.jsonl", score_rows()[1:]))
    pool, evaluators = CandidateSet.read(sqlite_store, benchmark), evaluators_of(sqlite_store, benchmark.id)
    with refused():
        rerank(pool, evaluators)
    result = rerank(pool, evaluators, skip_missing=True, draws=10)
    assert [row["choice"]["id"] for row in chosen(result, RankingMethod.BEST_OF_N)] == ["a/1", "b/0"]
    with refused():
        rerank(pool, evaluators, Mode.ONLINE, skip_missing=True)


@pytest.mark.slow
def test_the_21_published_figures_of_best_of_32(tmp_path, sqlite_store, data):
    # StrictPRMBench's table: of equal candidates the first is taken. Its texts are not needed, only their numbers.
    folder = data / "prm-scores"
    with open(folder / "published" / "primary_table.csv", encoding="utf-8") as file:
        published = {row["prm"]: row for row in csv.DictReader(file) if row["benchmark"] == "gsm8k"}
    files = sorted((folder / "scores").iterdir())
    rows = [json.loads(line) for line in files[0].read_text(encoding="utf-8").splitlines()]
    candidates = [
        {key: row[key] for key in ("problem_id", "candidate_index", "is_correct")}
        | {"problem": row["problem_id"], "steps": ["x"] * len(row["step_scores"])}
        for row in rows
    ]
    import_file(sqlite_store, "strict-prmbench", write_rows(tmp_path / "c.jsonl", candidates), "strict")
    for path in files:
        import_scores(sqlite_store, "strict", path)
    dataset = find_dataset(sqlite_store, "strict")
    pool = CandidateSet.read(sqlite_store, dataset)
    assert (len(pool.candidates), len(pool.problems)) == (16000, 500)
    for column, by in (("prod", "product"), ("GM", "geometric-mean"), ("official", "official")):
        result = rerank(pool, evaluators_of(sqlite_store, dataset.id), by=by, ties=Ties.FIRST, draws=10)
        assert len(result.evaluators) == len(files)
        for ranking in result.evaluators:
            accuracy = ranking.accuracy.of_all(Way.BEST).number
            assert accuracy == pytest.approx(float(published[ranking.name][f"Pass_{column}"]), abs=1e-12), by


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
