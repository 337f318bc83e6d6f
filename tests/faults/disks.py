"""A disk of a few megabytes, of its own, that can be filled and made read-only."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_KEEP = 4096


class SmallDisk:
    """A file system at `path`, mounted for a test."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def full(self) -> Iterator[None]:
        """Without a free block, as long as the block lasts."""
        filler = self.path / "filler"
        with open(filler, "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"\0" * _KEEP)
            except OSError:
                pass
        try:
            yield
        finally:
            filler.unlink()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """As the system leaves it after an error of the disk."""
        _mount("-o", "remount,ro", self.path)
        try:
            yield
        finally:
            _mount("-o", "remount,rw", self.path)


@contextmanager
def small_disk(path, megabytes):
    """Mounted at `path`; where that is not permitted, the test is skipped."""
    path.mkdir()
    made = _mount("-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", path, check=False)
    if made:
        pytest.skip(f"a file system of its own needs the right to mount one ({made})")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", path], check=True)


def _mount(*arguments, check=True):
    """Why it could not be done, "" where it was."""
    if os.name == "nt":
        return "no mount here"
    try:
        done = subprocess.run(["mount", *map(str, arguments)], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return "no mount here"
    assert not check or not done.returncode, done.stderr
    return done.stderr.strip() if done.returncode else ""
