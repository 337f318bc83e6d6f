"""`stepsight evaluate`, as it is typed: tables, JSON, and the published figures to the last digit."""

import json
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from sqlalchemy import delete

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.metrics.figures import METRICS, Topic
from stepsight.core.scoring.scorer import Scorer
from stepsight.storage.database.schema import JudgmentRow, TriangleRow
from stepsight.storage.judgments.evaluators import Threshold, save_calibration
from stepsight.storage.judgments.judgments import read_many
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.runs.processes import Processes
from tests.conftest import ROOT
from tests.storage.samples import add, evaluator, many
from tests.training.hand import GOLDS, say, traces, valid
from tests.training.small_runs import forked_pair

FIGURES = ("sol_f1", "sol_auc", "step_f1", "step_auc")


@pytest.fixture
def db(sqlite_store):
    """A store in which `first` has judged the four traces of `tests.training.hand`."""
    stored = add(sqlite_store, traces())
    say(sqlite_store, stored, evaluator(sqlite_store, "first").id)
    return sqlite_store.name


def evaluated(command, db, *argv):
    code, out, err = command("evaluate", *argv, "--db", db, "--json", "--draws", 20)
    assert (code, err) == (0, "")
    found: dict[str, Any] = json.loads(out)
    return found


def by_name(found, errors="invalid", mode="offline"):
    return {row["evaluator"]: row for row in found["rows"] if (row["errors"], row["mode"]) == (errors, mode)}


def percent(row):
    return [None if row[name] is None else round(100 * row[name], 1) for name in FIGURES]


# --- the published figures ---

RELEASED = {
    "math-shepherd_mistral-7b": ([70.1, 77.3, 60.0, 77.2], [50.4, 54.5, 42.7, 53.0]),
    "reasoneval_mistral-7b": ([78.0, 85.1, 68.6, 85.7], [60.7, 63.4, 59.7, 70.9]),
    "reasoneval_wizardmath-7b-v1.1": ([78.6, 87.5, 73.9, 89.5], [61.6, 64.8, 59.7, 72.2]),
    "roscoe-sa": ([48.2, 57.5, None, None], [50.7, 53.9, None, None]),
    "gpt4": ([73.2, None, 61.0, None], [57.1, None, 54.2, None]),
}


@pytest.mark.parametrize(
    ("place", "errors"), [(0, "invalid"), pytest.param(1, "redundant", marks=pytest.mark.slow)]
)
def test_released_scores_give_the_published_figures(command, data, tmp_path, place, errors):
    db, name, folder = str(tmp_path / "s.db"), f"mr-math-{errors}", data / "mr-math"
    assert command("import", name, folder / f"mr-math_{errors}_errors.json", "--db", db)[0] == 0
    for one in RELEASED:
        path = folder / "scores" / errors / f"{one}_eval_results.json"
        assert command("import-scores", name, path, "--evaluator", one, "--db", db)[0] == 0
    found = evaluated(command, db, "--dataset", name)
    rows = by_name(found, errors)
    assert {one: percent(rows[one]) for one in RELEASED} == {one: told[place] for one, told in RELEASED.items()}
    # Three of them are in the paper's table too, and agree with it.
    printed = {one: row["published"] for one, row in rows.items() if row["published"]}
    assert printed.keys() == {one for one in RELEASED if one.startswith(("math", "reason"))}
    assert all(told["differences"] == dict.fromkeys(FIGURES, 0.0) for told in printed.values())
    left = [row for row in found["published"] if row["mode"] == "offline"]
    assert [row["evaluator"] for row in left] == [
        "WizardMath-V1.1 control", "ReasonEval-Llemma", "LLaDA-bidir, batch 64", "LLaDA-PRM",
    ]  # fmt: skip
    assert all(row["source"] == "published" for row in left)
    if errors == "invalid":
        step = {name: rows[f"baseline:{name}"]["step_auc"] for name in ("length", "position", "constant")}
        assert {name: round(value, 3) for name, value in step.items()} == {
            "length": 0.607, "position": 0.498, "constant": 0.5,
        }  # fmt: skip


