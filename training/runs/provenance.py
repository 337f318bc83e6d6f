"""The provenance of a result: the code, the packages and the time that produced it."""

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
    """Return the `commit` of the checkout that contains this module and whether its files were `modified`.

    The dictionary is empty if there is no checkout.
    """
    if not (_ROOT / ".git").exists():
        return {}
    commit, changes = _git("rev-parse", "HEAD"), _git("status", "--porcelain")
    return {"commit": commit, "modified": bool(changes)} if commit and changes is not None else {}


def versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that a result may depend on."""
    packages = {name: importlib.metadata.version(name) for name in _PACKAGES}
    return {"python": platform.python_version()} | packages


def now() -> str:
    """Return the current date and time in UTC, to the second."""
    return datetime.now(UTC).replace(microsecond=0).isoformat()


def without_places(value: Any) -> Any:
    """Replace each absolute path in JSON values with its last part, since the location of files is private."""
    if isinstance(value, Mapping):
        return {key: without_places(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [without_places(item) for item in value]
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value


def _git(*arguments: str) -> str | None:
    """Return the output of git in the checkout, or None if git fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(_ROOT), *arguments], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
