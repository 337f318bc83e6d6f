from stepsight.training.experiments.grid.design import read_design
from stepsight.training.experiments.grid.experiment import estimate_grid
from tests.conftest import ROOT

CONFIGS = ROOT / "training" / "configs"


def test_the_papers_grid_is_planned_run_by_run():
    design = read_design(CONFIGS / "grid.yaml")
    text = estimate_grid(design, list(design.runs()), CONFIGS, 48)
    # Nine plans for 54 runs: masks and seeds cost the same.
    assert text.count("parameters") == 9
    # 1,000 traces in batches of 24 are 42 steps, in 3 epochs 126; batches of 12 are 84, and 252.
    assert "1B 1k\nparameters    1,068,572,672\n" in text
    assert "batch         24 traces = 6 devices x 4 traces x 1 parts\nsteps         126 in 3 epochs" in text
    assert "batch         12 traces = 6 devices x 2 traces x 1 parts\nsteps         252 in 3 epochs" in text
    assert text.splitlines()[-1] == "54 runs"