def test_first_errors_of_verdicts_in_words_are_those_of_the_raw_file(command, data, tmp_path):
    """GPT-4's published file, read without us: all 159 traces count."""
    db, folder = str(tmp_path / "s.db"), data / "mr-math"
    gold_file = folder / "mr-math_invalid_errors.json"
    path = folder / "scores" / "invalid" / "gpt4_eval_results.json"
    command("import", "mr-math-invalid", gold_file, "--db", db)
    command("import-scores", "mr-math-invalid", path, "--evaluator", "GPT-4", "--db", db)
    row = by_name(evaluated(command, db, "--dataset", "mr-math-invalid"))["GPT-4"]

    golds = [json.loads(line) for line in gold_file.read_text("utf-8").splitlines()]
    verdicts = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    # Twice it puts a full stop behind its verdict.
    wrong = [verdict["correctness_pred"].lower().rstrip(".") == "wrong" for verdict in verdicts]
    numbers = [re.findall("[0-9]+", verdict["error_step_pred"]) for verdict in verdicts]
    blamed = [int(number[0]) if called and number else None for called, number in zip(wrong, numbers, strict=True)]
    errors = [
        None if gold["model_output_solution_correctness"] == "correct"
        else int(gold["model_output_solution_first_error_step"])
        for gold in golds
    ]  # fmt: skip
    hits = {
        kind: [a == b for a, b in zip(errors, blamed, strict=True) if (a is None) == kind] for kind in (False, True)
    }
    on_wrong, on_right = (sum(found) / len(found) for found in hits.values())
    assert (len(hits[False]), len(hits[True])) == (83, 76)
    assert row["first_error_accuracy"] == pytest.approx(on_wrong)
    assert row["processbench_f1"] == pytest.approx(2 * on_wrong * on_right / (on_wrong + on_right))
    assert row["mr_mcc"] == pytest.approx(np.corrcoef([error is not None for error in errors], wrong)[0, 1])
    assert [round(100 * row[name], 1) for name in ("first_error_accuracy", "processbench_f1", "mr_mcc")] == [
        53.0, 52.8, 55.1,
    ]  # fmt: skip
    assert "first_error_accuracy" not in row["reasons"]


def test_mr_gsm8k_in_part(command, data, tmp_path):
    """Its 300 rows are all wrong solutions: those have no metric, their steps do."""
    db, folder = str(tmp_path / "s.db"), data / "mr-gsm8k"
    assert command("import", "mr-gsm8k", folder / "MR-GSM8K_partial.json", "--db", db)[0] == 0
    path = folder / "scores" / "reasoneval_mistral-7b_eval_results.json"
    code, out, _ = command("import-scores", "mr-gsm8k", path, "--evaluator", "RE", "--db", db)
    assert code == 0
    assert "300 traces" in out
    assert "2,699 rows of the file match no trace" in out
    found = evaluated(command, db, "--dataset", "mr-gsm8k")
    row = by_name(found)["RE"]
    assert (row["sol_f1"], row["sol_auc"], row["n_solutions"]) == (None, None, 300)
    assert row["reasons"] == dict.fromkeys(["sol_f1", "sol_auc", "mr_mcc"], "the gold has one class only") | {
        "processbench_f1": "every trace has an error"
    }
    assert percent(row)[2:] == [67.0, 90.2]
    assert found["published"] == []
    _, out, _ = command("evaluate", "--dataset", "mr-gsm8k", "--db", db, "--draws", 20, "--group", "original")
    assert "published figures are of 1,418 traces of this benchmark, these are 182, so none is shown" in out


