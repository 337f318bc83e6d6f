"""How long the tests of each room take, beside tests/seconds.json, which has what they took on two free cores.

`make seconds` compares: a room that takes a quarter longer fails. `make seconds SECONDS=write` lowers what fell.
"""

import json
from collections import Counter
from pathlib import Path

import pytest

LIMITS = Path(__file__).parent / "seconds.json"
# Seconds differ from run to run on the same machine.
TOLERANCE = 1.25
# What takes no longer is not worth a look.
LEAST = 5.0

_seconds: Counter[str] = Counter()


def pytest_addoption(parser):
    parser.addoption("--seconds", choices=["compare", "write"], help="the seconds of each room beside their limits")


def pytest_runtest_logreport(report):
    _seconds[room(report.nodeid)] += report.duration


def room(test):
    """The folder of a test, at most two levels below `tests`."""
    return "/".join(test.partition("::")[0].split("/")[1:-1][:2]) or "."


def pytest_terminal_summary(terminalreporter, config):
    if config.getoption("--seconds") is None or hasattr(config, "workerinput"):
        return
    limits = json.loads(LIMITS.read_text()) if LIMITS.is_file() else {}
    terminalreporter.section("seconds")
    for name, seconds in sorted(_seconds.items()):
        terminalreporter.line(f"{name:32} {seconds:8.1f} {limits.get(name, 0):8.1f}")
    terminalreporter.line(f"{'all':32} {sum(_seconds.values()):8.1f} {sum(limits.values()):8.1f}")
    if config.getoption("--seconds") == "write":
        lowered = {
            name: round(min(seconds, limits.get(name, seconds)), 1) for name, seconds in sorted(_seconds.items())
        }
        LIMITS.write_text(json.dumps(lowered, indent=2) + "\n")


def pytest_sessionfinish(session):
    if session.config.getoption("--seconds") != "compare" or hasattr(session.config, "workerinput"):
        return
    limits = json.loads(LIMITS.read_text())
    if any(seconds > max(LEAST, TOLERANCE * limits.get(name, 0)) for name, seconds in _seconds.items()):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
