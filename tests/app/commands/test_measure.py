"""`stepsight evaluate` and `stepsight doubtful`: tables, JSON, and the published figures to the last digit."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from sqlalchemy import delete

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.metrics.doubtful import doubts
from stepsight.core.metrics.figures import CALIBRATION, FIRST_ERRORS, PROTOCOL, THREE_WAY
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import JudgmentRow, TriangleRow
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.evaluators import Threshold, list_evaluators, save_calibration
from stepsight.storage.judgments.judgments import read_many
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.doubtful import family_of, rank_labels
from stepsight.training.report.stored_tables import needed_table
from stepsight.training.runs.processes import Processes
from tests.conftest import ROOT
from tests.storage.samples import add, evaluator, many, write_lines
from tests.training.hand import GOLDS, say, traces, valid
from tests.training.small_runs import forked_pair


@pytest.fixture
def judged(sqlite_store):
    """A store in which `first` has judged the four traces of `tests.training.hand`."""
    stored = add(sqlite_store, traces())
    say(sqlite_store, stored, evaluator(sqlite_store, "first").id)
    return sqlite_store


@pytest.fixture
def evaluated(typed):
    """Gives the figures of a dataset, as JSON."""

    def evaluated(line, *more):
        outcome = typed.run(f"evaluate --json --draws 20 --dataset {line}", *more)
        assert (outcome.code, outcome.err) == (0, "")
        return json.loads(outcome.out)

    return evaluated


def by_name(written, errors="invalid", mode="offline"):
    return {row["evaluator"]: row for row in written["rows"] if (row["errors"], row["mode"]) == (errors, mode)}


def percent(row):
    return [None if row[name] is None else round(100 * row[name], 1) for name in PROTOCOL]


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
def test_released_scores_give_the_published_figures(typed, evaluated, data, place, errors):
    dataset, folder = f"mr-math-{errors}", data / "mr-math"
    assert typed.run(f"import {dataset}", folder / f"mr-math_{errors}_errors.json").code == 0
    for name in RELEASED:
        path = folder / "scores" / errors / f"{name}_eval_results.json"
        assert typed.run(f"import-scores {dataset} --evaluator {name}", path).code == 0
    written = evaluated(dataset)
    rows = by_name(written, errors)
    assert {name: percent(rows[name]) for name in RELEASED} == {
        name: figures[place] for name, figures in RELEASED.items()
    }
    # Three of them are in the paper's table too, and agree with it.
    printed = {name: row["published"] for name, row in rows.items() if row["published"]}
    assert printed.keys() == {name for name in RELEASED if name.startswith(("math", "reason"))}
    assert all(row["differences"] == dict.fromkeys(PROTOCOL, 0.0) for row in printed.values())
    left = [row for row in written["published"] if row["mode"] == "offline"]
    assert [row["evaluator"] for row in left] == [
        "WizardMath-V1.1 control", "ReasonEval-Llemma", "LLaDA-bidir, batch 64", "LLaDA-PRM",
    ]  # fmt: skip
    assert all(row["source"] == "published" for row in left)
    if errors == "invalid":
        step = {name: rows[f"baseline:{name}"]["step_auc"] for name in ("length", "position", "constant")}
        assert {name: round(value, 3) for name, value in step.items()} == {
            "length": 0.607, "position": 0.498, "constant": 0.5,
        }  # fmt: skip


def test_first_errors_of_verdicts_in_words_are_those_of_the_raw_file(typed, evaluated, data):
    """GPT-4's published file, read without us: all 159 traces count."""
    folder = data / "mr-math"
    gold_file = folder / "mr-math_invalid_errors.json"
    path = folder / "scores" / "invalid" / "gpt4_eval_results.json"
    typed.run("import mr-math-invalid", gold_file)
    typed.run("import-scores mr-math-invalid --evaluator GPT-4", path)
    row = by_name(evaluated("mr-math-invalid"))["GPT-4"]

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


def test_mr_gsm8k_in_part(typed, evaluated, data):
    """Its 300 rows are all wrong solutions: those have no metric, their steps do."""
    assert typed.run("import mr-gsm8k", data / "mr-gsm8k" / "MR-GSM8K_partial.json").code == 0
    path = data / "mr-gsm8k" / "scores" / "reasoneval_mistral-7b_eval_results.json"
    imported = typed.run("import-scores mr-gsm8k --evaluator RE", path)
    assert (imported.code, "300 traces" in imported.out) == (0, True)
    assert "2,699 rows of the file match no trace" in imported.out
    written = evaluated("mr-gsm8k")
    row = by_name(written)["RE"]
    assert (row["sol_f1"], row["sol_auc"], row["n_solutions"]) == (None, None, 300)
    assert row["reasons"] == dict.fromkeys(["sol_f1", "sol_auc", "mr_mcc"], "the gold has one class only") | {
        "processbench_f1": "every trace has an error"
    }
    assert percent(row)[2:] == [67.0, 90.2]
    assert written["published"] == []
    printed = typed.run("evaluate --dataset mr-gsm8k --draws 20 --group original").out
    assert "published figures are of 1,418 traces of this benchmark, these are 182, so none is shown" in printed


