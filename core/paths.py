"""The paths of shipped assets, benchmark files and the cache folder, and the formatting of byte counts."""

import os
import sys
from glob import glob
from importlib.resources import files
from math import ceil
from pathlib import Path

from stepsight.core.errors import UserError

DATA_VARIABLE = "STEPSIGHT_DATA"
"""The environment variable with the folder of benchmark files, which are not shipped."""

CACHE_VARIABLE = "STEPSIGHT_CACHE"
"""The environment variable with the cache folder, whose content can be fetched or made again."""


def data_files(pattern: str, root: Path = Path()) -> list[tuple[str, Path]]:
    """Return the files that match a path or a glob, as pairs of `portable_name` and path.

    The files are looked up in `root`, and in the folder that the environment variable `DATA_VARIABLE` names if
    `root` has none. Raises `UserError` if no file matches in either folder.
    """
    data = os.environ.get(DATA_VARIABLE)
    folders = [root, Path(data)] if data else [root]
    for folder in folders:
        names = (
            [pattern]
            if os.path.isfile(folder / pattern)
            else sorted(glob(pattern, root_dir=folder, recursive=True))
        )
        matches = [(portable_name(name), folder / name) for name in names if os.path.isfile(folder / name)]
        if matches:
            return matches
    hint = "Check the path." if data else f"Check the path, or set {DATA_VARIABLE} to the data folder."
    raise UserError(f"there is no file {pattern} in {' or '.join(map(str, folders))}.", hint)


def portable_name(path: str) -> str:
    """Return a path without anything specific to this machine.

    An absolute path is reduced to its last component. A relative path is kept, with forward slashes.
    """
    return Path(path).name if os.path.isabs(path) else Path(path).as_posix()


def asset(*parts: str) -> Path:
    """Return the path of a shipped file or folder, such as `asset("evaluators", "mini-bidir")`."""
    return Path(str(files("stepsight.assets"))).joinpath(*parts)


def home_folder(variable: str) -> Path:
    """Return the user's home folder. Raises `UserError` if there is none, as for a user id without an entry in a
    container; `variable` is the environment variable that names another place."""
    try:
        return Path.home()
    except RuntimeError:
        raise UserError(
            "this user has no home folder, and HOME is not set.", f"Set {variable} to another folder."
        ) from None


def cache_folder() -> Path:
    """Return the folder named by `STEPSIGHT_CACHE`, or else the platform's cache folder. It may not exist yet.
    Raises `UserError` if there is no home folder for it."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    home = home_folder(CACHE_VARIABLE)
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "stepsight"
    base = os.environ.get("LOCALAPPDATA" if sys.platform == "win32" else "XDG_CACHE_HOME", "")
    # The XDG specification says that a relative XDG_CACHE_HOME must be ignored.
    return (Path(base) if os.path.isabs(base) else home / ".cache") / "stepsight"


def format_bytes(size: int) -> str:
    """Format a size in bytes, for example as `7 kB`, `1.5 MB` or `15.2 GB`."""
    if size >= 1e9:
        return f"{size / 1e9:,.1f} GB"
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{ceil(size / 1000):,} kB"
