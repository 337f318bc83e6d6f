"""Facts of ours, from real files and runs."""

import json
from dataclasses import replace

import numpy as np
import pytest

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.metrics.published import reference_tables
from stepsight.core.paths import asset
from stepsight.core.scores import StepScores
from stepsight.core.trace import Label
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.training.experiments.finetuning.math500 import Result
from stepsight.training.experiments.grid.results import read_results
from stepsight.training.paper.facts import (
    cells_of,
    filter_facts,
    grid_facts,
    label_facts,
    paper_facts,
    store_facts,
    training_facts,
)
from stepsight.training.train import run
from tests.messages import refused
from tests.training.experiments.grid.toy import results
from tests.training.small_runs import CONFIG, synthetic


def test_the_papers_runs_of_the_grid_give_its_tables_back():
    facts = grid_facts(read_results(asset("reference", "full-grid-results.json")))
    for table in reference_tables():
        if table.label in ("tab:full-grid-results", "tab:main-3k-results"):
            assert {name: round(facts[name], 1) for name in cells_of(table)} == cells_of(table)


def test_a_grid_of_ours_has_what_the_paper_does_not_print_by_run():
    grid = read_results(asset("reports", "grid-mini", "as-labelled.json"))
    facts, figures = grid_facts(grid), [of_run for _, of_run in grid.figures(grid.keys[0])]
    f1 = [100 * of_run["neu_f1"] for of_run in figures]
    assert (facts["grid/runs"], facts["grid/pairs"], facts["grid/cells"]) == (54, 27, 9)
    assert (facts["grid/neu_f1/least"], facts["grid/neu_f1/greatest"]) == pytest.approx((min(f1), max(f1)))
    assert facts["grid/neu_f1"] == pytest.approx(np.mean(f1))
    assert facts["grid/test_traces"] == figures[0]["traces"]


def test_a_test_whose_last_thirds_are_all_errors_says_nothing_of_them():
    numbers = {("a", "1k", 1): (0.5, 0.4), ("a", "1k", 2): (0.5, 0.7)}
    facts = grid_facts(results(numbers, late=0.6))
    assert facts["grid/mean/late_auc"] == pytest.approx(
        facts["grid/late_auc/bidirectional"] - facts["grid/late_auc/causal"]
    )
    bare = grid_facts(results(numbers, late=None))
    assert bare.keys() == facts.keys()
    assert all(np.isnan(value) == ("late" in name.lower()) for name, value in bare.items())


def test_cells_of_size_and_data_count_by_their_means():
    made = results({("a", "1k", 1): (0.5, 0.4), ("a", "1k", 2): (0.5, 0.7), ("b", "1k", 1): (0.6, 0.6)})
    facts = grid_facts(made)
    assert (facts["grid/cells"], facts["grid/cells_ahead"]) == (2, 1)
    assert (facts["grid/wins/macro_auc"], facts["grid/pairs"]) == (1, 3)
    assert "grid/neu_f1" not in facts


def test_benchmarks_of_the_store_give_the_published_figures_back(sqlite_store, data):
    # A file of another size is not the paper's.
    import_file(sqlite_store, "mr-gsm8k", data / "mr-gsm8k" / "MR-GSM8K_partial.json")
    for kind, name in (("invalid", "mr-math_invalid_errors.json"), ("redundant", "mr-math_redundant_errors.json")):
        import_file(sqlite_store, f"mr-math-{kind}", data / "mr-math" / name)
        scores = data / "mr-math" / "scores" / kind / "math-shepherd_mistral-7b_eval_results.json"
        import_scores(sqlite_store, f"mr-math-{kind}", scores, "Math-Shepherd")
    facts, printed = store_facts(sqlite_store), paper_facts()
    assert (facts["dataset/MR-MATH-invalid/traces"], facts["dataset/MR-MATH-invalid/errors"]) == (159, 83)
    assert "dataset/MR-GSM8K/traces" not in facts
    cells = {name: value for name, value in facts.items() if name.startswith("tab:")}
    assert len(cells) == 8
    assert cells == {name: printed[name] for name in cells}


