"""A whole study, from the pool to the results, in as few steps as there can be."""

import json
import re
import shutil

import pytest
import yaml

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.placement import STORED
from stepsight.training.experiments.finetuning.experiment import Experiment, result_path
from stepsight.training.experiments.finetuning.experiment import main as run_cell
from stepsight.training.experiments.finetuning.results import read_results
from stepsight.training.experiments.finetuning.study import StudyRun, read_study
from tests.messages import refused
from tests.training.experiments.finetuning.small import POOL, PROBLEM, STUDY
from tests.training.experiments.finetuning.test_study import write


def test_every_run_has_a_result_and_its_model_is_gone(done):
    path, folder = done
    study = read_study(path)
    results = read_results([folder])
    assert {(one.scorer, one.subset, one.seed, one.rows) for one in results} == {
        ("mini-bidir", "red", 1, 6), ("mini-bidir", "random", 1, 6)
    }  # fmt: skip
    for run in study.runs():
        names = sorted(item.name for item in (folder / run.name).iterdir())
        assert names == ["log_history.json", "math500", "sft.json"]
        card = json.loads((folder / run.name / "sft.json").read_text())
        # Two batches of six rows, once.
        assert (card["steps"], card["examples"], card["seed"]) == (2, 6, 1)
    cards = [json.loads((folder / run.name / "sft.json").read_text()) for run in study.runs()]
    assert cards[0]["init"] == cards[1]["init"]
    assert cards[0]["data"]["sha256"] != cards[1]["data"]["sha256"]


def test_again_nothing_is_done(done):
    path, folder = done
    before = {item: item.read_bytes() for item in folder.rglob("*") if item.is_file()}
    Experiment(read_study(path), path, folder).run(jobs=2)
    assert {item: item.read_bytes() for item in folder.rglob("*") if item.is_file()} == before


@pytest.mark.slow
def test_missing_runs_are_done_by_separate_processes(done, tmp_path, capsys):
    path, folder = done
    copy = shutil.copytree(folder, tmp_path / "out")
    run = list(read_study(path).runs())[1]
    shutil.rmtree(copy / run.name)
    Experiment(read_study(path), path, copy).run(jobs=2)
    assert result_path(copy, run).read_text() == result_path(folder, run).read_text()
    assert "1 of 1: mini-bidir, Random, seed 1: 0 of 3 right" in capsys.readouterr().err
    assert "2 steps of 4 in 1 epoch" in (copy / "logs" / f"{run.name}.txt").read_text()


def test_another_study_or_a_missing_file_is_refused(done, tmp_path, monkeypatch):
    monkeypatch.delenv("STEPSIGHT_DATA", raising=False)
    path, folder = done
    other = write(path.with_name("other.yaml"), STUDY | {"tokens": 5})
    with refused():
        Experiment(read_study(other), other, folder).run(jobs=1)
    (tmp_path / "notes.txt").write_text("mine")
    with refused():
        Experiment(read_study(path), path, tmp_path).run(jobs=1)
    lost = write(path.with_name("lost.yaml"), STUDY | {"pool": ["none.jsonl"]})
    with refused():
        Experiment(read_study(lost), lost, tmp_path / "lost").run(jobs=1)
    assert not (tmp_path / "lost").exists()


def test_a_recipe_that_was_changed_midway_is_refused(done, tmp_path):
    path, folder = done
    copy = shutil.copytree(folder, tmp_path / "out")
    run = list(read_study(path).runs())[1]
    shutil.rmtree(copy / run.name)
    # The same recipe, now from a file; a run may be computed in other parts, and nothing else.
    write(path.with_name("recipe.yaml"), STUDY["settings"] | {"accumulation": 2})
    moved = write(path.with_name("moved.yaml"), STUDY | {"recipe": "recipe.yaml", "settings": {}})
    study = read_study(moved)
    Experiment(study, moved, copy)._begin()
    write(path.with_name("recipe.yaml"), STUDY["settings"] | {"batch_size": 2})
    with refused():
        Experiment(study, moved, copy).run(jobs=1)
    # A run that is started later looks once more.
    assert run_cell([str(moved), str(copy), run.name]) == 2
    assert not (copy / run.name / "red-1").exists()
    assert not result_path(copy, run).exists()


def test_a_failure_says_its_reason(done, tmp_path, capsys):
    path, folder = done
    copy = shutil.copytree(folder, tmp_path / "out")
    study = read_study(path)
    red, _ = study.runs()
    shutil.rmtree(copy / red.name)
    (copy / "mini-bidir" / "subsets" / "red.jsonl").write_text('{"query": "2 + 2?"}\n')
    with refused():
        Experiment(study, path, copy).run(jobs=1)
    # The last line of a process of its own is the reason too.
    assert run_cell([str(path), str(copy), red.name]) == 2
    assert re.search(r"red\.jsonl line 1: .*response", capsys.readouterr().err.splitlines()[-1])


def test_a_study_names_its_runs(done):
    study = read_study(done[0])
    assert StudyRun("mini-bidir", "red", 1) in list(study.runs())
    assert yaml.safe_load(done[0].read_text())["name"] == "small"


@pytest.mark.parametrize("leave_out", [True, False])
def test_the_pool_can_be_drawn_and_may_hold_the_problems(tmp_path, leave_out):
    rows = [json.loads(line) | {"source": "MATH" if n % 4 else "other"} for n, line in enumerate(POOL.splitlines())]
    asked = rows[1]["instruction"]
    (tmp_path / "pool.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    (tmp_path / "problems.jsonl").write_text(json.dumps({"problem": asked, "answer": "2"}) + "\n")
    drawn = {
        "where": ["source=MATH"],
        "sample": 15,
        "leave_out_problems": leave_out,
        "match": 3,
        "subsets": ["red"],
    }
    path = write(tmp_path / "study.yaml", STUDY | drawn)
    Experiment(read_study(path), path, tmp_path / "out").run(jobs=1)
    manifest = json.loads((tmp_path / "out" / "mini-bidir" / "subsets" / "manifest.json").read_text())
    # All that meet the condition are drawn, of which one is a problem.
    drawn = manifest["pool"]["drawn"]
    assert (drawn["met"], drawn["size"]) == (15, 15)
    assert sum(one["rows"] for one in manifest["benchmarks"]) == leave_out
    # As the command alone does, in the type that the weights are stored in.
    assert manifest["evaluator"]["fingerprint"] == load_evaluator("mini-bidir", dtype=STORED).fingerprint


def test_a_study_that_asks_for_more_than_is_there_is_refused(tmp_path):
    (tmp_path / "pool.jsonl").write_text(POOL)
    (tmp_path / "problems.jsonl").write_text(PROBLEM)
    for changes in ({"sample": 21}, {"where": ["source=MATH"]}):
        path = write(tmp_path / "study.yaml", STUDY | changes)
        with refused():
            Experiment(read_study(path), path, tmp_path / "out").run(jobs=1)
        assert not (tmp_path / "out").exists()