def test_prm800k_is_measured_online(command, data, tmp_path):
    db = str(tmp_path / "s.db")
    assert command("import", "prm800k", data / "prm800k" / "test.jsonl", "--db", db)[0] == 0
    code, out, err = command("evaluate", "--dataset", "prm800k", "--db", db, "--json", "--draws", 20)
    assert (code, err) == (0, "")
    shown = json.loads(out)
    assert {row["mode"] for row in shown["rows"]} == {"online"}
    assert "stop at their first error" in shown["warning"]
    forced = evaluated(command, db, "--dataset", "prm800k", "--force", "--mode", "offline")
    assert round(by_name(forced)["baseline:last-step"]["neg_auc"], 3) == 0.988


# --- shapes ---


def test_json(command, db):
    found = evaluated(command, db, "--dataset", "sums", "--evaluator", "first", "--mode", "offline")
    assert list(found) == ["dataset", "group", "rows", "published", "n_traces", "left_out"]
    assert (found["dataset"], found["n_traces"], found["left_out"]) == ("sums", 4, 0)
    row = by_name(found)["first"]
    assert list(row) == [
        "evaluator", "mode", "errors", *FIGURES, "accuracy", "macro_f1", "macro_auc", "neg_auc", "neu_auc",
        "pos_auc", *(one.name for one in METRICS if one.topic != Topic.SHARES), "intervals", "reasons",
        "n_traces", "n_solutions", "n_steps", "beats_baseline_by", "beats_baseline_in", "above_baselines",
        "thresholds", "calibrated_on", "thresholds_chosen_on_this_dataset", "published",
    ]  # fmt: skip
    assert [row[name] for name in FIGURES] == pytest.approx([0.5, 0.75, 0.65, 0.9])
    low, high = row["intervals"]["step_auc"]
    assert 0 <= low <= 0.9 <= high <= 1
    assert row["intervals"]["brier"] == [None, None]
    assert row["beats_baseline_by"]["value"] == pytest.approx(0.35)
    assert (row["beats_baseline_in"], row["above_baselines"]) == ("step_auc", None)
    assert (row["thresholds"], row["calibrated_on"]) == ({"validity": 0.5, "redundancy": 0.15}, [])
    assert row["published"] is None


def test_the_table(command, db):
    code, out, err = command("evaluate", "--dataset", "sums", "--db", db, "--draws", 20)
    assert (code, err) == (0, "")
    blocks = out.strip().split("\n\n")
    # A table of the baselines alone, online, is left out.
    assert [block.splitlines()[0] for block in blocks] == [
        f"sums: {errors} errors, offline, 4 traces, in percent with 95 % intervals over traces"
        for errors in ("invalid", "redundant")
    ]
    _, titles, *lines, note = blocks[0].splitlines()
    assert note.strip() == "too few labels: a comparison with the baselines takes 20 with an error and 20 without"
    assert titles.split("  ")[0] == "Evaluator"
    assert [line.split()[0] for line in lines] == [
        "first", "baseline:constant", "baseline:position", "baseline:length", "baseline:last-step",
    ]  # fmt: skip
    cells = [cell.split()[0] for cell in lines[0].split("  ") if cell]
    assert cells == ["first", "measured", "50.0", "75.0", "65.0", "90.0", "+35.0", "too", "4", "7"]


def test_the_table_marks_what_is_only_published(command, data, tmp_path):
    db, folder = str(tmp_path / "s.db"), data / "mr-math"
    command("import", "mr-math-invalid", folder / "mr-math_invalid_errors.json", "--db", db)
    path = folder / "scores" / "invalid" / "reasoneval_mistral-7b_eval_results.json"
    command("import-scores", "mr-math-invalid", path, "--evaluator", "ReasonEval-Mistral", "--db", db)
    _, out, _ = command("evaluate", "--dataset", "mr-math-invalid", "--db", db, "--draws", 20)
    lines = out.splitlines()
    mine, beside = [line.split() for line in lines if line.startswith("ReasonEval-Mistral ")]
    assert mine[1:3] == ["measured", "78.0"]
    assert beside[1:] == ["offline", "tab:benchmarks", "78.0", "0.0", "85.1", "0.0", "68.6", "0.0", "85.7", "0.0"]
    (other,) = [line for line in lines if line.startswith("LLaDA-PRM ")]
    assert other.split()[1:6] == ["published", "93.0", "97.2", "88.8", "96.4"]
    assert "[" not in other


