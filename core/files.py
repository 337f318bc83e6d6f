"""A file with one JSON object, such as a config or the record of a run."""

import json
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from stepsight.core.errors import UserError


def read_json(path: Path) -> dict[str, Any]:
    """Its object. Raises `UserError` where there is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path.parent}: {path.name} is missing.", "Is this the right folder?") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f"{path}: cannot be read as JSON ({error}).") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: {type(value).__name__} found, expected an object.")
    return value


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write it whole or not at all. Raises `UserError` where it cannot be written."""
    partial = path.with_name(f"{path.name}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}).", "Choose another --output.") from None


def asset(*parts: str) -> Path:
    """The path of a shipped file or folder, such as `asset("evaluators", "mini-bidir")`."""
    return Path(str(files("stepsight.assets"))).joinpath(*parts)


# What begins a formula in a spreadsheet, in a cell of its own or once white space is stripped.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def inert(text: str) -> str:
    """The text as a cell that is shown and never calculated: with a `'` before what would be a formula."""
    return f"'{text}" if text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA) else text


def cell(value: object) -> object:
    """A value as a cell of a CSV file. None is an empty cell, a number is itself."""
    return inert(value) if isinstance(value, str) else value