def test_prm800k_is_measured_online(typed, evaluated, data):
    assert typed.run("import prm800k", data / "prm800k" / "test.jsonl").code == 0
    written = evaluated("prm800k")
    assert {row["mode"] for row in written["rows"]} == {"online"}
    assert "stop at their first error" in written["warning"]
    forced = evaluated("prm800k --force --mode offline")
    assert round(by_name(forced)["baseline:last-step"]["neg_auc"], 3) == 0.988


@pytest.mark.usefixtures("judged")
def test_json(evaluated):
    written = evaluated("sums --evaluator first --mode offline")
    assert list(written) == ["dataset", "group", "rows", "published", "n_traces", "left_out"]
    assert (written["dataset"], written["n_traces"], written["left_out"]) == ("sums", 4, 0)
    row = by_name(written)["first"]
    assert list(row) == [
        "evaluator", "mode", "errors", *PROTOCOL, *THREE_WAY, *FIRST_ERRORS, *CALIBRATION, "intervals", "reasons",
        "n_traces", "n_solutions", "n_steps", "beats_baseline_by", "beats_baseline_in", "above_baselines",
        "thresholds", "calibrated_on", "thresholds_chosen_on_this_dataset", "published",
    ]  # fmt: skip
    assert [row[name] for name in PROTOCOL] == pytest.approx([0.5, 0.75, 0.65, 0.9])
    low, high = row["intervals"]["step_auc"]
    assert 0 <= low <= 0.9 <= high <= 1
    assert row["intervals"]["brier"] == [None, None]
    assert row["beats_baseline_by"]["value"] == pytest.approx(0.35)
    assert (row["beats_baseline_in"], row["above_baselines"]) == ("step_auc", None)
    assert (row["thresholds"], row["calibrated_on"]) == ({"validity": 0.5, "redundancy": 0.15}, [])
    assert row["published"] is None


def test_tables_have_notes_on_what_they_cannot_show(typed, judged):
    """A table of the baselines alone, online, is left out."""
    typed("evaluate --dataset sums --draws 20")
    stored = add(judged, traces())
    part = evaluator(judged, "part")
    say(judged, stored, part.id, {"B": valid(0.9, 0.8)})
    evaluator(judged, "idle")
    add(judged, traces({"A": GOLDS["B"]}, kind="other"), dataset="other")
    save_calibration(judged, part.id, find_dataset(judged, "other"), Threshold.VALIDITY, 0.3, {})
    typed("evaluate --dataset sums --evaluator part --evaluator idle --draws 20")


def test_the_table_marks_what_is_only_published(typed, data):
    folder = data / "mr-math"
    typed.run("import mr-math-invalid", folder / "mr-math_invalid_errors.json")
    path = folder / "scores" / "invalid" / "reasoneval_mistral-7b_eval_results.json"
    typed.run("import-scores mr-math-invalid --evaluator ReasonEval-Mistral", path)
    lines = typed.run("evaluate --dataset mr-math-invalid --draws 20").out.splitlines()
    mine, beside, *_ = [line.split() for line in lines if line.startswith("ReasonEval-Mistral ")]
    assert mine[1:3] == ["measured", "78.0"]
    assert beside[1:] == ["offline", "78.0", "0.0", "85.1", "0.0", "68.6", "0.0", "85.7", "0.0"]
    (other,) = [line for line in lines if line.startswith("LLaDA-PRM ")]
    assert other.split()[1:6] == ["published", "93.0", "97.2", "88.8", "96.4"]
    assert "[" not in other


def test_a_comparison(typed, evaluated, judged):
    right = {"A": valid(0.9, 0.2, 0.9), "B": valid(0.8, 0.9), "C": valid(0.9, 0.9), "D": valid(0.1, 0.9)}
    say(judged, add(judged, traces()), evaluator(judged, "second").id, right)
    # Redundant errors are compared as well.
    invalid, _ = evaluated("sums --compare second first")["comparisons"]
    assert [invalid[key] for key in ("first", "second", "mode", "errors")] == [
        "second", "first", "offline", "invalid",
    ]  # fmt: skip
    assert invalid["differences"]["step_f1"]["value"] == pytest.approx(1 - 0.65)
    assert invalid["mcnemar"]["step"] == {
        "first_only": 2, "second_only": 0, "p": {"value": 0.5, "low": None, "high": None},
    }  # fmt: skip
    typed("evaluate --dataset sums --evaluator first --evaluator second --compare second first --draws 20")
    printed = typed.run("evaluate --dataset sums --compare second baseline:position --draws 20").out
    assert "Figure                     second minus baseline:position\n" in printed


