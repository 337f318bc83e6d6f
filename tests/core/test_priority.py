"""Whose turn it is at the processor."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stepsight.core.priority import lower_thread

AUTOGROUP = Path("/proc/self/autogroup")
IN_A_SESSION = """
import os
from pathlib import Path
from stepsight.core.priority import lower_process
lower_process()
group = Path("/proc/self/autogroup")
print(os.nice(0), group.read_text(encoding="ascii").split()[-1] if group.exists() else 10)
"""


@pytest.mark.parametrize("own", [True, False])
def test_a_process_is_less_than_others_and_so_is_a_session_of_its_own(own):
    before = AUTOGROUP.read_text(encoding="ascii").split()[-1] if AUTOGROUP.exists() else "10"
    command = [sys.executable, "-c", IN_A_SESSION]
    niceness, of_session = subprocess.check_output(command, text=True, start_new_session=own).split()
    assert int(niceness) == os.nice(0) + 10
    assert of_session == ("10" if own else before)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere threads have no niceness")
def test_a_thread_is_less_than_others_with_those_that_it_starts():
    seen = []

    def note():
        seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    def work():
        lower_thread()
        note()
        inner = threading.Thread(target=note)
        inner.start()
        inner.join()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    note()
    assert seen == [seen[2] + 10, seen[2] + 10, os.nice(0)]