def test_notes_tell_what_a_table_cannot(command, sqlite_store, db):
    stored = add(sqlite_store, traces())
    part = evaluator(sqlite_store, "part")
    say(sqlite_store, stored, part.id, {"B": valid(0.9, 0.8)})
    evaluator(sqlite_store, "idle")
    add(sqlite_store, traces({"A": GOLDS["B"]}, kind="other"), dataset="other")
    save_calibration(sqlite_store, part.id, find_dataset(sqlite_store, "other"), Threshold.VALIDITY, 0.3, {})
    names = ("--evaluator", "part", "--evaluator", "idle")
    _, out, err = command("evaluate", "--dataset", "sums", *names, "--db", db, "--draws", 20)
    assert "  part: the gold has one class only\n" in out
    assert "  part: 1 of 4 traces judged\n" in out
    assert "  part: thresholds 0.3 and 0.15, chosen on other\n" in out
    assert err == "idle has not judged sums in such a mode.\n"


def test_a_comparison(command, sqlite_store, db):
    stored = add(sqlite_store, traces())
    right = {"A": valid(0.9, 0.2, 0.9), "B": valid(0.8, 0.9), "C": valid(0.9, 0.9), "D": valid(0.1, 0.9)}
    say(sqlite_store, stored, evaluator(sqlite_store, "second").id, right)
    found = evaluated(command, db, "--dataset", "sums", "--compare", "second", "first")
    # Redundant errors are compared as well.
    one, _ = found["comparisons"]
    assert (one["first"], one["second"], one["mode"], one["errors"]) == ("second", "first", "offline", "invalid")
    assert one["differences"]["step_f1"]["value"] == pytest.approx(1 - 0.65)
    assert one["mcnemar"]["step"] == {
        "first_only": 2, "second_only": 0, "p": {"value": 0.5, "low": None, "high": None},
    }  # fmt: skip
    _, out, _ = command("evaluate", "--dataset", "sums", "--compare", "second", "first", "--db", db, "--draws", 20)
    assert "second minus first, invalid errors, offline, 4 traces\n  Sol-F1 +50.0 [" in out
    assert "McNemar, step level: right only in the first 2, only in the second 0, p = 0.5" in out
    _, out, _ = command(
        "evaluate", "--dataset", "sums", "--compare", "second", "baseline:position", "--db", db, "--draws", 20
    )
    assert "second minus baseline:position, invalid errors" in out


def test_an_evaluator_that_can_run_scores_what_is_missing(command, sqlite_store, tiny):
    add(sqlite_store, traces())
    found = evaluated(command, sqlite_store.name, "--dataset", "sums", "--evaluator", tiny)
    for mode in ("offline", "online"):
        assert by_name(found, mode=mode)["tiny"]["n_traces"] == 4
    again = evaluated(command, sqlite_store.name, "--dataset", "sums", "--evaluator", tiny)
    assert again == found


