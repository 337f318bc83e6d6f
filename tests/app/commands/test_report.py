"""`stepsight report` and `stepsight rerank`."""

import json

import pytest

from stepsight.core.paths import asset
from tests.checkpoints import write_evaluator, write_math_shepherd
from tests.training.experiments.reranking.samples import CANDIDATES, ROWS, SCORES, score_rows, write_rows
from tests.training.judged import fill


def test_the_report_is_written_and_its_page_named(typed, sqlite_store, tmp_path):
    fill(sqlite_store)
    typed("report --dataset three_way --output out --draws 20")
    assert (tmp_path / "out" / "tables" / "three-way-invalid-offline.csv").is_file()


@pytest.mark.parametrize(
    ("kind", "rows", "line", "figure"),
    [
        ("grid", "full-grid-results", "| macro-AUC | 22/27 | 0    | +1.06 [", "+6.20"),
        (
            "filtering",
            "filter-ablation",
            "| LLaDA-PRM                  | Red-only  | 5,222 | 3     | 22.5 | 249  | +3.4     |",
            "+3.4",
        ),
    ],
)
def test_the_papers_rows_are_printed_or_written(typed, tmp_path, kind, rows, line, figure):
    (tmp_path / "paper.json").symlink_to(asset("reference", f"{rows}.json"))
    assert line in typed.run(f"report {kind} paper.json").out
    assert typed.run(f"report {kind} paper.json --output out").out == "out/report.html\n"
    assert figure in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def rerank(typed, tmp_path):
    """Runs the command and returns how it ended, and the rows of its output, if any."""

    def rerank(line):
        out = tmp_path / "out.jsonl"
        out.unlink(missing_ok=True)
        outcome = typed.run(f"rerank {line}" if "--output" in line else f"rerank {line} --output out.jsonl")
        return outcome, read(out) if out.exists() else None

    return rerank


@pytest.fixture
def candidates(tmp_path):
    """The sample and a tiny evaluator."""
    write_evaluator(tmp_path / "tiny")
    return write_rows(tmp_path / "c.jsonl", ROWS)


GIVEN = "c.jsonl --evaluator ./tiny"


def read(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.usefixtures("candidates")
def test_a_choice_for_each_problem_and_how_often_it_is_right(rerank, tmp_path):
    outcome, rows = rerank(f"{GIVEN} --report report")
    assert outcome.code == 0
    assert [row["problem"] for row in rows] == ["What is 2 + 3?", "What is 4 + 1?"]
    for row in rows:
        best = max(row["candidates"], key=lambda candidate: candidate.get("score", 0))
        assert row["choice"]["line"] == best["line"]
        assert (row["evaluator"], row["mode"], row["method"], row["by"]) == ("tiny", "offline", "best-of-n", "min")
    assert "2 problems, up to 4 candidates each." in outcome.out
    # Two of four candidates are right in one problem, one of one in the other.
    (line,) = [
        text for text in outcome.out.splitlines() if text.startswith("random candidate  ") and "75.0" in text
    ]
    assert line.count("75.0 [50.0, 100.0]") == 3
    assert "Answers compared as texts and numbers" in outcome.out
    assert (tmp_path / "report" / "report.html").is_file()


@pytest.mark.usefixtures("candidates")
def test_choosing_again_needs_no_scoring(rerank, monkeypatch):
    assert rerank(GIVEN)[0].code == 0
    monkeypatch.setattr("stepsight.core.scoring.packed.PackedForward.run", None)
    for source in (GIVEN, "--dataset c"):
        outcome, rows = rerank(f"{source} --method weighted-vote --by product")
        assert (outcome.code, rows[0]["by"]) == (0, "product")
        assert rows[0]["choice"]["answer"] == rows[0]["votes"][0]["answer"]


@pytest.mark.usefixtures("candidates")
def test_standard_output_holds_choices_alone(rerank):
    outcome, _ = rerank(f"{GIVEN} --mode online --output -")
    assert [row["mode"] for row in outcome.rows] == ["online", "online"]
    assert "2 problems" in outcome.err


@pytest.mark.usefixtures("candidates")
def test_a_format_of_others_is_named_and_says_nothing_of_redundancy(rerank, tmp_path):
    write_math_shepherd(tmp_path / "math-shepherd", card={"format": "math-shepherd"})
    outcome, rows = rerank(f"{GIVEN} --evaluator ./math-shepherd")
    assert "math-shepherd format" in outcome.err
    assert [(row["evaluator"], "redundancy" in row["choice"]) for row in rows] == [
        ("math-shepherd", False), ("math-shepherd", False), ("tiny", True), ("tiny", True),
    ]  # fmt: skip
    outcome, rows = rerank("c.jsonl --evaluator equations")
    assert (outcome.code, rows) == (2, None)
    assert "does not score steps to choose by" in outcome.err


def test_without_right_answers_there_are_choices_and_no_figures(rerank, candidates):
    write_rows(candidates, [{key: row[key] for key in row if key != "gold"} for row in ROWS])
    outcome, rows = rerank(GIVEN)
    assert (outcome.code, len(rows), outcome.out) == (0, 2, "")
    outcome, _ = rerank(f"{GIVEN} --report report")
    assert (outcome.code, "no right answer is known" in outcome.err) == (2, True)


def test_candidates_that_cannot_be_read_are_refused_or_left_out(rerank, candidates):
    write_rows(candidates, [*ROWS, {"problem": "q", "steps": ["2 " * 200]}])
    outcome, rows = rerank(GIVEN)
    assert (outcome.code, rows) == (2, None)
    assert "left out: trace 'line 6' has" in outcome.err
    assert "tiny, offline: no score of the candidate 'line 6' of c." in outcome.err
    outcome, rows = rerank(f"{GIVEN} --skip-too-long")
    assert (outcome.code, rows[2]["choice"]["too_long"]) == (0, True)
    assert "1 problem without a right answer" in outcome.out
    write_rows(candidates.with_name("bad.jsonl"), [ROWS[0], {"problem": "q"}])
    assert rerank("bad.jsonl --evaluator ./tiny --skip-bad")[0].code == 0


def test_stored_scores_of_several_evaluators(rerank, typed, tmp_path):
    write_rows(tmp_path / "c.jsonl", CANDIDATES)
    assert typed.run("import strict-prmbench c.jsonl --dataset pool").code == 0
    for name, scores in (("qwen_prm", SCORES), ("skywork_prm", [steps[::-1] for steps in SCORES])):
        write_rows(tmp_path / f"{name}.jsonl", score_rows(name, scores))
        assert typed.run(f"import-scores pool {name}.jsonl").code == 0
    outcome, rows = rerank("--dataset pool --by official --report report")
    # By the product 0.375 against 0.25, by the mean 0.625 each, of which the first is chosen.
    assert [(row["evaluator"], row["by"], row["choice"]["id"]) for row in rows] == [
        ("qwen_prm", "product", "a/0"), ("qwen_prm", "product", "b/0"),
        ("skywork_prm", "mean", "a/0"), ("skywork_prm", "mean", "b/0"),
    ]  # fmt: skip
    # Right for sure, and half the time.
    assert "qwen_prm     product  100.0 [100.0, 100.0]" in outcome.out
    assert "skywork_prm  mean       75.0 [50.0, 100.0]" in outcome.out
    _, rows = rerank("--dataset pool --evaluator skywork_prm --by last")
    assert [row["choice"]["id"] for row in rows] == ["a/1", "b/0"]
