"""Conversion of weights from PyTorch's pickle files to safetensors, without running any code in the files.

`torch.load` with `weights_only` allows only what tensors need, and fails on anything else.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from stepsight.core.errors import UserError
from stepsight.core.hubs.checkpoint_files import UNPICKLE, read_shards

PICKLES = ("*.bin", "*.pt", "*.ckpt", "*.pth")
_PICKLE = "pytorch_model.bin"
_INDEX = "pytorch_model.bin.index.json"
# The bytes of tensors that a file may have beyond twice its size, which tied weights take.
_BESIDE = 1_000_000


def pickle_files(folder: Path) -> list[Path]:
    """Return the pickle files that hold a folder's weights: the files listed in the index, or the single weight
    file, or an empty list. Raises `UserError` if a file in the index is missing."""
    if not (folder / _INDEX).is_file():
        return [folder / _PICKLE] if (folder / _PICKLE).is_file() else []
    files = [folder / name for name in read_shards(folder / _INDEX)]
    missing = next((file for file in files if not file.is_file()), None)
    if missing is not None:
        raise UserError(f"{folder}: {missing.name} is missing, which {_INDEX} names.", "Copy it again.")
    return files


def read_pickle(path: Path) -> dict[str, Tensor]:
    """Read the tensors in a pickle file by name, memory-mapped if possible.

    Raises `UserError` if the file is damaged or holds anything but tensors. Code in the file is never run.
    """
    try:
        values = _load(path)
    except Exception as error:  # what a damaged file leads to can be of any kind
        raise _unreadable(path, error) from None
    if not isinstance(values, Mapping) or not values:
        raise UserError(f"{path}: {type(values).__name__} found, expected tensors by name.", UNPICKLE)
    for name, value in values.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise UserError(
                f"{path}: {type(value).__name__} found as {name!r:.60}, expected tensors by name.", UNPICKLE
            )
    # Tensors that repeat numbers, or share them with many others, are written out in full.
    size, there = sum(value.nbytes for value in values.values()), path.stat().st_size
    if size > 2 * there + _BESIDE:
        raise UserError(f"{path}: its tensors take {size:,} bytes, the file has {there:,}.", UNPICKLE)
    return dict(values)


def _load(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError as error:
        # Files of before 2020 are no archives, and cannot be mapped.
        if "mmap can only be used" not in str(error):
            raise
    return torch.load(path, map_location="cpu", weights_only=True)


def _unreadable(path: Path, error: Exception) -> UserError:
    message = " ".join(str(error).split())
    needed = re.search(r"GLOBAL ([\w.]+)|Trying to (?:call|instantiate) (\S+)", message)
    if needed:
        name = (needed[1] or needed[2]).rstrip(".")
        return UserError(
            f"{path}: the pickle file needs more than tensors ({name:.80}); it can run code, so it is not read.",
            UNPICKLE,
        )
    return UserError(f"{path}: not a whole file of weights ({message:.120}).", "Copy it again.")
