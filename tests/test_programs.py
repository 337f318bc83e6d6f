import os
import pty
import shlex
import subprocess
import sys

import pytest

from tests.conftest import ROOT

LOOKS = """import sys
from pathlib import Path
from tests.programs import Program, provide
path = Path(sys.argv[1])
commands = "false", f"echo installing; touch {path}"
sys.exit(provide(Program("Such a thing", path.exists, commands, "We need it.", 2)))
"""


def run(path, stdin):
    process = subprocess.run(
        [sys.executable, "-c", LOOKS, path], cwd=ROOT, stdin=stdin, capture_output=True, text=True
    )
    return process.returncode, process.stdout + process.stderr


def test_without_a_terminal_what_is_run_is_printed_with_its_output(tmp_path):
    path = tmp_path / "program"
    code, output = run(path, subprocess.DEVNULL)
    assert (code, path.exists()) == (0, True)
    assert "Such a thing is not installed. Running: false\n" in output
    assert f"Running: echo installing; touch {shlex.quote(str(path))}\n" in output
    assert "\ninstalling\n" in f"\n{output}"
    assert run(path, subprocess.DEVNULL) == (0, "")


@pytest.mark.parametrize(("answers", "expected"), [("n\ny\n", 0), ("\n\n", 2)])
def test_at_a_terminal_nothing_is_run_without_a_yes(tmp_path, answers, expected):
    ours, theirs = pty.openpty()
    os.write(ours, answers.encode())
    path = tmp_path / "program"
    code, output = run(path, theirs)
    os.close(ours)
    os.close(theirs)
    assert (code, path.exists()) == (expected, expected == 0)
    assert "Such a thing is not installed. Run: false? [y/N] " in output
    assert output.endswith("Such a thing is not installed. We need it.\n") == (expected == 2)
