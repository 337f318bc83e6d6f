"""`stepsight rerank`."""

import json
import os
import time

import pytest

from stepsight.app.commands.cli import main
from tests.checkpoints import write_evaluator, write_math_shepherd
from tests.forked import Forked
from tests.training.experiments.reranking.samples import CANDIDATES, ROWS, SCORES, score_rows, write_rows


@pytest.fixture
def given(tmp_path):
    """The arguments for a tiny evaluator and the sample, and where the output goes."""
    write_rows(tmp_path / "c.jsonl", ROWS)
    folder = write_evaluator(tmp_path / "tiny")
    out = tmp_path / "out.jsonl"
    return ["rerank", str(tmp_path / "c.jsonl"), "--evaluator", str(folder), "--output", str(out)]


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_choice_for_each_problem_and_how_often_it_is_right(given, tmp_path, capsys):
    assert main([*given, "--report", str(tmp_path / "report")]) == 0
    rows = read(tmp_path / "out.jsonl")
    assert [row["problem"] for row in rows] == ["What is 2 + 3?", "What is 4 + 1?"]
    for row in rows:
        best = max(row["candidates"], key=lambda candidate: candidate["min"])
        assert row["choice"]["line"] == best["line"]
        assert (row["evaluator"], row["mode"], row["method"], row["by"]) == ("tiny", "offline", "best-of-n", "min")
    out = capsys.readouterr().out
    assert "2 problems, up to 4 candidates each." in out
    # Two of four candidates are right in one problem, one of one in the other.
    (line,) = [line for line in out.splitlines() if line.startswith("random candidate  ") and "75.0" in line]
    assert line.count("75.0 [50.0, 100.0]") == 3
    assert "Answers compared as texts and numbers" in out
    assert (tmp_path / "report" / "report.html").is_file()
    assert len(read(tmp_path / "out.scores.jsonl")) == 6


def test_choosing_again_needs_no_scoring_and_scores_can_be_elsewhere(given, tmp_path, monkeypatch):
    elsewhere = ["--scores", str(tmp_path / "kept.jsonl")]
    assert main([*given, *elsewhere]) == 0
    assert not (tmp_path / "out.scores.jsonl").exists()
    kept = (tmp_path / "kept.jsonl").read_bytes()
    monkeypatch.setattr("stepsight.core.scoring.packed.PackedForward.run", None)
    assert main([*given, *elsewhere, "--method", "weighted-vote", "--by", "product"]) == 0
    assert (tmp_path / "kept.jsonl").read_bytes() == kept
    row = read(tmp_path / "out.jsonl")[0]
    assert row["choice"]["answer"] == row["votes"][0]["answer"]
    assert row["by"] == "product"


def test_standard_output_holds_choices_alone(given, tmp_path, capsys):
    assert main([*given[:-1], "-", "--mode", "online"]) == 0
    told = capsys.readouterr()
    assert [json.loads(line)["mode"] for line in told.out.splitlines()] == ["online", "online"]
    assert "2 problems" in told.err
    assert not list(tmp_path.glob("*.scores.jsonl"))


def test_a_format_of_others_is_told_and_says_nothing_of_redundancy(tmp_path, capsys):
    write_rows(tmp_path / "c.jsonl", ROWS)
    write_math_shepherd(tmp_path / "math-shepherd", card={"format": "math-shepherd"})
    arguments = ["--evaluator", str(tmp_path / "math-shepherd"), "--output", str(tmp_path / "out.jsonl")]
    assert main(["rerank", str(tmp_path / "c.jsonl"), *arguments]) == 0
    assert "math-shepherd format" in capsys.readouterr().err
    assert "redundancy" not in (tmp_path / "out.jsonl").read_text()


def test_without_right_answers_there_are_choices_and_no_figures(given, tmp_path, capsys):
    write_rows(tmp_path / "c.jsonl", [{key: row[key] for key in row if key != "gold"} for row in ROWS])
    assert main(given) == 0
    assert capsys.readouterr().out == ""
    assert len(read(tmp_path / "out.jsonl")) == 2
    assert main([*given, "--report", str(tmp_path / "report")]) == 2
    assert "no line has gold or correct" in capsys.readouterr().err


