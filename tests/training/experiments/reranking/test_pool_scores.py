"""Scores of candidates that exist: in score files of either form, kept, and in the store."""

import csv
from dataclasses import replace

import numpy as np
import pytest

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.judgment_record import judgment_record
from stepsight.core.metrics.best_of_n import Aggregation, RankingMethod, Ties
from stepsight.core.scores import Hindsight, Outputs
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.traces.imports import import_file
from stepsight.training.experiments.reranking.accuracy import best_by
from stepsight.training.experiments.reranking.candidates import read_candidates
from stepsight.training.experiments.reranking.pool_scores import read_score_file, stored_scores
from stepsight.training.experiments.reranking.reranking import rerank
from tests.cases import each
from tests.core.test_judgment_record import described
from tests.messages import refused
from tests.training.experiments.reranking.samples import CANDIDATES, SCORES, score_rows, write_rows


@pytest.fixture
def pool(tmp_path):
    return read_candidates(write_rows(tmp_path / "c.jsonl", CANDIDATES))


def read(tmp_path, pool, given, mode=Mode.OFFLINE):
    return read_score_file(write_rows(tmp_path / "s.jsonl", given), pool, mode)


def validities(scored):
    return [one.validity.tolist() for one in scored.scores]


def test_candidates_of_strictprmbench_have_its_answers_and_ids(pool):
    assert [(one.id, one.answer, one.correct) for one in pool.candidates] == [
        ("a/0", "5", True), ("a/1", "6", False), ("b/0", "5", True),
    ]  # fmt: skip
    assert [problem.gold for problem in pool.problems] == ["5", "5"]


def test_rows_are_matched_by_id_in_any_order_and_others_are_counted(tmp_path, pool):
    more = [*score_rows()[::-1], score_rows()[0] | {"candidate_index": 7}]
    scored = read(tmp_path, pool, more)
    assert (scored.evaluator, scored.outputs, scored.unused) == ("qwen_prm", Outputs.VALIDITY, 1)
    assert validities(scored) == SCORES


def test_score_files_alone_are_candidates_without_texts(tmp_path):
    path = write_rows(tmp_path / "s.jsonl", score_rows())
    pool = read_candidates(path)
    assert not pool.has_texts
    assert [(one.answer, one.correct) for one in pool.candidates] == [(None, True), (None, False), (None, True)]
    result = rerank(pool, [read_score_file(path, pool, Mode.OFFLINE)], draws=10)
    # By the product 0.375 against 0.25, by the last 0.75 against 0.25.
    frame = result.frame()
    both = frame[(frame.n == 2) & frame.way.isin(["best-of-n-product", "best-of-n-last"])]
    assert both.accuracy.tolist() == [1.0, 1.0]
    assert "problem" not in next(result.choices(RankingMethod.BEST_OF_N, "official"))
    with refused():
        read_candidates(write_rows(tmp_path / "d.jsonl", [*score_rows(), CANDIDATES[0]]))


def test_our_own_judgments_are_read_in_the_mode_asked_for(tmp_path, pool):
    judgments = []
    for candidate, trace in zip(pool.candidates, pool.traces(), strict=True):
        triangle = Hindsight.from_packed(np.array([[0.5, 0, 0.5], [0.25, 0, 0.75], [0, 0, 1]], np.float32))
        judgment = Judgment(replace(trace, id=candidate.id), Mode.HINDSIGHT, triangle)
        judgments.append(judgment_record(judgment, described(Outputs.THREE_WAY)).model_dump(mode="json"))
    assert validities(read(tmp_path, pool, judgments)) == [[0.75, 1.0]] * 3
    scored = read(tmp_path, pool, judgments, Mode.ONLINE)
    assert (scored.evaluator, validities(scored)) == ("mini", [[0.5, 1.0]] * 3)
    for record in judgments:
        record["mode"], record["hindsight"], record["online"] = "offline", None, None
    with refused():
        read(tmp_path, pool, judgments, Mode.ONLINE)


BAD = {
    "empty": [score_rows()[0] | {"step_scores": []}, *score_rows()[1:]],
    "twice": [*score_rows(), score_rows()[1]],
    "a candidate": score_rows()[::2],
    "a problem": score_rows()[:2],
    "most": score_rows()[:1],
    "steps": [*score_rows()[:2], score_rows()[2] | {"step_scores": [0.5]}],
    "no number": [score_rows()[0] | {"step_scores": [0.5, None]}, *score_rows()[1:]],
    "two evaluators": [*score_rows()[:2], *score_rows("other")[2:]],
    "other ids": [{"id": "x", "scores": [0.5, 0.5]}],
    "no ids": [{"scores": [0.5, 0.5]}],
    "solutions": [{"id": "a/0", "scores": 0.5}],
}


