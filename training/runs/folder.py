"""What a folder belongs to: one run, told by the values that its results depend on, and one process at a time."""

import fcntl
import json
import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.files import read_json, write_json

RECORD = "run.json"
_LOCK = "running.lock"


def check_claim(folder: Path, values: Mapping[str, Any], free: Collection[str] = ()) -> None:
    """Raises `UserError` where the folder holds another run, naming the keys that differ but for those in `free`,
    or something that is no run."""
    record = folder / RECORD
    if not record.is_file():
        if folder.exists() and not _is_free(folder):
            raise UserError(f"{folder} holds something else.", "Choose another --output, or an empty folder.")
        return
    used, ours = read_json(record), json.loads(json.dumps(values))
    keys = sorted(key for key in set(used) | set(ours) if key not in free and used.get(key) != ours.get(key))
    if keys:
        raise UserError(f"{folder} holds another run ({', '.join(map(_shown, keys))}).", "Choose another --output.")


def claim(folder: Path, values: Mapping[str, Any], free: Collection[str] = ()) -> None:
    """Make a folder this run's. Raises `UserError` as `check_claim`, and where it cannot be written."""
    check_claim(folder, values, free)
    write_json(folder / RECORD, values)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Hold a run's folder; of processes launched together the first does so for all. Raises `UserError` where
    another process holds it, or it cannot be written."""
    if not is_first():
        yield
        return
    path, was_there = folder / _LOCK, folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = open(path, "w")  # noqa: SIM115 (it is closed below, and with the process)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror}).", "Choose another --output.") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Who held it may have removed the file meanwhile, and another one be there.
            held = os.path.samestat(os.fstat(lock.fileno()), path.stat())
        except OSError:
            held = False
        if not held:
            raise UserError(f"{folder}: another process is at this run.", "Wait until it has ended.")
        try:
            yield
        finally:
            path.unlink(missing_ok=True)
            if not was_there:
                # A run that was refused leaves nothing.
                with suppress(OSError):
                    folder.rmdir()


def is_first() -> bool:
    """Whether this process is the first of those launched together, or was launched by itself."""
    return os.environ.get("RANK", "0") == "0"


def _is_free(folder: Path) -> bool:
    """Whether there is nothing in it, but for a record that is only half written: one of several processes may be
    at it, or have been killed at it."""
    return folder.is_dir() and all(path.name == f"{RECORD}.partial" for path in folder.iterdir())


def _shown(key: str) -> str:
    return key.replace("_", " ")
