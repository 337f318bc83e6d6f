"""Whose turn it is at the processor."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
