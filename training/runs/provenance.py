"""The provenance of a result: the time, and the code and package versions that produced the result."""

import importlib.metadata
import platform
import subprocess
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

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