@each("case", list(BAD))
def test_scores_that_do_not_fit_are_refused(tmp_path, pool, case):
    with refused():
        read(tmp_path, pool, BAD[case])


def test_kept_scores_are_of_these_candidates_in_this_mode_and_of_all_of_them(tmp_path, pool):
    head = {"evaluator": "tiny", "fingerprint": "f", "mode": "offline", "candidates": pool.digest}
    kept = [{"line": line, "steps": [[0.5, 0.25, 0.25]] * 2} for line in (1, 2, 3)]
    scored = read(tmp_path, pool, [head, *kept])
    assert (scored.evaluator, scored.outputs, validities(scored)) == ("tiny", Outputs.THREE_WAY, [[0.5, 0.5]] * 3)
    for rows in (
        [head | {"candidates": "0"}, *kept],
        [head | {"mode": "online"}, *kept],
        [head, *kept[:2]],
        [head, *kept[:2], kept[2] | {"steps": [[0.5, 0.25, 0.25]]}],
    ):
        with refused():
            read(tmp_path, pool, rows)


def test_an_evaluator_given_twice_is_refused(tmp_path, pool):
    scored = read(tmp_path, pool, score_rows())
    with refused():
        rerank(pool, [scored, scored])


def test_without_ids_rows_are_matched_by_their_order(tmp_path, pool):
    scored = read(tmp_path, pool, [{"scores": theirs} for theirs in SCORES])
    assert (scored.evaluator, validities(scored)) == ("s", SCORES)
    plain = [{"problem": "q", "steps": row["steps"]} for row in CANDIDATES]
    pool = read_candidates(write_rows(tmp_path / "plain.jsonl", plain))
    assert validities(read(tmp_path, pool, score_rows())) == SCORES


def test_a_dataset_has_its_standing_judgments_for_scores(tmp_path, store):
    import_file(store, "strict-prmbench", write_rows(tmp_path / "c.jsonl", CANDIDATES), "pool")
    for name, scores in (("qwen_prm", SCORES), ("skywork_prm", [theirs[::-1] for theirs in SCORES])):
        import_scores(store, "pool", write_rows(tmp_path / f"{name}.jsonl", score_rows(name, scores)))
    pool, scored = stored_scores(store, "pool", None, Mode.OFFLINE)
    assert [(one.id, one.answer, one.correct) for one in pool.candidates] == [
        ("a/0", "5", True), ("a/1", "6", False), ("b/0", "5", True),
    ]  # fmt: skip
    assert [one.evaluator for one in scored] == ["qwen_prm", "skywork_prm"]
    np.testing.assert_allclose(validities(scored[1]), [theirs[::-1] for theirs in SCORES])
    result = rerank(pool, scored, draws=10)
    chosen = [row["choice"]["id"] for row in result.choices(RankingMethod.BEST_OF_N, "last")]
    assert chosen == ["a/0", "b/0", "a/1", "b/0"]
    assert result.evaluators[0].rule("official") == Aggregation.PRODUCT


def test_a_trace_without_a_judgment_is_named(tmp_path, store):
    import_file(store, "strict-prmbench", write_rows(tmp_path / "c.jsonl", CANDIDATES), "pool")
    import_scores(store, "pool", write_rows(tmp_path / "s.jsonl", score_rows()[:2]))
    for mode in (Mode.OFFLINE, Mode.ONLINE):
        with refused():
            stored_scores(store, "pool", ["qwen_prm"], mode)


@pytest.mark.slow
@each("case", [0, 1])
def test_the_21_published_figures_of_best_of_32(data, case):
    # StrictPRMBench's table: of equal candidates the first is taken.
    folder = data / "prm-scores"
    with open(folder / "published" / "primary_table.csv", encoding="utf-8") as file:
        published = {row["prm"]: row for row in csv.DictReader(file) if row["benchmark"] == "gsm8k"}
    files = sorted((folder / "scores").iterdir())[case::2]
    pool = read_candidates(files[0])
    assert (len(pool), len(pool.problems)) == (16000, 500)
    result = rerank(pool, [read_score_file(path, pool, Mode.OFFLINE) for path in files], Ties.FIRST, draws=10)
    for one in result.evaluators:
        for column, by in (("prod", "product"), ("GM", "geometric-mean"), ("official", "official")):
            found = one.accuracy.of_all(best_by(one.rule(by))).number
            assert found == pytest.approx(float(published[one.name][f"Pass_{column}"]), abs=1e-12), (one.name, by)
