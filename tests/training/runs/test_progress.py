import fcntl
import os
import pty
import struct
import termios

import pytest

from tests.forked import Forked
from tests.training.small_runs import CONFIG, forked, write_config

pytestmark = pytest.mark.slow


def test_an_occasional_line_replaces_the_bar_without_a_terminal(tmp_path):
    config = write_config(tmp_path / "config.yaml")
    done = forked(None, "train", config, "--output", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{tmp_path / 'out'}\n"
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"Training into {tmp_path / 'out'}; stop it whenever you like")
    # 240 traces in batches of 8, twice.
    assert lines[1].startswith("240 traces, ")
    assert "tokens; 60 steps of 8 in 2 epochs; 30,464 parameters; 1 x cpu." in lines[1]
    # Every step is logged, and every second one told: at most 50 lines.
    told = [line for line in lines if " of 60 steps" in line]
    assert [line.partition(",")[0] for line in told] == [f"{step} of 60 steps" for step in range(2, 61, 2)]


def test_a_terminal_shows_a_bar_with_loss_and_rate(tmp_path):
    ours, theirs = pty.openpty()
    # 24 lines of 100 characters.
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    config = write_config(tmp_path / "config.yaml", CONFIG)
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = Forked(None, ["train", config, "--output", tmp_path / "out"], environment, stderr=theirs)
    os.close(theirs)
    shown = b""
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:
        # Linux ends a terminal so when the last process has left it.
        pass
    os.close(ours)
    process.communicate()
    assert process.returncode == 0
    text = shown.decode()
    assert "60/60" in text
    assert " steps/s, loss=0." in text
    assert "60 of 60 steps" not in text
