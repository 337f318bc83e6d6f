"""Scores of candidates in a file that grows."""

import fcntl
import json

import numpy as np
import pytest

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Mode
from stepsight.core.scoring.scorer import Scorer
from stepsight.training.experiments.reranking.candidates import read_candidates
from stepsight.training.experiments.reranking.scores import score_candidates
from tests.checkpoints import write_evaluator
from tests.messages import refused
from tests.training.experiments.reranking.samples import ROWS, write_rows


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory):
    return load_evaluator(write_evaluator(tmp_path_factory.mktemp("evaluator") / "tiny"))


@pytest.fixture
def scorer(evaluator):
    return Scorer(evaluator, window=2)


@pytest.fixture
def pool(tmp_path):
    rows = [{"problem": f"What is {i} + 3?", "steps": [f"{i} + 3 = 5."] * (i % 3 + 1)} for i in range(7)]
    return read_candidates(write_rows(tmp_path / "c.jsonl", rows))


def numbers(scored):
    return [None if one is None else one.probs.tolist() for one in scored]


def test_the_scores_are_the_scorers_one_row_per_step(tmp_path, scorer):
    pool = read_candidates(write_rows(tmp_path / "c.jsonl", ROWS))
    for mode in (Mode.OFFLINE, Mode.ONLINE):
        scored = score_candidates(scorer, pool, mode, None)
        for judgment, scores in zip(scorer.score(pool.traces(), mode), scored, strict=True):
            expected = judgment.result.by_step(judgment.trace.owners)
            np.testing.assert_array_equal(scores.probs, expected.probs)
    assert [len(scores) for scores in scored] == [2, 1, 2, 2, 1]


def test_a_finished_file_needs_no_pass(tmp_path, scorer, pool):
    path = tmp_path / "s.jsonl"
    first = score_candidates(scorer, pool, Mode.OFFLINE, path)
    text = path.read_bytes()

    class Idle:
        def run(self, inputs, *listeners):
            raise AssertionError("nothing is left to score")

    again = score_candidates(Scorer(scorer.evaluator, Idle(), window=2), pool, Mode.OFFLINE, path)
    assert numbers(again) == numbers(first)
    assert path.read_bytes() == text


@pytest.mark.parametrize("cut", [0.0, 0.1, 0.35, 0.6, 0.99])
def test_a_run_that_was_killed_goes_on_to_the_same_bytes(tmp_path, scorer, pool, cut):
    whole = tmp_path / "whole.jsonl"
    expected = score_candidates(scorer, pool, Mode.OFFLINE, whole)
    text = whole.read_bytes()
    head = text.index(b"\n") + 1
    path = tmp_path / "s.jsonl"
    # At any byte after the first line, in the middle of one too.
    path.write_bytes(text[: head + int(cut * (len(text) - head))])
    counts = []

    def shown(scores, count):
        counts.append(count)
        return scores

    assert numbers(score_candidates(scorer, pool, Mode.OFFLINE, path, shown=shown)) == numbers(expected)
    assert path.read_bytes() == text
    # It goes on from the last whole window of two.
    lines = path.with_name("whole.jsonl").read_bytes()[: head + int(cut * (len(text) - head))].count(b"\n") - 1
    assert counts == [7 - lines // 2 * 2]


def test_scores_of_something_else_are_refused(tmp_path, scorer, pool):
    path = tmp_path / "s.jsonl"
    score_candidates(scorer, pool, Mode.OFFLINE, path)
    before = path.read_bytes()
    with refused():
        score_candidates(scorer, pool, Mode.ONLINE, path)
    other = Scorer(load_evaluator(write_evaluator(tmp_path / "other", seed=1)), window=2)
    with refused():
        score_candidates(other, pool, Mode.OFFLINE, path)
    same_name = Scorer(load_evaluator(write_evaluator(tmp_path / "again" / "tiny", seed=1)), window=2)
    with refused():
        score_candidates(same_name, pool, Mode.OFFLINE, path)
    changed = read_candidates(write_rows(tmp_path / "d.jsonl", ROWS))
    with refused():
        score_candidates(scorer, changed, Mode.OFFLINE, path)
    assert path.read_bytes() == before
    lines = before.decode().splitlines(keepends=True)
    # Rows of two runs at once, and one of something else.
    for rows in ([*lines[:2], *lines[1:-1]], [*lines[:-1], '{"line": 7, "steps": {"a": 1}}\n']):
        path.write_text("".join(rows))
        with refused():
            score_candidates(scorer, pool, Mode.OFFLINE, path)
    path.write_text("2 + 3 = 5\n")
    with refused():
        score_candidates(scorer, pool, Mode.OFFLINE, path)
    assert path.read_text() == "2 + 3 = 5\n"
    with refused():
        score_candidates(scorer, pool, Mode.OFFLINE, tmp_path / "none" / "s.jsonl")


def test_candidates_too_long_stop_it_or_are_left_without_scores(tmp_path, scorer):
    rows = [{"problem": "q", "steps": [text]} for text in ("a", "2 " * 200, "b", "c", "3 " * 200)]
    pool = read_candidates(write_rows(tmp_path / "c.jsonl", rows))
    path = tmp_path / "s.jsonl"
    with refused():
        score_candidates(scorer, pool, Mode.OFFLINE, path)
    told = []
    scored = score_candidates(scorer, pool, Mode.OFFLINE, path, told.append)
    assert [one is None for one in scored] == [False, True, False, False, True]
    assert len(told) == 2
    assert [json.loads(line).get("line") for line in path.read_text().splitlines()[1:]] == [1, 2, 3, 4, 5]
    assert numbers(score_candidates(scorer, pool, Mode.OFFLINE, path)) == numbers(scored)


def test_a_file_that_another_process_writes_is_left_to_it(tmp_path, scorer, pool):
    path = tmp_path / "s.jsonl"
    with open(f"{path}.lock", "a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with refused():
            score_candidates(scorer, pool, Mode.OFFLINE, path)
    assert len(score_candidates(scorer, pool, Mode.OFFLINE, path)) == 7
