from dataclasses import asdict

import pytest
import torch

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scores import judge_solution
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.training.experiments.filtering.scoring import ChunkScorer
from tests.checkpoints import write_math_shepherd
from tests.training.experiments.filtering.pools import open_pool, sums

LONG = {"instruction": "Q", "output": "word " * 400}


def scored(pool, evaluator, numbers, size=8):
    scorer = ChunkScorer(pool, Scorer(evaluator), size)
    return [asdict(row) for number in numbers for row in scorer(number)]


def test_scores_are_those_of_stepsight_score(tmp_path, evaluator):
    rows = scored(open_pool(tmp_path, sums(20)), evaluator, range(3))
    assert [row["row"] for row in rows] == [*range(1, 21)]
    for row, given in zip(rows, sums(20), strict=True):
        trace = Trace.of(given["instruction"], given["output"].split("\n"))
        verdict = judge_solution(Scorer(evaluator).score_one(trace, "offline").offline)
        assert row["digest"] == trace.digest[:16]
        assert row["steps"] == 2
        assert row["validity"] == pytest.approx(verdict.validity, abs=1e-5)
        assert row["redundancy"] == pytest.approx(verdict.redundancy, abs=1e-5)
    # The evaluator does tell them apart.
    assert len({row["validity"] for row in rows}) == 20


def test_rows_that_cannot_be_scored_keep_their_place(tmp_path, evaluator):
    rows = scored(open_pool(tmp_path, [sums(1)[0], LONG, {"instruction": "Q"}, sums(2)[1]]), evaluator, [0])
    assert [row["row"] for row in rows] == [1, 2, 3, 4]
    assert ["validity" in row for row in rows] == [True, False, False, True]
    assert rows[1]["left_out"].startswith("pool.jsonl line 2: the trace has ")
    assert rows[1]["left_out"].endswith(" tokens, tiny reads at most 256.")
    assert rows[2]["left_out"].startswith("pool.jsonl line 3: the field 'output' is missing")


def test_to_the_last_bit_after_any_other_chunk(tmp_path, evaluator):
    pool = open_pool(tmp_path, sums(48))
    backwards = scored(pool, evaluator, reversed(range(6)))
    assert sorted(backwards, key=lambda row: row["row"]) == scored(pool, evaluator, range(6))


def test_the_fast_pass_is_called_as_if_there_were_one_thread(tmp_path, evaluator, monkeypatch):
    # On two, a score in a hundred or so of mini-bidir's is another in its last bit.
    scorer = ChunkScorer(open_pool(tmp_path, sums(8)), Scorer(evaluator), 8)
    forward, seen = scorer._scorer.forward, []
    run = forward.run
    monkeypatch.setattr(forward, "run", lambda *given: seen.append(torch.get_num_threads()) or run(*given))
    torch.set_num_threads(2)
    try:
        assert len(scorer(0)) == 8
        assert (seen, torch.get_num_threads()) == ([1], 2)
    finally:
        torch.set_num_threads(1)


def test_nothing_is_made_up_of_redundancy(tmp_path):
    write_math_shepherd(tmp_path / "math-shepherd-mistral-7b-prm")
    evaluator = load_evaluator(tmp_path / "math-shepherd-mistral-7b-prm")
    rows = scored(open_pool(tmp_path, sums(3)), evaluator, [0])
    assert [row["redundancy"] for row in rows] == [None, None, None]
    assert all(0 < row["validity"] < 1 for row in rows)


def test_equations_find_fault_with_what_is_wrong_alone(tmp_path):
    rows = [{"instruction": "Add.", "output": text} for text in ("2 + 2 = 4.", "2 + 2 = 5.\nDone.", "It is so.")]
    found = scored(open_pool(tmp_path, rows), load_evaluator("equations"), [0])
    assert [row["validity"] for row in found] == [1, 0, 1]
    assert {row["redundancy"] for row in found} == {None}
