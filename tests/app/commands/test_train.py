"""`stepsight train`, `grid`, `filter`, `sft`, `math500` and `filter-study`, within this process."""

import json

import pytest
import torch
import yaml

from stepsight.training.experiments.finetuning.sft import write_scratch_model
from tests.checkpoints import write_evaluator
from tests.conftest import ROOT
from tests.training.experiments.filtering.pools import sums, write_rows
from tests.training.experiments.finetuning.small import BACKBONE, PROBLEM, ROWS, STUDY, write_subset
from tests.training.experiments.grid.toy import write_toy

CONFIGS = ROOT / "training" / "configs"


@pytest.fixture(autouse=True)
def threads_are_as_before():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def write_config(folder, **changes):
    values = {
        "attention": "bidirectional",
        "data": {"sources": [{"kind": "synthetic", "size": 16}]},
        "backbone": {"hidden": 16, "layers": 1, "heads": 2, "mlp": 16, "context": 1024},
        "vocabulary": 300,
        "batch_size": 8,
    }
    (folder / "small.yaml").write_text(yaml.safe_dump(values | changes))


def test_training_gives_an_evaluator_that_the_next_command_takes(typed, tmp_path):
    write_config(tmp_path)
    trained = typed.run("train small.yaml --threads 1")
    assert (trained.code, trained.out) == (0, "runs/small\n")
    lines = trained.err.splitlines()
    assert lines[0] == "Training into runs/small; stop it whenever you like, the same command resumes."
    assert lines[1].startswith("16 traces, ")
    assert "2 steps of 8 in 1 epoch; " in lines[1]
    assert lines[3].startswith("2 of 2 steps, loss ")
    assert {"log_history.json", "training.html"} < {path.name for path in (tmp_path / "runs/small").iterdir()}
    write_rows(tmp_path / "t.jsonl", [{"id": "a", "problem": "What is 2 + 3?", "steps": ["2 + 3 = 5."]}])
    scored = typed.run("score --input t.jsonl --evaluator runs/small")
    assert [row["evaluator"] for row in scored.rows] == ["small"], scored.err
    write_config(tmp_path, seed=2)
    again = typed.run("train small.yaml")
    assert (again.code, again.err.splitlines()[-1]) == (
        2, "stepsight train: runs/small holds another run (seed). Choose another --output.",
    )  # fmt: skip
    below = typed.run("train small.yaml --output small.yaml/below")
    assert below.code == 2
    assert "cannot be written (Not a directory). Choose another --output" in below.err.splitlines()[-1]


def test_a_part_of_a_grid_is_run_and_says_where_its_results_are(typed, tmp_path):
    write_toy(tmp_path).rename(tmp_path / "toy.yaml")
    outcome = typed.run("grid toy.yaml --output out --jobs 1 --mask causal")
    assert (outcome.code, outcome.out) == (0, "out/results.json\n")
    assert "1 run into" in outcome.err
    assert "1 of 2 runs are done." in outcome.err
    assert [file.name for file in (tmp_path / "out" / "done").iterdir()] == ["tiny-24-causal-13.json"]
    # A report needs pairs, and there is none yet.
    refused = typed.run("report grid out")
    assert (refused.code, "has no pair of runs" in refused.err) == (2, True)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        # 1,000 traces in batches of 12 are 84 steps, in 3 epochs 252.
        ("grid {}/grid.yaml --gpu 48 --size 3B --seed 7", 0),
        ("train {}/llada-prm-8b.yaml --gpu 80", 0),
        ("train {}/llada-prm-8b.yaml --gpu 80 --devices 1", 2),
        ("sft {}/mistral-7b-sft.yaml", 0),
        ("sft {}/mistral-7b-sft.yaml --gpu 24", 2),
    ],
    ids=["grid", "train", "train-on-one", "sft", "sft-too-small"],
)
def test_a_plan_loads_nothing(typed, line, code):
    assert typed(f"{line.format(CONFIGS)} --plan").code == code


