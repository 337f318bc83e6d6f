import datetime
import importlib.metadata
import json
import platform
import subprocess

import accelerate
import pytest

from stepsight.training.runs.folder import RECORD, RunFolder, code_revision, now, versions, without_places
from tests.conftest import ROOT
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


def git(*arguments, at=ROOT):
    done = subprocess.run(["git", "-C", at, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def checkout(path):
    path.mkdir()
    git("init", "-q", at=path)
    (path / "file").write_text("1")
    git("add", ".", at=path)
    git("-c", "user.name=n", "-c", "user.email=e", "commit", "-qm", "first", at=path)
    return path


def test_the_revision_is_the_commit_and_whether_anything_differs(tmp_path, monkeypatch):
    path = checkout(tmp_path / "checkout")
    monkeypatch.setattr("stepsight.training.runs.folder._ROOT", path)
    commit = git("rev-parse", "HEAD", at=path)
    assert code_revision() == {"commit": commit, "modified": False}
    (path / "file").write_text("2")
    assert code_revision() == {"commit": commit, "modified": True}


def test_outside_a_checkout_there_is_the_version_alone(tmp_path, monkeypatch):
    # Though a checkout of something else lies around it, as around an environment in a project's folder.
    path = checkout(tmp_path / "other") / "site-packages"
    path.mkdir()
    monkeypatch.setattr("stepsight.training.runs.folder._ROOT", path)
    assert code_revision() == {}
    assert versions()["stepsight"]


def test_a_checkout_without_git_or_without_a_commit_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setattr("stepsight.training.runs.folder._ROOT", tmp_path)
    git("init", "-q", at=tmp_path)
    assert code_revision() == {}
    monkeypatch.setenv("PATH", "")
    assert code_revision() == {}


def test_versions_are_those_in_use():
    found = versions()
    assert set(found) == {"python", "stepsight", "torch", "transformers", "tokenizers", "accelerate"}
    assert (found["python"], found["torch"]) == (platform.python_version(), importlib.metadata.version("torch"))
    assert found["accelerate"] == accelerate.__version__


def test_the_time_is_utc_to_the_second():
    made = datetime.datetime.fromisoformat(now())
    assert made.utcoffset() == datetime.timedelta(0)
    assert made.microsecond == 0
    assert abs(datetime.datetime.now(datetime.UTC) - made) < datetime.timedelta(minutes=1)


def test_places_are_told_by_their_last_part():
    value = {"path": "/data/a.jsonl", "relative": "data/a.jsonl", "list": [{"init": "/models/llada"}, 3, None]}
    assert without_places(value) == {
        "path": "a.jsonl",
        "relative": "data/a.jsonl",
        "list": [{"init": "llada"}, 3, None],
    }
