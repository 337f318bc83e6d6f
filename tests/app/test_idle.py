"""What a server costs at which nobody is."""

import os
import re
import shutil
import signal
import time
import urllib.request
from pathlib import Path

import pytest

from tests.app.processes import family, until
from tests.forked import Forked

pytestmark = pytest.mark.slow

# So many seconds without a visitor take 0.01 s of processor time, and took 0.7 s when Gradio ran its queue; so many
# pages take 0.2 s.
SECONDS, PAGES = 10, 20


def processor_seconds(pids):
    fields = [Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split() for pid in pids]
    return sum(int(one[11]) + int(one[12]) for one in fields) / os.sysconf("SC_CLK_TCK")


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="processes are looked up in /proc")
def test_a_server_that_nobody_asks_costs_less_than_a_few_pages(seeded_file, tmp_path):
    shutil.copy(seeded_file, tmp_path / "store.db")
    with Forked(None, ["app", "--db", tmp_path / "store.db", "--port", 0]) as process:
        started = ""
        while "Ctrl-C" not in started:
            started += process.stderr.readline()
        [address] = set(re.findall(r"http://127\.0\.0\.1:\d+", started))
        # The worker looks for jobs.
        until(lambda: len(family(process.pid)) == 2)
        pids = family(process.pid)

        def cost(work):
            before = processor_seconds(pids)
            work()
            return processor_seconds(pids) - before

        def visit():
            for _ in range(PAGES):
                urllib.request.urlopen(f"{address}/browse", timeout=600).read()

        visit()
        pages = cost(visit)
        # What the server loads behind its port may still go on.
        idle = min(cost(lambda: time.sleep(SECONDS)) for _ in range(3))
        process.send_signal(signal.SIGINT)
    assert idle < pages
