import pytest

from stepsight.core.metrics.table import build_table
from stepsight.training.experiments.grid.design import RunSettings, read_design
from stepsight.training.experiments.grid.experiment import dataset_name, main, measure_baselines, result_path
from stepsight.training.experiments.grid.results import figures_of
from tests.training.experiments.grid.toy import write_toy


def test_the_baselines_are_measured_as_evaluators_are(tmp_path):
    from stepsight.core.judgment import Mode
    from stepsight.core.metrics.baselines import BASELINES

    design = read_design(write_toy(tmp_path))
    found = measure_baselines(design, tmp_path)
    (held,) = design.tests
    for name, baseline in BASELINES.items():
        for mode in ("offline", "online"):
            table = build_table((trace, baseline.score(trace, Mode(mode))) for trace in held.traces(tmp_path))
            assert found[name]["synthetic", mode].as_json() == figures_of(table).as_json()
    # What says the same of every step ranks nothing.
    assert found["baseline:constant"]["synthetic", "offline"].whole["macro_auc"] == pytest.approx(0.5)


def test_files_and_datasets_are_named_after_the_run_and_the_test(tmp_path):
    design = read_design(write_toy(tmp_path))
    assert result_path(tmp_path, RunSettings("a", "1k", "causal", 7)) == tmp_path / "results" / "a-1k-causal-7.json"
    assert dataset_name(design, design.tests[0]) == "toy synthetic"


def test_a_mistake_is_told_without_a_traceback(tmp_path, capsys):
    path = write_toy(tmp_path)
    assert main([str(path), str(tmp_path / "out"), "nothing", "--no-store"]) == 2
    assert capsys.readouterr().err.startswith("toy has no run 'nothing'.")
