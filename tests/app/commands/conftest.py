"""Command lines as they are typed, in a folder of their own."""

from multiprocessing import forkserver

import pytest

from tests.transcripts import Transcript


@pytest.fixture(scope="session")
def processes_can_be_forked():
    """The process from which others are forked stays in the folder where it starts, which must not be a test's."""
    forkserver.ensure_running()


@pytest.fixture
def typed(command, request, monkeypatch, tmp_path, processes_can_be_forked):
    """Runs command lines in the folder and on the store of the test, and compares all that they print with the
    transcript of the test."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STEPSIGHT_DB", str(tmp_path / "store.db"))
    transcript = Transcript(command, request.node, monkeypatch)
    yield transcript
    transcript.compare()
