"""Programs that the tests drive and pip does not install: Chromium, and nginx for slow tests.

    python -m tests.programs chromium nginx

looks for them. Somebody at a terminal is asked before anything is installed; elsewhere each command is printed
before it runs, with its output.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

from tests import browser

_APT = "apt-get update && apt-get install --yes"


def find_nginx():
    """The program; its folder need not be in a user's path."""
    return shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


@dataclass(frozen=True)
class Program:
    """A program, the commands that install it, of which one suffices, and the exit code where it is missing."""

    name: str
    is_installed: Callable[[], bool]
    commands: tuple[str, ...]
    needed: str
    code: int


PROGRAMS = {
    # Playwright's needs no rights of an administrator.
    "chromium": Program(
        "Chromium",
        browser.works,
        (
            f"{sys.executable} -m playwright install chromium",
            f"{_APT} chromium-headless-shell",
            f"{_APT} chromium",
        ),
        "The browser tests need it: sudo apt-get install chromium, or set STEPSIGHT_CHROMIUM to its path.",
        2,
    ),
    "nginx": Program(
        "nginx",
        lambda: find_nginx() is not None,
        (f"{_APT} nginx-light",),
        "The tests of servers behind it are skipped: sudo apt-get install nginx-light.",
        0,
    ),
}


def provide(program):
    """Install a program unless it is there; returns the exit code."""
    if program.is_installed():
        return 0
    for command in program.commands:
        if not _is_agreed(f"{program.name} is not installed.", command):
            continue
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run(command, shell=True, check=False, stdin=subprocess.DEVNULL, env=environment)
        if program.is_installed():
            return 0
    print(f"{program.name} is not installed. {program.needed}", file=sys.stderr)
    return program.code


def _is_agreed(reason, command):
    """True if the person at the terminal says yes to a command, or where there is none."""
    if sys.stdin is None or not sys.stdin.isatty():
        print(f"{reason} Running: {command}", file=sys.stderr, flush=True)
        return True
    return input(f"{reason} Run: {command}? [y/N] ").strip().lower() in ("y", "yes")


def main():
    return max(provide(PROGRAMS[name]) for name in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