def test_stored_judgments_are_measured_without_heavy_libraries(command, db):
    """PyTorch and pandas take more memory than 100,000 traces."""
    evaluated(command, db, "--dataset", "sums", "--evaluator", "mini-causal")
    line = ["evaluate", "--dataset", "sums", "--db", db, "--draws", "20"]
    code = f"""
import sys
from stepsight.app.commands.cli import main
heavy = ("torch", "pandas", "pyarrow", "plotly", "scipy.stats", "sklearn")
codes = [main({line!r}), main({line!r} + ["--json"])]
sys.exit(any(codes) or " ".join(name for name in heavy if name in sys.modules) or None)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "")
    assert '"evaluator": "first"' in done.stdout
    assert "mini-causal" in done.stdout.partition("{")[0]


def test_weights_of_another_type_are_measured_by_themselves(command, sqlite_store, tiny):
    add(sqlite_store, traces())
    db, dataset = sqlite_store.name, ("--dataset", "sums")
    rough = (*dataset, "--evaluator", tiny, "--dtype", "bfloat16")
    assert "tiny" in by_name(evaluated(command, db, *dataset, "--evaluator", tiny))
    found = by_name(evaluated(command, db, *rough))
    assert {name for name in found if not name.startswith("baseline:")} == {"tiny (bfloat16)"}
    # Without names: all that have judged, as they are stored.
    assert {"tiny", "tiny (bfloat16)"} <= by_name(evaluated(command, db, *dataset)).keys()
    compared = evaluated(command, db, *dataset, "--compare", tiny, "mini-causal", "--dtype", "bfloat16")
    named = {(one["first"], one["second"]) for one in compared["comparisons"]}
    assert named == {("tiny (bfloat16)", "mini-causal (bfloat16)")}
    # Without names, those that have judged some of it go on, each in its own type.
    with sqlite_store.write() as session:
        for row in (JudgmentRow, TriangleRow):
            session.execute(delete(row).where(row.trace_id == 1))
    again = by_name(evaluated(command, db, *dataset, "--dtype", "bfloat16"))
    assert again["mini-causal (bfloat16)"]["n_traces"] == 4
    assert again["tiny"]["n_traces"] == 3


@pytest.mark.slow
def test_two_processes_share_the_traces_and_one_speaks(sqlite_store, tiny):
    """With what torchrun and accelerate launch tell each process. Each judges some of the traces, and together they
    have what one alone has."""
    stored = add(sqlite_store, traces())
    argv = (
        "evaluate",
        "--dataset",
        "sums",
        "--evaluator",
        tiny,
        "--db",
        sqlite_store.name,
        "--draws",
        "20",
        "--json",
    )
    first, second = forked_pair(*argv)
    assert [first.returncode, second.returncode] == [0, 0], first.stderr + second.stderr
    assert by_name(json.loads(first.stdout))["tiny"]["n_traces"] == 4
    assert second.stdout == ""
    judged = read_many(sqlite_store, stored)
    assert [len(found) for found in judged] == [1] * 4
    alone = Scorer(load_evaluator(tiny)).score(stored, "hindsight")
    for (ours,), theirs in zip(judged, alone, strict=True):
        assert ours.hindsight is not None
        assert theirs.hindsight is not None
        np.testing.assert_allclose(ours.hindsight.packed, theirs.hindsight.packed, atol=1e-5)


def test_the_shares_are_the_same_whatever_is_judged_already(sqlite_store):
    stored = add(sqlite_store, many(10))
    shares = [[trace.id for trace in Processes(rank, 3).share(stored)] for rank in range(3)]
    assert shares == [["0", "3", "6", "9"], ["1", "4", "7"], ["2", "5", "8"]]
    assert [trace.id for trace in Processes(1, 3).share(stored[2:])] == ["4", "7"]
    assert list(Processes().share(stored)) == stored


# --- refusals ---


def test_thresholds_chosen_here_are_refused_or_marked(command, db):
    code, out, _ = command("calibrate", "--dataset", "sums", "--evaluator", "first", "--db", db)
    assert code == 0
    code, out, err = command("evaluate", "--dataset", "sums", "--db", db)
    assert (code, out) == (2, "")
    assert "the thresholds of first were chosen on sums" in err
    assert "--force" in err
    _, out, _ = command("evaluate", "--dataset", "sums", "--db", db, "--draws", 20, "--force")
    assert out.count("  first: thresholds 0.66 and 0.15, chosen on this dataset\n") == 2
    found = evaluated(command, db, "--dataset", "sums", "--force")
    assert by_name(found)["first"]["thresholds_chosen_on_this_dataset"] is True
    assert by_name(found)["baseline:length"]["thresholds_chosen_on_this_dataset"] is False
