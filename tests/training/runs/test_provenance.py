import datetime
import platform
import subprocess

import accelerate
import torch

from stepsight.training.runs import provenance
from tests.conftest import ROOT


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
    monkeypatch.setattr(provenance, "_ROOT", path)
    commit = git("rev-parse", "HEAD", at=path)
    assert provenance.code_revision() == {"commit": commit, "modified": False}
    (path / "file").write_text("2")
    assert provenance.code_revision() == {"commit": commit, "modified": True}


def test_outside_a_checkout_there_is_the_version_alone(tmp_path, monkeypatch):
    # Though a checkout of something else lies around it, as around an environment in a project's folder.
    path = checkout(tmp_path / "other") / "site-packages"
    path.mkdir()
    monkeypatch.setattr(provenance, "_ROOT", path)
    assert provenance.code_revision() == {}
    assert provenance.versions()["stepsight"]


def test_a_checkout_without_git_or_without_a_commit_is_no_error(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "_ROOT", tmp_path)
    git("init", "-q", at=tmp_path)
    assert provenance.code_revision() == {}
    monkeypatch.setenv("PATH", "")
    assert provenance.code_revision() == {}


def test_versions_are_those_in_use():
    found = provenance.versions()
    assert set(found) == {"python", "stepsight", "torch", "transformers", "tokenizers", "accelerate"}
    assert (found["python"], found["torch"]) == (platform.python_version(), torch.__version__)
    assert found["accelerate"] == accelerate.__version__


def test_the_time_is_utc_to_the_second():
    made = datetime.datetime.fromisoformat(provenance.now())
    assert made.utcoffset() == datetime.timedelta(0)
    assert made.microsecond == 0
    assert abs(datetime.datetime.now(datetime.UTC) - made) < datetime.timedelta(minutes=1)


def test_places_are_told_by_their_last_part():
    value = {"path": "/data/a.jsonl", "relative": "data/a.jsonl", "list": [{"init": "/models/llada"}, 3, None]}
    assert provenance.without_places(value) == {
        "path": "a.jsonl",
        "relative": "data/a.jsonl",
        "list": [{"init": "llada"}, 3, None],
    }
