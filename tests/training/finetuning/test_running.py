"""A whole study, from the pool to the results, in as few steps as there can be."""

import json
import shutil

import pytest
import yaml

from core.errors import UserError
from tests.training.finetuning.small import STUDY
from tests.training.finetuning.test_study import write
from training.finetuning.cell import result_path
from training.finetuning.results import read_results
from training.finetuning.running import Experiment
from training.finetuning.study import Cell, read_study


def test_every_run_has_a_result_and_its_model_is_gone(done):
    path, folder = done
    study = read_study(path)
    results = read_results([folder])
    assert {(one.scorer, one.subset, one.seed, one.rows) for one in results} == {
        ("mini-bidir", "red", 1, 6), ("mini-bidir", "random", 1, 6)
    }  # fmt: skip
    for cell in study.cells():
        names = sorted(item.name for item in (folder / cell.name).iterdir())
        assert names == ["log_history.json", "math500", "sft.json"]
        card = json.loads((folder / cell.name / "sft.json").read_text())
        # Two batches of six rows, once.
        assert (card["steps"], card["examples"], card["seed"]) == (2, 6, 1)
    cards = [json.loads((folder / cell.name / "sft.json").read_text()) for cell in study.cells()]
    assert cards[0]["init"] == cards[1]["init"]
    assert cards[0]["data"]["sha256"] != cards[1]["data"]["sha256"]


def test_again_nothing_is_done(done):
    path, folder = done
    before = {item: item.read_bytes() for item in folder.rglob("*") if item.is_file()}
    Experiment(read_study(path), path, folder).run(jobs=2)
    assert {item: item.read_bytes() for item in folder.rglob("*") if item.is_file()} == before


def test_what_is_missing_is_done_by_processes_of_their_own(done, tmp_path, capsys):
    path, folder = done
    copy = shutil.copytree(folder, tmp_path / "out")
    cell = list(read_study(path).cells())[1]
    shutil.rmtree(copy / cell.name)
    Experiment(read_study(path), path, copy).run(jobs=2)
    assert result_path(copy, cell).read_text() == result_path(folder, cell).read_text()
    assert "1 of 1: mini-bidir, Random, seed 1: 0 of 3 right" in capsys.readouterr().err
    assert "2 steps of 4 in 1 epoch" in (copy / "logs" / "1.txt").read_text()


def test_another_study_or_a_missing_file_is_refused(done, tmp_path):
    path, folder = done
    other = write(path.with_name("other.yaml"), STUDY | {"tokens": 5})
    with pytest.raises(UserError, match="belongs to another study"):
        Experiment(read_study(other), other, folder).run(jobs=1)
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="holds something else"):
        Experiment(read_study(path), path, tmp_path).run(jobs=1)
    lost = write(path.with_name("lost.yaml"), STUDY | {"pool": ["none.jsonl"]})
    with pytest.raises(UserError, match=r"there is no file none\.jsonl in"):
        Experiment(read_study(lost), lost, tmp_path / "lost").run(jobs=1)
    assert not (tmp_path / "lost").exists()


def test_a_study_names_its_runs(done):
    study = read_study(done[0])
    assert Cell("mini-bidir", "red", 1) in list(study.cells())
    assert yaml.safe_load(done[0].read_text())["name"] == "small"
