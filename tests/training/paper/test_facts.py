"""Facts of ours, from real files and runs."""

import numpy as np
import pytest

from stepsight.core.metrics.published import reference_tables
from stepsight.core.paths import asset
from stepsight.storage.judgments.score_files import import_scores
from stepsight.storage.traces.imports import import_file
from stepsight.training.experiments.grid.results import read_results
from stepsight.training.paper import (
    cells_of,
    grid_facts,
    paper_facts,
    store_facts,
)
from tests.training.experiments.grid.toy import results


def test_the_papers_runs_of_the_grid_give_its_tables_back():
    facts = grid_facts(read_results(asset("reference", "full-grid-results.json")))
    for table in reference_tables():
        if table.label in ("tab:full-grid-results", "tab:main-3k-results"):
            assert {name: round(facts[name], 1) for name in cells_of(table)} == cells_of(table)


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
