"""Whole studies, from the pool to the results, in as few steps as there can be."""

import json
import shutil

import pytest
import yaml

from stepsight.training.experiments.finetuning.math500 import read_results
from stepsight.training.experiments.finetuning.study import read_study, run_study
from tests.cases import each
from tests.conftest import ROOT
from tests.messages import refused
from tests.training.experiments.finetuning.small import POOL, PROBLEM, STUDY

BACKBONE = STUDY["start"]["backbone"]


def write(path, values):
    path.write_text(yaml.safe_dump(values))
    return path


def run(path, folder, jobs=2):
    run_study(read_study(path), path.parent, folder, jobs)


def test_the_papers_study_has_its_recipe_seeds_and_subsets():
    study = read_study(ROOT / "training" / "configs" / "filter.yaml")
    recipe = study.recipe_for(ROOT / "training" / "configs")
    assert (recipe.init, recipe.epochs) == ("mistralai/Mistral-7B-v0.1", 4)
    assert (study.seeds, study.match, study.processes) == ((42, 43, 44), None, 4)
    assert (len(study.evaluators), len(study.subsets)) == (2, 4)
    read_study(ROOT / "training" / "configs" / "filter-mini.yaml")


@each(
    "changes",
    [
        {"seeds": []},
        {"seeds": [1, 1]},
        {"subsets": ["best"]},
        {"settings": {"seed": 1}},
        {"settings": {"init": "x"}},
        {"settings": {"epoch": 1}},
        {"start": None},
        {"engine": "vllm"},
        {"evaluators": ["runs/x/final", "runs/y/final"]},
        {"evaluators": ["GAIR/ReasonEval-7B", "ReasonEval-7B"]},
        {"start": {"backbone": BACKBONE | {"hidden": 30, "heads": 4}}},
    ],
)
def test_meaningless_studies_are_refused(tmp_path, changes):
    values = {key: value for key, value in (STUDY | changes).items() if value is not None}
    with refused():
        read_study(write(tmp_path / "study.yaml", values))


@pytest.mark.slow
def test_a_study_is_run_resumed_and_refused(tmp_path, capsys):
    rows = [json.loads(line) | {"source": "MATH" if n % 4 else "other"} for n, line in enumerate(POOL.splitlines())]
    (tmp_path / "pool.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    # One of the fifteen rows from MATH is the problem.
    problem = json.dumps({"problem": rows[1]["instruction"], "answer": "2"})
    (tmp_path / "problems.jsonl").write_text(f"{problem}\n" * 3)
    path, folder = write(tmp_path / "study.yaml", STUDY | {"where": ["source=MATH"]}), tmp_path / "out"
    run(path, folder)
    home = folder / "mini-bidir"
    assert {(one.scorer, one.subset, one.seed, one.rows) for one in read_results([folder])} == {
        ("mini-bidir", "red", 1, 6), ("mini-bidir", "random", 1, 6)
    }  # fmt: skip
    manifest = json.loads((home / "subsets" / "manifest.json").read_text())
    assert manifest["pool"]["drawn"]["met"] == 15
    assert [benchmark["rows"] for benchmark in manifest["benchmarks"]] == [1]
    cards = [json.loads((home / name / "sft.json").read_text()) for name in ("red-1", "random-1")]
    # Two batches of six rows, once, from the same model; its weights are gone.
    assert [(card["steps"], card["examples"], card["seed"]) for card in cards] == [(2, 6, 1)] * 2
    assert cards[0]["init"] == cards[1]["init"]
    assert cards[0]["data"]["sha256"] != cards[1]["data"]["sha256"]
    assert not list(home.glob("*/model.safetensors"))
    assert "2 of 2: mini-bidir/math500/" in capsys.readouterr().err
    # Again, nothing is done but what is missing, which comes to the same; one failure does not stop the rest.
    before = {item: item.read_bytes() for item in folder.rglob("math500.json")}
    for name in ("red-1", "random-1"):
        shutil.rmtree(home / name)
        shutil.rmtree(home / "math500" / name)
    red = home / "subsets" / "red.jsonl"
    text = red.read_text()
    red.write_text('{"query": "2 + 2?"}\n')
    with refused():
        run(path, folder)
    assert list(folder.rglob("math500.json")) == [home / "math500" / "random-1" / "math500.json"]
    red.write_text(text)
    run(path, folder)
    assert {item: item.read_bytes() for item in folder.rglob("math500.json")} == before
    for other in ({"tokens": 5}, {"settings": STUDY["settings"] | {"batch_size": 2}}):
        with refused():
            run(write(tmp_path / "other.yaml", STUDY | {"where": ["source=MATH"]} | other), folder)


def test_a_missing_file_is_named_before_there_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("STEPSIGHT_DATA", raising=False)
    (tmp_path / "pool.jsonl").write_text(POOL)
    path = write(tmp_path / "study.yaml", STUDY)
    with refused():
        run(path, tmp_path / "out")
    (tmp_path / "problems.jsonl").write_text(PROBLEM)
    with refused():
        run(write(path, STUDY | {"pool": ["none.jsonl"]}), tmp_path / "out")
    assert not (tmp_path / "out").exists()
