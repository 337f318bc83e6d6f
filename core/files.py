"""Files: JSON objects, shipped assets, benchmark files in the folder of data, and CSV that a spreadsheet shows and
never calculates."""

import csv
import io
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from glob import glob
from importlib.resources import files
from pathlib import Path
from typing import Any

from stepsight.core.atomic import write_text
from stepsight.core.errors import UserError
from stepsight.core.json_values import check_unicode, parse_json, read_bytes

DATA_VARIABLE = "STEPSIGHT_DATA"
"""The environment variable with the folder of data: benchmark files that are not shipped."""

CACHE_VARIABLE = "STEPSIGHT_CACHE"
"""The environment variable with the folder of what was fetched or made once and can be made again."""

# What begins a formula in a spreadsheet, at once or after white space.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def data_files(pattern: str, root: Path = Path()) -> list[tuple[str, Path]]:
    """The files that a path or a glob means, in order of name, in the first folder that has any: `root`, else the
    folder of data. Each comes with its `portable_name`. Raises `UserError` where there is none."""
    data = os.environ.get(DATA_VARIABLE)
    folders = [root, Path(data)] if data else [root]
    for folder in folders:
        names = [pattern] if _is_file(folder / pattern) else sorted(glob(pattern, root_dir=folder, recursive=True))
        matches = [(portable_name(name), folder / name) for name in names if _is_file(folder / name)]
        if matches:
            return matches
    hint = "Check the path." if data else f"Check the path, or name the folder of data with {DATA_VARIABLE}."
    raise UserError(f"there is no file {pattern} in {' or '.join(map(str, folders))}.", hint)


def portable_name(path: str) -> str:
    """A path without the part that is the machine's own."""
    return Path(path).name if os.path.isabs(path) else Path(path).as_posix()


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file. Raises `UserError` where there is none."""
    try:
        content = read_bytes(path)
        value = parse_json(content)
        check_unicode(value, content)
    except FileNotFoundError:
        raise UserError(f"{path.parent}: {path.name} is missing.", "Is this the right folder?") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read as JSON ({error}).") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: {type(value).__name__} found, expected an object.")
    return value


def write_json(path: Path, values: Mapping[str, Any]) -> None:
    """Write a JSON object, atomically. Raises `UserError` where it cannot be written."""
    write_text(path, json.dumps(values, indent=1) + "\n")


def asset(*parts: str) -> Path:
    """The path of a shipped file or folder, such as `asset("evaluators", "mini-bidir")`."""
    return Path(str(files("stepsight.assets"))).joinpath(*parts)


def cache_folder() -> Path:
    """`STEPSIGHT_CACHE`, else the folder that the platform keeps caches in; it need not exist."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "stepsight"
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    # A relative XDG_CACHE_HOME is to be ignored, says the XDG specification.
    return (Path(base) if os.path.isabs(base) else home / ".cache") / "stepsight"


def inert(text: str) -> str:
    """The text as a cell that is shown and never calculated: with a `'` before what would be a formula."""
    return f"'{text}" if text.startswith(_FORMULA) or text.lstrip().startswith(_FORMULA) else text


def cell(value: object) -> object:
    """A value as a cell of a CSV file. None is an empty cell, a number is itself."""
    return inert(value) if isinstance(value, str) else value


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """The rows as CSV. None is an empty cell, a number is itself, and a text that would be a formula gets a `'`."""
    lines = io.StringIO()
    csv.writer(lines, lineterminator="\r\n").writerows([cell(value) for value in row] for row in rows)
    return lines.getvalue()


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        # Its name is longer than any file's.
        return False
