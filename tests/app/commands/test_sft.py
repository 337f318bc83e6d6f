"""`stepsight sft`, `math500`, `filter-study` and `report filtering` as they are typed, within this process."""

import pytest
import yaml

from stepsight.app.commands.cli import main
from stepsight.core.paths import asset
from stepsight.training.experiments.finetuning.sft import write_scratch_model
from tests.conftest import ROOT
from tests.training.experiments.finetuning.small import BACKBONE, POOL, PROBLEM, ROWS, STUDY, write_subset

RECIPE = ROOT / "training" / "configs" / "mistral-7b-sft.yaml"
SETTINGS = STUDY["settings"] | {"batch_size": 8, "max_length": 128}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a recipe, a model to start from, a subset and three problems."""
    folder = tmp_path_factory.mktemp("sft")
    write_scratch_model(folder / "start", (text for row in ROWS for text in row), BACKBONE, 320, seed=1)
    (folder / "recipe.yaml").write_text(yaml.safe_dump(SETTINGS))
    write_subset(folder / "red.jsonl")
    (folder / "problems.jsonl").write_text(PROBLEM * 3)
    return folder


@pytest.mark.slow
def test_a_model_is_fine_tuned_measured_and_reported(made, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(made)
    models = [tmp_path / f"red-{seed}" for seed in (42, 43)]
    for model in models:
        seed = model.name.removeprefix("red-")
        tune = ["sft", "recipe.yaml", "--init", "start", "--data", "red.jsonl", "--output", str(model)]
        assert main([*tune, "--seed", seed]) == 0
        assert capsys.readouterr().out == f"{model}\n"
    options = ["--problems", "problems.jsonl", "--tokens", "4", "--output", str(tmp_path / "out")]
    assert main(["math500", *map(str, models), *options]) == 0
    table = capsys.readouterr().out
    assert "|        | Red-only | 24  | 42   | 0.0 [0.0, 56.1] | 4    | 3   |" in table
    assert main(["report", "filtering", str(tmp_path / "out")]) == 0
    assert "| Red-only | 24  | 2     | 0.0  |" in capsys.readouterr().out


def test_the_papers_table_is_printed(capsys, tmp_path):
    paper = str(asset("reference", "filter-ablation.json"))
    assert main(["report", "filtering", paper]) == 0
    out = capsys.readouterr().out
    assert "| LLaDA-PRM                  | Red-only  | 5,222 | 3     | 22.5 | 249  | +3.4     |" in out
    assert main(["report", "filtering", paper, "--output", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out' / 'report.html'}\n"


def test_a_plan_loads_nothing(capsys):
    assert main(["sft", str(RECIPE), "--plan"]) == 0
    assert "parameters    7,241,732,096" in capsys.readouterr().out
    assert main(["sft", str(RECIPE), "--plan", "--gpu", "24"]) == 2
    assert "the run needs" in capsys.readouterr().err


@pytest.mark.slow
def test_a_study_is_one_command(tmp_path, capsys):
    (tmp_path / "pool.jsonl").write_text(POOL)
    (tmp_path / "problems.jsonl").write_text(PROBLEM * 3)
    study, output = tmp_path / "study.yaml", tmp_path / "out"
    study.write_text(yaml.safe_dump(STUDY | {"subsets": ["red"]}))
    assert main(["filter-study", str(study), "--output", str(output), "--jobs", "1"]) == 0
    printed = capsys.readouterr()
    assert "| mini-bidir | Red-only | 6   | 1     |" in printed.out
    assert printed.out.endswith(f"{output / 'report.html'}\n")
    assert "1 runs into" in printed.err


def test_without_the_packages_it_says_what_to_install(made, capsys, monkeypatch):
    monkeypatch.chdir(made)
    monkeypatch.setattr("stepsight.training.experiments.finetuning.sft.find_spec", lambda name: None)
    assert main(["sft", "recipe.yaml", "--init", "start", "--data", "red.jsonl", "--output", "x"]) == 2
    assert capsys.readouterr().err.endswith("stepsight sft: trl is not installed. Install stepsight[sft].\n")
    monkeypatch.setattr("stepsight.training.experiments.answers.find_spec", lambda name: None)
    assert main(["math500", "start", "--problems", "problems.jsonl", "--output", "x"]) == 2
    assert capsys.readouterr().err == "stepsight math500: math-verify is not installed. Install stepsight[sft].\n"
