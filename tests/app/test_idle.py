"""What a server costs at which nobody is."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from tests.app.processes import family
from tests.forked import Forked

pytestmark = pytest.mark.slow

# In 10 s it takes 0.01 s of processor time, and took 0.7 s when Gradio's queue ran.
SECONDS, BOUND = 10, 0.15


def processor_seconds(pids):
    fields = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids]
    return sum(int(one[11]) + int(one[12]) for one in fields) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="processes are looked up in /proc")
def test_a_server_that_nobody_asks_costs_next_to_nothing(seeded_file, tmp_path):
    shutil.copy(seeded_file, tmp_path / "store.db")
    with Forked(None, ["app", "--db", tmp_path / "store.db", "--port", 0]) as process:
        while "Ctrl-C" not in process.stderr.readline():
            pass
        # The worker looks for jobs, and what was loaded settles.
        time.sleep(8)
        pids = family(process.pid)
        assert len(pids) == 2
        before = processor_seconds(pids)
        time.sleep(SECONDS)
        taken = processor_seconds(pids) - before
        process.send_signal(signal.SIGINT)
    assert taken < BOUND