@pytest.fixture
def pool(tmp_path):
    """A pool of forty solutions, and a tiny evaluator."""
    write_evaluator(tmp_path / "tiny")
    return write_rows(tmp_path / "pool.jsonl", sums(40))


@pytest.mark.usefixtures("pool")
def test_the_manifest_is_named_and_summarised(typed, tmp_path):
    options = "--evaluator ./tiny --output out --validity 0.3 --redundancy 0.6"
    first = typed.run(f"filter pool.jsonl {options}")
    assert (first.code, first.out) == (0, "out/manifest.json\n")
    size = json.loads((tmp_path / "out" / "manifest.json").read_text())["size"]
    judged, chosen = first.err.splitlines()[:2]
    assert judged.startswith("40 solutions judged by tiny: ")
    assert judged.endswith(f" {size} valid and not redundant.")
    assert chosen == f"{size} of them in each of val+red, val, red, random."
    # Again, it only says so; and so it does of the dataset that it made.
    before = (tmp_path / "out" / "manifest.json").stat().st_mtime_ns
    for source in ("pool.jsonl", "--dataset pool"):
        assert typed.run(f"filter {source} {options}") == first
    assert (tmp_path / "out" / "manifest.json").stat().st_mtime_ns == before


def test_every_option_of_a_filtering_is_passed_on(typed, pool, tmp_path):
    rows = [{"ask": row["instruction"], "tell": row["output"], "source": "é"} for row in sums(12)]
    rows[4]["tell"] = ""
    write_rows(pool, rows)
    write_rows(tmp_path / "test.jsonl", [{"problem": "What is 2 + 3?", "answer": "5"}])
    outcome = typed.run(
        "filter pool.jsonl --fields ask tell --evaluator ./tiny --output out --skip-bad --by val --by random"
        " --match 99 --seed 3 --benchmark test.jsonl --dataset mine --where source=é --sample 11"
    )
    assert outcome.code == 0
    lines = outcome.err.splitlines()
    assert lines[0] == "The pool: 11 of 11 solutions that meet source=é."
    assert lines[-2].endswith("test.jsonl, and left out.")
    assert lines[-1] == "1 row was left out; out/manifest.json says why."
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["pool"]["dataset"] == "mine"
    assert [manifest[key] for key in ("seed", "match", "size")] == [3, 99, 10]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "manifest.json", "random.jsonl", "run.json", "val.jsonl",
    ]  # fmt: skip


@pytest.fixture
def recipe(tmp_path):
    """A recipe, a model to start from, a subset and three problems."""
    write_scratch_model(tmp_path / "start", (text for row in ROWS for text in row), BACKBONE, 320, seed=1)
    settings = STUDY["settings"] | {"batch_size": 8, "max_length": 128}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(settings))
    write_subset(tmp_path / "red.jsonl")
    (tmp_path / "problems.jsonl").write_text(PROBLEM * 3)


@pytest.mark.slow
@pytest.mark.usefixtures("recipe")
def test_a_model_is_fine_tuned_measured_and_reported(typed):
    for seed in (42, 43):
        tuned = typed.run(f"sft recipe.yaml --init start --data red.jsonl --output red-{seed} --seed {seed}")
        assert (tuned.code, tuned.out) == (0, f"red-{seed}\n")
    measured = typed.run("math500 ./red-42 ./red-43 --problems problems.jsonl --tokens 4 --output out")
    assert "|        | Red-only | 24  | 42   | 0.0 [0.0, 56.1] | 4    | 3   |" in measured.out
    assert "| Red-only | 24  | 2     | 0.0  |" in typed.run("report filtering out").out


@pytest.mark.usefixtures("recipe")
def test_without_the_packages_it_says_what_to_install(typed, monkeypatch):
    monkeypatch.setattr("stepsight.training.experiments.answers.find_spec", lambda name: None)
    typed("math500 start --problems problems.jsonl --output x")
