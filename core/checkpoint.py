"""Reading a folder in Hugging Face layout: its config and its safetensors, sharded or not."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from torch import Tensor

from core.errors import UserError

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file of an evaluator's folder. Raises `UserError` where there is none."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path.parent}: {path.name} is missing.", "Is this an evaluator's folder?") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read as JSON ({error}).") from None
    if not isinstance(value, dict):
        raise UserError(f"{path}: {type(value).__name__} found, expected an object.")
    return value


def tensor_files(folder: Path) -> dict[str, Path]:
    """Each tensor's name with the safetensors file that holds it.

    Raises `UserError` where the folder has no safetensors, a shard is missing, or a file is damaged.
    """
    if (folder / INDEX).is_file():
        shards = {str(name) for name in read_json(folder / INDEX).get("weight_map", {}).values()}
        paths = [folder / name for name in sorted(shards)]
    else:
        paths = [folder / WEIGHTS]
    found: dict[str, Path] = {}
    for path in paths:
        if not path.is_file():
            raise UserError(f"{folder}: {path.name} is missing.", "An evaluator needs its safetensors weights.")
        try:
            with safe_open(path, framework="pt") as file:
                found |= dict.fromkeys(file.keys(), path)
        except (SafetensorError, OSError) as error:
            raise UserError(f"{path}: not a whole safetensors file ({error}).", "Copy it again.") from None
    return found


def read_tensor(files: dict[str, Path], names: Iterable[str]) -> Tensor | None:
    """The first tensor of `names` that the folder has, or None."""
    for name in names:
        if name in files:
            with safe_open(files[name], framework="pt") as file:
                tensor: Tensor = file.get_tensor(name)
                return tensor
    return None
