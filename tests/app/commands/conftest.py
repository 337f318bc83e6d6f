"""Command lines as they are typed, in a folder of their own."""

import shutil

import pytest

from tests.transcripts import Transcript


@pytest.fixture
def tmp_path(tmp_path_factory):
    """A folder that stays, but empty, after the test: a process that a command has started in it may outlive it."""
    folder = tmp_path_factory.mktemp("typed")
    yield folder
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


@pytest.fixture
def typed(command, monkeypatch, tmp_path):
    """Runs command lines in the folder and on the store of the test, and compares all that they print."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEPSIGHT_DB", str(tmp_path / "store.db"))
    return Transcript(command, monkeypatch)