def test_an_evaluator_that_can_run_scores_what_is_missing(evaluated, sqlite_store, monkeypatch):
    add(sqlite_store, traces())
    written = evaluated("sums --evaluator mini-causal")
    for mode in ("offline", "online"):
        assert by_name(written, mode=mode)["mini-causal"]["n_traces"] == 4
    # One that has judged everything is not loaded.
    monkeypatch.setattr("stepsight.core.models.model.StepModel.__init__", None)
    assert evaluated("sums --evaluator mini-causal") == written


def test_stored_judgments_are_measured_without_heavy_libraries(evaluated, judged):
    """PyTorch and pandas take more memory than 100,000 traces."""
    evaluated("sums --evaluator mini-causal")
    line = ["evaluate", "--dataset", "sums", "--db", judged.name, "--draws", "20"]
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


def test_the_help_of_all_commands_imports_none_of_them():
    code = """
import sys
from stepsight.app.commands.cli import main
try:
    main(["--help"])
finally:
    print([name for name in ("numpy", "pydantic", "sqlalchemy") if name in sys.modules], file=sys.stderr)"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_weights_of_another_type_are_measured_by_themselves(evaluated, sqlite_store, tiny):
    add(sqlite_store, traces())
    assert "tiny" in by_name(evaluated("sums --evaluator", tiny))
    rough = by_name(evaluated("sums --dtype bfloat16 --evaluator", tiny))
    assert {name for name in rough if not name.startswith("baseline:")} == {"tiny (bfloat16)"}
    # Without names: all that have judged, as they are stored.
    assert {"tiny", "tiny (bfloat16)"} <= by_name(evaluated("sums")).keys()
    pairs = evaluated("sums --dtype bfloat16 --compare", tiny, "mini-causal")["comparisons"]
    assert {(pair["first"], pair["second"]) for pair in pairs} == {("tiny (bfloat16)", "mini-causal (bfloat16)")}
    # Without names, those that have judged some of it go on, each in its own type.
    with sqlite_store.write() as session:
        for row in (JudgmentRow, TriangleRow):
            session.execute(delete(row).where(row.trace_id == 1))
    again = by_name(evaluated("sums --dtype bfloat16"))
    assert again["mini-causal (bfloat16)"]["n_traces"] == 4
    assert again["tiny"]["n_traces"] == 3


@pytest.mark.slow
def test_two_processes_share_the_traces_and_one_speaks(sqlite_store, tiny):
    """With what torchrun and accelerate launch tell each process. Each judges some of the traces, and together they
    have what one alone has."""
    stored = add(sqlite_store, traces())
    line = ["evaluate", "--dataset", "sums", "--draws", "20", "--json", "--db", sqlite_store.name]
    first, second = forked_pair(*line, "--evaluator", tiny)
    assert [first.returncode, second.returncode] == [0, 0], first.stderr + second.stderr
    assert by_name(json.loads(first.stdout))["tiny"]["n_traces"] == 4
    assert second.stdout == ""
    judgments = read_many(sqlite_store, stored)
    assert [len(row) for row in judgments] == [1] * 4
    alone = Scorer(load_evaluator(tiny)).score(stored, "hindsight")
    for (ours,), theirs in zip(judgments, alone, strict=True):
        np.testing.assert_allclose(ours.hindsight.packed, theirs.hindsight.packed, atol=1e-5)


def test_shares_hold_whatever_is_judged_already_and_another_draw_spreads_what_is_left(sqlite_store):
    stored = add(sqlite_store, many(90))

    def shares(traces, draw):
        return [[trace.position for trace in Processes(rank, 3).share(traces, draw)] for rank in range(3)]

    first = shares(stored, 90)
    assert sorted(place for share in first for place in share) == list(range(90))
    assert shares(stored[30:], 90) == [[place for place in share if place >= 30] for share in first]
    # A machine was lost with its share: each of the three takes some of it.
    left = [stored[place] for place in first[0]]
    assert min(map(len, shares(left, len(left)))) >= len(left) // 6
    assert list(Processes().share(stored, 0)) == stored


@pytest.mark.usefixtures("judged")
def test_thresholds_chosen_here_are_refused_or_marked(typed, evaluated):
    typed("calibrate --dataset sums --evaluator first")
    typed("evaluate --dataset sums")
    printed = typed.run("evaluate --dataset sums --draws 20 --force").out
    assert printed.count("  first: thresholds 0.66 and 0.15, chosen on this dataset\n") == 3
    rows = by_name(evaluated("sums --force"))
    assert rows["first"]["thresholds_chosen_on_this_dataset"] is True
    assert rows["baseline:length"]["thresholds_chosen_on_this_dataset"] is False


def test_the_auc_of_imported_left_out_scores_is_shown(typed, sqlite_store, tmp_path):
    add(sqlite_store, [Trace.of(f"q{n}", ["x", "y", "z"], ["pos", "neu", "pos"], id=f"t{n}") for n in range(3)])
    falls = {1: (0.2, 0.7), 2: (0.9, 0.6)}
    rows = [
        {"id": f"t{n}", "left_out": step, "whole": [0.9, 0.8, 0.7], "scores": scores}
        for n in range(3)
        for step, scores in falls.items()
    ]
    import_scores(sqlite_store, "sums", write_lines(tmp_path / "scores.jsonl", rows), "prm")
    (prm,) = list_evaluators(sqlite_store)
    dataset = find_dataset(sqlite_store, "sums")
    ((name, auc, *counts),) = needed_table(sqlite_store, dataset, [("prm", prm.id)]).rows
    # Without step 1, which is needed, step 2 loses 0.6; without step 2 the last one loses 0.1.
    assert (name, auc.number, auc.low, auc.high, *counts) == ("prm", 1, 1, 1, 3, 3, 3)
    assert needed_table(sqlite_store, dataset, []) is None
    typed("evaluate --dataset sums --draws 10")
    (row,) = json.loads(typed.run("evaluate --dataset sums --draws 10 --json").out)["needed_steps"]
    assert (row["evaluator"], row["needed"]) == ("prm", 3)


def test_doubtful_lists_and_writes_labels(typed, sqlite_store, tmp_path):
    slips = [Trace.of(f"Add {n} and 3.", [f"{n} + 3 = {n + 4}."], ["pos"], f"slip{n}") for n in range(2)]
    add(sqlite_store, [*slips, Trace.of("Add 7 and 3.", ["7 + 3 = 10."], ["pos"], "right")])
    typed("doubtful --dataset sums --list 1 --output doubtful.jsonl")
    written = [json.loads(line) for line in (tmp_path / "doubtful.jsonl").read_text().splitlines()]
    assert [(row["id"], row["step"], row["gold"]) for row in written] == [
        ("slip0", 1, "valid"),
        ("slip1", 1, "valid"),
    ]


PUBLISHED = {
    "ReasonEval-Mistral-7B": "reasoneval_mistral-7b_eval_results.json",
    "ReasonEval-WizardMath-7B-V1.1": "reasoneval_wizardmath-7b-v1.1_eval_results.json",
    "Math-Shepherd": "math-shepherd_mistral-7b_eval_results.json",
}


@pytest.mark.slow
def test_flipped_labels_of_mr_math_are_found(data, tmp_path):
    """Of 5 % of the labels flipped at random, over 50 draws: with the published scores of ReasonEval and
    Math-Shepherd, the mean share among as many most doubtful ones."""
    with open_store(str(tmp_path / "s.db")) as store:
        import_file(store, "mr-math-invalid", data / "mr-math/mr-math_invalid_errors.json", "mr-math-invalid")
        for name, file in PUBLISHED.items():
            import_scores(store, "mr-math-invalid", data / "mr-math/scores/invalid" / file, name)
        labels = rank_labels(store, find_dataset(store, "mr-math-invalid")).labels
    by_name = [{juror.name: value for juror, value in label.validities} for label in labels]
    scores = np.array([[validities[name] for name in PUBLISHED] for validities in by_name])
    failing = np.array([bool(label.finding) for label in labels])
    valid = np.array([label.valid for label in labels], np.int8)
    problem = np.unique([label.trace for label in labels], return_inverse=True)[1]
    rng, count, found = np.random.default_rng(0), round(0.05 * len(labels)), []
    for _ in range(50):
        flipped = rng.choice(len(labels), count, replace=False)
        given = valid.copy()
        given[flipped] ^= 1
        doubt = doubts(scores, failing, given, problem, families=list(map(family_of, PUBLISHED)))
        order = np.lexsort((-doubt, ~(failing & (given == 1))))
        found.append(np.isin(order[:count], flipped).mean())
    assert len(labels) == 729
    assert np.mean(found) >= 0.75
