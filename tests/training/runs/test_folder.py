import json

import pytest

from stepsight.training.runs.folder import RECORD, RunFolder
from tests.messages import refused


def test_a_folder_belongs_to_one_run(tmp_path):
    folder = RunFolder(tmp_path / "run", free=("save_steps",))
    assert not folder.has_run()
    folder.begin({"seed": 1, "betas": (0.9, 0.95), "save_steps": 10})
    folder.begin({"seed": 1, "betas": (0.9, 0.95), "save_steps": 20})
    before = folder.record()
    assert before == {"seed": 1, "betas": [0.9, 0.95], "save_steps": 20}
    with refused():
        folder.begin({"seed": 2, "betas": (0.9, 0.95), "batch_size": 10})
    with refused():
        folder.check(dict.fromkeys("abcd", 1))
    assert folder.record() == before


def test_a_folder_that_is_not_a_run_is_left_alone(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    for path in (tmp_path, tmp_path / "notes.txt"):
        with refused():
            RunFolder(path).check({})
    empty = RunFolder(tmp_path / "empty")
    empty.path.mkdir()
    empty.check({})
    # Another one of several processes is at it.
    (empty.path / f"{RECORD}.0123.partial").write_text("{")
    with empty.lock():
        empty.check({})
    RunFolder(tmp_path / "none").check({})


def test_a_record_may_have_another_name(tmp_path):
    RunFolder(tmp_path, "study.json").begin({"name": "one"})
    assert json.loads((tmp_path / "study.json").read_text()) == {"name": "one"}


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for folder in (RunFolder(tmp_path / "file" / "one"), RunFolder(tmp_path / "file")):
        with refused(), folder.lock():
            pytest.fail("there is no folder")


def test_a_folder_is_held_by_one_at_a_time(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path / "runs" / "one")
    with folder.lock():
        with refused(), folder.lock():
            pytest.fail("it was held twice")
        # The second of those that were launched together leaves it to the first.
        monkeypatch.setenv("RANK", "1")
        with folder.lock():
            pass
        monkeypatch.delenv("RANK")
        assert [path.name for path in folder.path.iterdir()] == ["running.lock"]
    with folder.lock():
        pass
    # Nothing is left of it, nor of a folder that was not there before.
    assert not folder.path.exists()