def test_bad_rows_are_named_and_nothing_is_written(given, tmp_path, capsys):
    write_rows(tmp_path / "c.jsonl", [ROWS[0], {"problem": "q"}])
    assert main(given) == 2
    assert "c.jsonl line 2: neither of 'steps' and 'solution' found" in capsys.readouterr().err
    assert not (tmp_path / "out.jsonl").exists()
    write_rows(tmp_path / "c.jsonl", [{"problem": "q", "steps": ["a"]}])
    assert main([*given, "--method", "majority"]) == 2
    assert "no candidate has an answer, and majority counts answers" in capsys.readouterr().err


def test_files_that_would_overwrite_each_other_are_refused(given, tmp_path, capsys):
    before = (tmp_path / "c.jsonl").read_bytes()
    for more in (["--output", given[1]], ["--scores", given[1]], ["--scores", given[-1]]):
        assert main([*given, *more]) == 2
        assert "candidates, choices and scores need files of their own" in capsys.readouterr().err
    assert (tmp_path / "c.jsonl").read_bytes() == before
    assert main([*given, "--output", os.devnull]) == 0
    assert not os.path.exists(f"{os.devnull}.scores.jsonl")


def test_candidates_too_long_are_refused_or_named(given, tmp_path, capsys):
    write_rows(tmp_path / "c.jsonl", [*ROWS, {"problem": "q", "steps": ["2 " * 200]}])
    assert main(given) == 2
    assert "c.jsonl line 6' has" in capsys.readouterr().err
    assert main([*given, "--skip-too-long"]) == 0
    told = capsys.readouterr()
    assert "left out: trace" in told.err
    assert "1 too long" in told.err
    assert read(tmp_path / "out.jsonl")[2]["choice"]["too_long"]
    assert "1 problem without a right answer" in told.out


@pytest.mark.slow
def test_a_run_that_was_killed_goes_on_to_the_same_choices(tmp_path):
    rows = [row | {"problem": f"{row['problem']} {number}"} for number in range(160) for row in ROWS]
    write_rows(tmp_path / "c.jsonl", rows)
    folder = write_evaluator(tmp_path / "tiny")
    out, scores = tmp_path / "out.jsonl", tmp_path / "out.scores.jsonl"
    arguments = ["rerank", str(tmp_path / "c.jsonl"), "--evaluator", str(folder), "--output", str(out)]
    process = Forked(None, arguments, os.environ | {"OMP_NUM_THREADS": "1"})
    try:
        while not scores.exists() or scores.stat().st_size < 4000:
            assert process.returncode is None
            time.sleep(0.005)
    finally:
        process.kill()
        process.communicate()
    assert not out.exists()
    before = scores.read_bytes()
    assert before.count(b"\n") < len(rows)
    assert main(arguments) == 0
    went_on = out.read_bytes()
    # From the last whole window of 16 on: nearly all that was there stays.
    kept = before.count(b"\n") - 18
    assert before.splitlines()[:kept] == scores.read_bytes().splitlines()[:kept]
    scores.unlink()
    out.unlink()
    assert main(arguments) == 0
    assert out.read_bytes() == went_on


def test_a_name_that_no_file_can_hold_is_written_in_escapes(given, tmp_path):
    rows = [row | {"id": "\\ud800"} for row in ROWS]
    text = "".join(f"{json.dumps(row)}\n" for row in rows).replace("\\\\ud800", "\\ud800")
    (tmp_path / "c.jsonl").write_text(text)
    assert main(given) == 0
    assert {row["choice"].get("id") for row in read(tmp_path / "out.jsonl")} == {"\ud800"}


@pytest.fixture
def two(tmp_path):
    """A pool of StrictPRMBench, and the scores of two evaluators as arguments."""
    write_rows(tmp_path / "c.jsonl", CANDIDATES)
    files = []
    for name, scores in (("qwen_prm", SCORES), ("skywork_prm", [theirs[::-1] for theirs in SCORES])):
        files += ["--scores", str(write_rows(tmp_path / f"{name}.jsonl", score_rows(name, scores)))]
    return files


