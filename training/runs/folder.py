"""Folders of runs. A folder records the settings that determine the run's results and admits one process at a time.

FOLDER/run.json        the record, which identifies the run; some runs name it differently
FOLDER/running.lock    present while a process works in the folder

A result also records its provenance: the time, and the code and package versions that produced it.
"""

import importlib.metadata
import json
import platform
import subprocess
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import read_json, write_json
from stepsight.training.runs.processes import is_main_process

RECORD = "run.json"
_LOCK = "running.lock"
# The number of keys listed if two runs differ.
_NAMED = 4


class RunFolder:
    """The folder of a run. Its JSON file `record` holds the settings that determine the results. Settings whose
    keys are in `free` do not affect the results and may change when the run is resumed."""

    def __init__(self, path: Path, record: str = RECORD, free: Collection[str] = ()) -> None:
        self.path = path
        self._record = path / record
        self._free = free

    def has_run(self) -> bool:
        """True if a run has claimed the folder."""
        return self._record.is_file()

    def record(self) -> dict[str, Any]:
        """Return the recorded settings of the folder's run. Raises `UserError` if no run has claimed the folder."""
        return read_json(self._record)

    def check(self, values: Mapping[str, Any], free: Collection[str] = ()) -> None:
        """Raise `UserError` if the folder contains unrelated files, or a run whose settings differ from `values`.
        The error names the keys of the settings that differ. Keys in `free` are ignored."""
        if not self.has_run():
            if self.path.exists() and not self._is_free():
                raise UserError(
                    f"{self.path} holds something else.", "Choose another --output, or an empty folder."
                )
            return
        used, ours = self.record(), json.loads(json.dumps(values))
        compared = (used.keys() | ours.keys()) - {*self._free, *free}
        keys = sorted(key.replace("_", " ") for key in compared if used.get(key) != ours.get(key))
        if keys:
            named = ", ".join([*keys[:_NAMED], *(["…"] if len(keys) > _NAMED else [])])
            raise UserError(f"{self.path} holds another run ({named}).", "Choose another --output.")

    def begin(self, values: Mapping[str, Any]) -> None:
        """Claim the folder for the run with the settings `values`.

        Raises `UserError` in the same cases as `check`, and if the record cannot be written.
        """
        self.check(values)
        write_json(self._record, values)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Lock the folder. If several processes were launched together, the first takes the lock for all of them.
        Raises `UserError` if a different run holds the lock or if the folder cannot be written."""
        if not is_main_process():
            yield
            return
        is_new = not self.path.exists()
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _write_error(self.path, error) from None
        try:
            with locked(self.path / _LOCK, self.path):
                yield
        finally:
            if is_new:
                # A rejected run leaves nothing behind.
                with suppress(OSError):
                    self.path.rmdir()

    def _is_free(self) -> bool:
        """True if the folder contains nothing but a lock and a record. A process launched together with this one
        may be writing these files, or a killed process may have left them behind."""
        own, partials = {_LOCK, self._record.name}, f"{self._record.name}.*.partial"
        return self.path.is_dir() and all(p.name in own or p.match(partials) for p in self.path.iterdir())


@contextmanager
def locked(lock: Path, place: Path) -> Iterator[None]:
    """Hold the lock file `lock` within the `with` block, and delete it at the end. Raises `UserError`, naming the
    folder `place`, if a different process holds the lock or if the file cannot be written."""
    held = FileLock(lock, timeout=0)
    try:
        held.acquire()
    except Timeout:
        raise UserError(f"{place}: another process is working on this run.", "Wait until it has ended.") from None
    except OSError as error:
        raise _write_error(place, error) from None
    try:
        yield
    finally:
        # Another process that has already opened the file notices that it was deleted, and creates a new one.
        lock.unlink(missing_ok=True)
        held.release()


def _write_error(place: Path, error: OSError) -> UserError:
    return UserError(f"{place}: cannot be written ({error.strerror}).", "Choose another --output.")


_PACKAGES = ("stepsight", "torch", "transformers", "tokenizers", "accelerate")
_ROOT = Path(__file__).resolve().parents[2]


def code_revision() -> dict[str, Any]:
    """Return the git `commit` of this code, and `modified`, which is True if there are uncommitted changes. The
    result is empty if the code is not in a git checkout or git fails."""
    if not (_ROOT / ".git").exists():
        return {}
    commit, changes = _git("rev-parse", "HEAD"), _git("status", "--porcelain")
    return {"commit": commit, "modified": bool(changes)} if commit and changes is not None else {}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages on which a result may depend."""
    packages = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"python": platform.python_version()} | packages


def now() -> str:
    """Return the current date and time in UTC as ISO 8601, to the second."""
    return datetime.now(UTC).replace(microsecond=0).isoformat()


def without_places(value: Any) -> Any:
    """Replace every absolute path in a JSON value by its file name, since the location of files is private."""
    if isinstance(value, Mapping):
        return {key: without_places(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [without_places(item) for item in value]
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def _git(*arguments: str) -> str | None:
    """Run git in the checkout and return its output, or None if git fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(_ROOT), *arguments], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