def test_labels_of_prm800k_are_counted_and_neu_is_decided_by_llada_prm_alone(sqlite_store, data):
    import_file(sqlite_store, "prm800k", data / "prm800k" / "test.jsonl")
    traces = list(iterate_traces(sqlite_store, find_dataset(sqlite_store, "prm800k").id))
    rng = np.random.default_rng(0)
    made = [
        Judgment(trace, Mode.OFFLINE, StepScores(rng.dirichlet([1, 1, 1], len(trace.substeps)).astype(np.float32)))
        for trace in traces
    ]
    for name in ("somebody", "llada-prm-8b"):
        assert "neutral/f1" not in label_facts(sqlite_store, "prm800k", "test")
        row = register_evaluator(sqlite_store, name=name, fingerprint=name, format="stepsight", attention="x")
        save_judgments(sqlite_store, row.id, made)
    facts = label_facts(sqlite_store, "prm800k", "test")
    labels = [label for trace in traces for label in trace.labels]
    gold = np.array([label for label in labels if label is not None])
    assert (facts["prm800k-test/traces"], facts["prm800k-test/steps"]) == (len(traces), len(gold))
    for label in Label:
        assert facts[f"prm800k-test/{label.text}"] == pytest.approx(100 * (gold == label).mean())

    def ratio(trace) -> float:
        counts = [trace.labels.count(label) for label in Label if label in trace.labels]
        return min(counts) / max(counts) if len(counts) > 1 else 0

    assert facts["pool/test"] == sum(ratio(trace) >= 0.5 for trace in traces)
    # The training pool wants every label.
    every = [trace for trace in traces if {*Label} <= set(trace.labels)]
    of_train = label_facts(sqlite_store, "prm800k", "train")
    assert of_train["pool/train"] == sum(ratio(trace) >= 0.5 for trace in every)

    probs = np.concatenate([judgment.offline.probs for judgment in made])[[label is not None for label in labels]]
    for name, decided in (
        ("neutral", probs.argmax(1) == 1),
        ("neutral/0.5", probs[:, 1] >= 0.5),
        ("neutral/0.15", probs[:, 1] >= np.float32(0.15)),
    ):
        hits = int((decided & (gold == 1)).sum())
        assert facts[f"{name}/f1"] == pytest.approx(200 * hits / (decided.sum() + (gold == 1).sum()))
        if name != "neutral":
            assert facts[f"{name}/precision"] == pytest.approx(100 * hits / decided.sum())
            assert facts[f"{name}/recall"] == pytest.approx(100 * hits / (gold == 1).sum())
        else:
            assert facts["neutral/predicted"] == decided.sum()
            assert facts["neutral/predicted_share"] == pytest.approx(100 * decided.mean())


def test_a_run_tells_its_steps_time_and_losses(tmp_path):
    output = run.train(replace(CONFIG, data=synthetic(40), epochs=1), tmp_path / "run")
    facts = training_facts(output)
    assert facts["training/steps"] == 5
    assert facts["training/first_loss"] == json.loads((output / "log_history.json").read_text())[0]["loss"]
    assert facts["training/gpu_hours"] == pytest.approx(facts["training/seconds"] / 3600)
    (output / "log_history.json").write_text("[]")
    for folder in (output, tmp_path):
        with refused():
            training_facts(folder)


def test_models_on_subsets_give_the_table_of_filtering():
    def result(subset: str, seed: int, *correct: bool) -> Result:
        return Result(
            model="m", scorer="llada-prm-8b", subset=subset, seed=seed, rows=7, correct=correct, tokens=(10, 10)
        )

    facts = filter_facts(
        [result("val+red", 1, True, False), result("val+red", 2, True, True), result("random", 1, False, False)]
    )
    row, random = "tab:filter_ablation/LLaDA-PRM/Val + Red", "tab:filter_ablation/7/Random"
    assert {name.removeprefix(row): value for name, value in facts.items() if row in name} == {
        "/N": 7, "/Acc": 75, "/Tok": 10
    }  # fmt: skip
    assert {name.removeprefix(random): value for name, value in facts.items() if random in name} == {
        "/N": 7, "/Acc": 0, "/Tok": 10
    }  # fmt: skip