def test_scores_of_several_evaluators_are_read_from_files(two, tmp_path, capsys):
    given = ["rerank", str(tmp_path / "c.jsonl"), *two, "--output", str(tmp_path / "out.jsonl")]
    assert main([*given, "--by", "official", "--report", str(tmp_path / "report")]) == 0
    # By the product 0.375 against 0.25, by the mean 0.625 each, of which the first is chosen.
    assert [(row["evaluator"], row["by"], row["choice"]["id"]) for row in read(tmp_path / "out.jsonl")] == [
        ("qwen_prm", "product", "a/0"), ("qwen_prm", "product", "b/0"),
        ("skywork_prm", "mean", "a/0"), ("skywork_prm", "mean", "b/0"),
    ]  # fmt: skip
    out = capsys.readouterr().out
    # Right for sure, and half the time.
    for line in (
        "qwen_prm     product        100.0 [100.0, 100.0]",
        "skywork_prm  mean             75.0 [50.0, 100.0]",
    ):
        assert line in out
    assert main(["rerank", *two, "--output", str(tmp_path / "out.jsonl"), "--method", "majority"]) == 2
    assert "no candidate has an answer, and majority counts answers" in capsys.readouterr().err


def test_the_scores_of_a_dataset_are_those_of_the_store(two, tmp_path, capsys):
    store = ["--db", str(tmp_path / "store.db")]
    assert main(["import", "strict-prmbench", str(tmp_path / "c.jsonl"), "--dataset", "pool", *store]) == 0
    given = ["rerank", "--dataset", "pool", *store, "--output", str(tmp_path / "out.jsonl")]
    assert main(given) == 2
    assert "no evaluator has scored the steps of pool" in capsys.readouterr().err
    for path in two[1::2]:
        assert main(["import-scores", "pool", path, *store]) == 0
    assert main([*given, "--by", "last"]) == 0
    assert [row["choice"]["id"] for row in read(tmp_path / "out.jsonl")] == ["a/0", "b/0", "a/1", "b/0"]
    assert main([*given, "--evaluator", "skywork_prm"]) == 0
    assert {row["evaluator"] for row in read(tmp_path / "out.jsonl")} == {"skywork_prm"}


def test_a_candidate_without_a_score_is_named_and_nothing_is_written(two, tmp_path, capsys):
    write_rows(tmp_path / "skywork_prm.jsonl", score_rows("skywork_prm", SCORES)[1:])
    out = tmp_path / "out.jsonl"
    given = [str(tmp_path / "c.jsonl"), *two, "--output", str(out), "--report", str(tmp_path / "report")]
    assert main(["rerank", *given]) == 2
    assert "skywork_prm.jsonl: no score of the candidate 'a/0'" in capsys.readouterr().err
    assert not out.exists()
    assert not (tmp_path / "report").exists()


def test_sources_that_exclude_each_other_are_refused(two, tmp_path, capsys):
    out = ["--output", str(tmp_path / "out.jsonl")]
    pool = str(tmp_path / "c.jsonl")
    for given, error in (
        ([], "no candidates to choose from"),
        ([pool, "--dataset", "pool"], "a dataset has its own candidates and scores"),
        ([pool, *two, "--evaluator", "mini-bidir"], "--evaluator scores candidates, and --scores names files"),
        ([pool, "--evaluator", "mini-bidir", "--evaluator", "mini-causal"], "one at a time scores candidates"),
        (["--scores", pool, "--scores", two[1]], "holds candidates, not scores"),
    ):
        assert main(["rerank", *given, *out]) == 2
        assert error in capsys.readouterr().err


def test_a_run_that_was_stopped_at_once_goes_on(given, tmp_path):
    (tmp_path / "out.scores.jsonl").touch()
    assert main([*given, "--scores", str(tmp_path / "out.scores.jsonl")]) == 0
    assert len(read(tmp_path / "out.scores.jsonl")) == 6


def test_kept_scores_are_given_beside_others(given, two, tmp_path):
    assert main([*given, "--scores", str(tmp_path / "kept.jsonl")]) == 0
    assert main([*given[:2], *two[:2], "--scores", str(tmp_path / "kept.jsonl"), *given[-2:]]) == 0
    assert [row["evaluator"] for row in read(tmp_path / "out.jsonl")] == ["qwen_prm"] * 2 + ["tiny"] * 2
