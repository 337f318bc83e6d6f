"""`stepsight sft`, `math500`, `filter-study` and `report filtering` as they are typed, within this process."""

import json
import shutil

import pytest
import yaml

from stepsight.app.commands.cli import main
from stepsight.core.paths import asset
from stepsight.training.experiments.finetuning.models import write_scratch_model
from tests.conftest import ROOT
from tests.training.experiments.finetuning.small import BACKBONE, POOL, PROBLEM, ROWS, STUDY

RECIPE = ROOT / "training" / "configs" / "mistral-7b-sft.yaml"
SETTINGS = {
    "epochs": 1,
    "batch_size": 8,
    "learning_rate": 1e-2,
    "warmup_steps": 1,
    "max_length": 128,
    "saved_dtype": "float32",
}


@pytest.fixture(scope="module", autouse=True)
def no_browser():
    """A picture takes longer than a run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BROWSER_PATH", "/nowhere/chromium")
        yield


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a recipe, a model to start from, a subset and three problems."""
    folder = tmp_path_factory.mktemp("sft")
    write_scratch_model(folder / "start", (text for row in ROWS for text in row), BACKBONE, 320, seed=1)
    (folder / "recipe.yaml").write_text(yaml.safe_dump(SETTINGS))
    rows = [json.dumps({"query": query, "response": response}) for query, response in ROWS]
    (folder / "red.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "problems.jsonl").write_text(PROBLEM * 3)
    return folder


def sft(made, output, *options, init="start"):
    init, data = str(made / init), str(made / "red.jsonl")
    return main(
        ["sft", str(made / "recipe.yaml"), "--init", init, "--data", data, "--output", str(output), *options]
    )


@pytest.mark.slow
def test_a_model_is_fine_tuned_measured_and_reported(made, tmp_path, capsys):
    models = [tmp_path / f"red-{seed}" for seed in (42, 43)]
    for model, seed in zip(models, ("42", "43"), strict=True):
        assert sft(made, model, "--seed", seed) == 0
        assert capsys.readouterr().out == f"{model}\n"
    options = ["--problems", str(made / "problems.jsonl"), "--tokens", "4", "--output", str(tmp_path / "out")]
    assert main(["math500", *map(str, models), *options]) == 0
    table = capsys.readouterr().out
    assert "| red-42 | Red-only | 42   | 0.0 [0.0, 56.1] |" in table
    assert "| mean   |          |      | 0.0" in table
    assert main(["report", "filtering", str(tmp_path / "out")]) == 0
    assert "| Red-only | 24  | 2     | 0.0  |" in capsys.readouterr().out
    # The same again finds it done, and another seed has no place in the folder.
    assert sft(made, models[0]) == 0
    assert "red-42 is fine-tuned already" in capsys.readouterr().err
    assert sft(made, models[0], "--seed", "43") == 2
    assert "red-42 holds another run (seed). Choose another --output." in capsys.readouterr().err


def test_the_papers_table_is_printed(capsys, tmp_path):
    paper = str(asset("reference", "filter-ablation.json"))
    assert main(["report", "filtering", paper]) == 0
    out = capsys.readouterr().out
    assert "| LLaDA-PRM                  | Red-only  | 5,222 | 22.5 | 249  | +3.4     |" in out
    assert main(["report", "filtering", paper, "--output", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'out' / 'report.html'}\n"
    assert (
        r"Red-only & 5,222 & 22.5 & 249 & $+3.4$ \\"
        in (tmp_path / "out" / "tables" / "paper-subsets.tex").read_text()
    )
    assert (tmp_path / "out" / "tables" / "paper-subsets.csv").read_text().splitlines()[3] == (
        '"LLaDA-PRM","Red-only",5222,0.225,249,0.034'
    )


def test_a_plan_loads_nothing(capsys):
    assert main(["sft", str(RECIPE), "--plan"]) == 0
    assert "parameters    7,241,732,096" in capsys.readouterr().out
    assert main(["sft", str(RECIPE), "--plan", "--gpu", "24"]) == 2
    assert "the run needs" in capsys.readouterr().err


@pytest.mark.slow
def test_a_study_is_one_command(tmp_path, capsys):
    (tmp_path / "pool.jsonl").write_text(POOL)
    (tmp_path / "problems.jsonl").write_text(PROBLEM * 3)
    study = tmp_path / "study.yaml"
    study.write_text(yaml.safe_dump(STUDY))
    output = tmp_path / "out"
    assert main(["filter-study", str(study), "--output", str(output), "--jobs", "1"]) == 0
    said = capsys.readouterr()
    assert "| mini-bidir | Red-only | 6   | 1     |" in said.out
    assert said.out.endswith(f"{output / 'report.html'}\n")
    assert "2 runs into" in said.err


@pytest.mark.parametrize(
    ("row", "message"),
    [({"query": "2 + 2?"}, "the field 'response' is missing"), ({"query": "2?", "response": " "}, "response")],
)
def test_a_row_without_an_answer_is_named(made, tmp_path, capsys, row, message):
    folder = shutil.copytree(made, tmp_path / "made")
    with (folder / "red.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    assert sft(folder, tmp_path / "out") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"stepsight sft: {folder / 'red.jsonl'} line 25: ")
    assert message in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["sft", str(RECIPE), "--gpu", "141"], "stepsight sft: --gpu and --devices go with --plan."),
        (["sft", str(RECIPE), "--init", "nothing here", "--data", "x"], "stepsight sft: there is no folder"),
        (["sft", "none.yaml"], "stepsight sft: none.yaml: cannot be read"),
        (["sft", str(RECIPE), "--threads", "0"], "stepsight sft: --threads is 0"),
        (["math500", "nothing here", "--output", "x", "--tokens", "0"], "stepsight math500: --tokens is 0"),
        (["filter-study", "none.yaml"], "stepsight filter-study: none.yaml: cannot be read"),
        (["filter-study", "none.yaml", "--jobs", "0"], "stepsight filter-study: --jobs is 0"),
        (["report", "filtering", "nowhere"], "stepsight report: nowhere: there is no math500.json in it."),
    ],
)
def test_mistakes_are_told(made, capsys, monkeypatch, command, message):
    monkeypatch.chdir(made)
    if "--output" in command and command[0] == "math500":
        command = [*command, "--problems", "problems.jsonl"]
    assert main(command) == 2
    assert capsys.readouterr().err.startswith(message)
    assert not (made / "x").exists()


def test_without_the_packages_it_says_what_to_install(made, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("stepsight.training.experiments.finetuning.run.find_spec", lambda name: None)
    assert sft(made, tmp_path / "x") == 2
    assert capsys.readouterr().err == "stepsight sft: trl is not installed. Install stepsight[sft].\n"
    monkeypatch.setattr("stepsight.training.evaluate.grading.find_spec", lambda name: None)
    problems = ["--problems", str(made / "problems.jsonl")]
    assert main(["math500", str(made / "start"), *problems, "--output", str(tmp_path / "x")]) == 2
    assert capsys.readouterr().err == "stepsight math500: math-verify is not installed. Install stepsight[sft].\n"


def test_an_evaluator_is_no_language_model(made, tmp_path, capsys):
    evaluator = str(asset("evaluators", "mini-bidir"))
    assert (
        main(["math500", evaluator, "--problems", str(made / "problems.jsonl"), "--output", str(tmp_path / "x")])
        == 2
    )
    assert "an evaluator of steps, no causal language model. Give one that writes text." in capsys.readouterr().err
    assert sft(made, tmp_path / "x", init=evaluator) == 2
    assert "no causal language model" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
