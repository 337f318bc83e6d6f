"""Where the files shipped with StepSight lie, installed or in a checkout."""

from importlib.resources import files
from pathlib import Path


def asset(*parts: str) -> Path:
    """The path of a shipped file or folder, such as `asset("evaluators", "mini-bidir")`."""
    return Path(str(files("assets"))).joinpath(*parts)
