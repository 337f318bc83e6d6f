"""`stepsight rerank`."""

import json

import pytest

from stepsight.app.commands.cli import main
from tests.checkpoints import write_evaluator, write_math_shepherd
from tests.training.experiments.reranking.samples import CANDIDATES, ROWS, SCORES, score_rows, write_rows


@pytest.fixture
def rerank(tmp_path):
    """Runs the command on a store of its own, and returns its exit status and the rows of its output, if any."""
    out = tmp_path / "out.jsonl"

    def rerank(*arguments):
        out.unlink(missing_ok=True)
        given = ["rerank", *map(str, arguments), "--db", str(tmp_path / "store.db")]
        status = main(given if "--output" in given else [*given, "--output", str(out)])
        return status, read(out) if out.exists() else None

    return rerank


@pytest.fixture
def given(tmp_path):
    """The sample and a tiny evaluator, as arguments."""
    path = write_rows(tmp_path / "c.jsonl", ROWS)
    return [str(path), "--evaluator", str(write_evaluator(tmp_path / "tiny"))]


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_choice_for_each_problem_and_how_often_it_is_right(rerank, given, tmp_path, capsys):
    status, rows = rerank(*given, "--report", tmp_path / "report")
    assert status == 0
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


def test_choosing_again_needs_no_scoring(rerank, given, monkeypatch):
    assert rerank(*given)[0] == 0
    monkeypatch.setattr("stepsight.core.scoring.packed.PackedForward.run", None)
    for source in (given, ["--dataset", "c"]):
        status, rows = rerank(*source, "--method", "weighted-vote", "--by", "product")
        assert status == 0
        assert rows[0]["choice"]["answer"] == rows[0]["votes"][0]["answer"]
        assert rows[0]["by"] == "product"


def test_standard_output_holds_choices_alone(rerank, given, capsys):
    assert rerank(*given, "--mode", "online", "--output", "-")[0] == 0
    out, err = capsys.readouterr()
    assert [json.loads(line)["mode"] for line in out.splitlines()] == ["online", "online"]
    assert "2 problems" in err


def test_a_format_of_others_is_named_and_says_nothing_of_redundancy(rerank, given, tmp_path, capsys):
    write_math_shepherd(tmp_path / "math-shepherd", card={"format": "math-shepherd"})
    status, rows = rerank(*given, "--evaluator", tmp_path / "math-shepherd")
    assert status == 0
    assert "math-shepherd format" in capsys.readouterr().err
    assert [(row["evaluator"], "redundancy" in row["choice"]) for row in rows] == [
        ("math-shepherd", False), ("math-shepherd", False), ("tiny", True), ("tiny", True),
    ]  # fmt: skip
    assert rerank(given[0], "--evaluator", "equations") == (2, None)
    assert "gives no scores of steps to choose by" in capsys.readouterr().err


def test_without_right_answers_there_are_choices_and_no_figures(rerank, given, tmp_path, capsys):
    write_rows(tmp_path / "c.jsonl", [{key: row[key] for key in row if key != "gold"} for row in ROWS])
    status, rows = rerank(*given)
    assert (status, len(rows), capsys.readouterr().out) == (0, 2, "")
    assert rerank(*given, "--report", tmp_path / "report")[0] == 2
    assert "no right answer is known" in capsys.readouterr().err


def test_candidates_too_long_are_refused_or_named(rerank, given, tmp_path, capsys):
    write_rows(tmp_path / "c.jsonl", [*ROWS, {"problem": "q", "steps": ["2 " * 200]}])
    assert rerank(*given) == (2, None)
    err = capsys.readouterr().err
    assert "left out: trace 'line 6' has" in err
    assert "tiny, offline: no score of the candidate 'line 6' of c." in err
    status, rows = rerank(*given, "--skip-too-long")
    assert (status, rows[2]["choice"]["too_long"]) == (0, True)
    assert "1 problem without a right answer" in capsys.readouterr().out


def test_stored_scores_of_several_evaluators(rerank, tmp_path, capsys):
    store = ["--db", str(tmp_path / "store.db")]
    path = str(write_rows(tmp_path / "c.jsonl", CANDIDATES))
    assert main(["import", "strict-prmbench", path, "--dataset", "pool", *store]) == 0
    for name, scores in (("qwen_prm", SCORES), ("skywork_prm", [steps[::-1] for steps in SCORES])):
        rows = write_rows(tmp_path / f"{name}.jsonl", score_rows(name, scores))
        assert main(["import-scores", "pool", str(rows), *store]) == 0
    _, rows = rerank("--dataset", "pool", "--by", "official", "--report", tmp_path / "report")
    # By the product 0.375 against 0.25, by the mean 0.625 each, of which the first is chosen.
    assert [(row["evaluator"], row["by"], row["choice"]["id"]) for row in rows] == [
        ("qwen_prm", "product", "a/0"), ("qwen_prm", "product", "b/0"),
        ("skywork_prm", "mean", "a/0"), ("skywork_prm", "mean", "b/0"),
    ]  # fmt: skip
    # Right for sure, and half the time.
    out = capsys.readouterr().out
    assert "qwen_prm     product        100.0 [100.0, 100.0]" in out
    assert "skywork_prm  mean             75.0 [50.0, 100.0]" in out
    _, rows = rerank("--dataset", "pool", "--evaluator", "skywork_prm", "--by", "last")
    assert [(row["evaluator"], row["choice"]["id"]) for row in rows] == [
        ("skywork_prm", "a/1"),
        ("skywork_prm", "b/0"),
    ]


def test_rows_that_are_no_candidates_are_left_out_on_request(rerank, given, tmp_path):
    bad = write_rows(tmp_path / "bad.jsonl", [ROWS[0], {"problem": "q"}])
    assert rerank(bad, *given[1:], "--skip-bad")[0] == 0
