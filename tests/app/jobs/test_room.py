"""A worker that lacks memory asks its server, which hears of it."""

import io
import subprocess
import sys

from stepsight.app.jobs import worker
from stepsight.app.jobs.supervisor import Supervisor


def test_a_workers_request_for_memory_reaches_its_server_and_other_output_does_not(monkeypatch):
    lines = io.StringIO()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", lines)
        worker._ask_server(3_200_000_000)
    told = f"a library says hello\n{lines.getvalue()}\n12 apples\n"
    asked = []
    supervisor = Supervisor("sqlite:///none", give_room=asked.append)
    with subprocess.Popen([sys.executable, "-c", f"print({told!r})"], stdout=subprocess.PIPE) as process:
        supervisor._listen(process)
    assert asked == [3_200_000_000]


def test_a_server_that_is_gone_is_no_fault_of_a_worker(monkeypatch):
    class Gone(io.StringIO):
        def flush(self):
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Gone())
    worker._ask_server(1)
