"""`stepsight grid`, its plan and its report as they are typed, within this process."""

import pytest
import torch

from stepsight.app.commands.cli import main
from stepsight.core.paths import asset
from tests.conftest import ROOT
from tests.training.experiments.grid.toy import write_toy

CONFIGS = ROOT / "training" / "configs"


@pytest.fixture
def quick():
    """With the number of threads as it was in the end."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("quick")
def test_a_part_of_a_grid_is_run_and_says_where_its_results_are(tmp_path, capsys):
    path, folder, db = write_toy(tmp_path), tmp_path / "out", str(tmp_path / "store.db")
    options = ["--output", str(folder), "--jobs", "1", "--mask", "causal", "--db", db]
    assert main(["grid", str(path), *options]) == 0
    out, err = capsys.readouterr()
    assert out == f"{folder / 'results.json'}\n"
    assert "1 run into" in err
    assert "1 of 2 runs are done." in err
    assert [file.name for file in (folder / "results").iterdir()] == ["tiny-24-causal-13.json"]
    # A report needs pairs, and there is none yet.
    assert main(["report", "grid", str(folder)]) == 2
    assert "has no pair of runs" in capsys.readouterr().err


def test_the_plan_of_the_papers_grid(capsys):
    assert main(["grid", str(CONFIGS / "grid.yaml"), "--plan", "--gpu", "48", "--size", "3B", "--seed", "7"]) == 0
    out = capsys.readouterr().out
    assert out.count("parameters    2,755,422,208") == 3
    # 1,000 traces in batches of 12 are 84 steps, in 3 epochs 252.
    assert "3B 1k\nparameters" in out
    assert "batch         12 traces = 6 devices x 2 traces x 1 parts\nsteps         252 in 3 epochs" in out
    assert out.splitlines()[-1] == "6 runs"


def test_the_plan_of_the_papers_evaluator(capsys):
    recipe = str(CONFIGS / "llada-prm-8b.yaml")
    assert main(["train", recipe, "--plan", "--gpu", "80"]) == 0
    assert "steps         12,035 in 1 epochs" in capsys.readouterr().out
    assert main(["train", recipe, "--plan", "--gpu", "80", "--devices", "1"]) == 2
    out, err = capsys.readouterr()
    assert out.splitlines()[-1] == "fits          no"
    assert "on each device, and may fill 73.6 of its 80 GiB. Set activation_checkpointing" in err


def test_the_report_of_the_papers_rows(tmp_path, capsys):
    paper = str(asset("reference", "full-grid-results.json"))
    assert main(["report", "grid", paper]) == 0
    out = capsys.readouterr().out
    assert "| macro-AUC | 22/27 | 0    | +1.06 [" in out
    assert main(["report", "grid", paper, "--output", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out' / 'report.html'}\n"
    assert "+6.20" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
