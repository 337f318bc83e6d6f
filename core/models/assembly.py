"""Writing the folder of a checkpoint that is assembled from parts: links, converted weights, config and tokenizer.

`core.models.checkpoint_resolver` finds the parts, and says which checkpoints need this.
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import safe_open
from tokenizers import AddedToken

from stepsight.core.errors import UserError
from stepsight.core.hubs.checkpoint_files import CONFIG, INDEX, TOKENIZER, read_config_file
from stepsight.core.models.adapter import Adapter, keep_unmerged, unmerged_folders
from stepsight.core.models.checkpoint import tensor_files
from stepsight.core.models.pickles import ShardWriter, read_pickle
from stepsight.core.paths import CACHE_VARIABLE
from stepsight.core.prompts.tokenizer_files import load_tokenizer, needs_conversion

STAMP = "assembled.json"
"""The file of an assembled folder that describes its parts."""


@dataclass(frozen=True)
class Ingredients:
    """The parts of a folder's checkpoint: the path of its config.json (its own or the base model's), its
    tokenizer's files, its weights in safetensors or pickle files, the tokens that stepsight.json adds, and an
    adapter with the folder of its base model."""

    folder: Path
    config: Path
    tokenizer: Sequence[Path]
    safetensors: Sequence[Path]
    pickles: Sequence[Path]
    added_tokens: Sequence[str]
    adapter: Adapter | None
    base: Path | None
    has_own_config: bool


def assemble(parts: Ingredients, target: Path, stamp: Mapping[str, Any]) -> None:
    """Write an assembled folder with its `stamp` under a temporary name, then rename it to `target`. Raises
    `UserError` if a part does not fit, and `OSError` if the folder cannot be written."""
    partial = target.with_name(f"{target.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir()
        merged = parts.adapter.size if parts.adapter else 0
        _check_room(partial, merged + sum(path.stat().st_size for path in parts.pickles))
        for path in parts.tokenizer:
            _link(path, partial / path.name)
        _write_weights(parts, partial)
        _write_config(parts, partial)
        _write_tokenizer(parts, partial)
        _write(partial / STAMP, stamp)
        shutil.rmtree(target, ignore_errors=True)
        os.replace(partial, target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write_weights(parts: Ingredients, folder: Path) -> None:
    files: dict[str, str] = {}
    for number, path in enumerate(parts.safetensors, start=1):
        name = f"base-{number:05d}.safetensors"
        _link(path, folder / name)
        with safe_open(path, framework="pt") as file:
            files |= dict.fromkeys(file.keys(), name)
    if parts.adapter is not None:
        assert parts.base is not None
        # If a tensor is in two files, the later one by name counts, for Transformers as for us.
        writer = ShardWriter(folder, "merged")
        base = tensor_files(parts.base)
        parts.adapter.check(base)
        writer.write(parts.adapter.written(base))
        files |= writer.files
        keep_unmerged(folder, [*unmerged_folders(parts.base), parts.adapter.folder], _link)
    for number, path in enumerate(parts.pickles, start=1):
        writer = ShardWriter(folder, f"model-{number:05d}")
        writer.write(read_pickle(path).items())
        files |= writer.files
    _write(folder / INDEX, {"metadata": {}, "weight_map": files})


def _write_config(parts: Ingredients, folder: Path) -> None:
    """Write the config.json of the folder or its base model, with the changes that an adapter or resized embeddings
    require."""
    config = read_config_file(parts.config.parent)
    rows = parts.adapter.rows if parts.adapter else {}
    if parts.adapter and str(parts.adapter.config.get("task_type")) == "TOKEN_CLS":
        names = config.get("architectures") or ["ForCausalLM"]
        config["architectures"] = [str(name).replace("ForCausalLM", "ForTokenClassification") for name in names]
        heads = [count for name, count in rows.items() if name in ("score.weight", "classifier.weight")]
        config |= {"num_labels": heads[0]} if heads else {}
    if not parts.has_own_config:
        vocabulary = _vocabulary(folder)
        config |= {"vocab_size": vocabulary} if vocabulary and "vocab_size" in config else {}
    _write(folder / CONFIG, config)


def _vocabulary(folder: Path) -> int | None:
    """Return the number of rows of the token embedding in a folder, or None if no tensor has the usual name."""
    files = tensor_files(folder)
    name = next((name for name in files if name.endswith("embed_tokens.weight")), None)
    if name is None:
        return None
    with safe_open(files[name], framework="pt") as file:
        return int(file.get_slice(name).get_shape()[0])


def _write_tokenizer(parts: Ingredients, folder: Path) -> None:
    """Write tokenizer.json if it is converted from tokenizer.model, or if stepsight.json adds tokens to it."""
    if not parts.added_tokens and not needs_conversion(folder):
        return
    tokenizer = load_tokenizer(folder)
    tokenizer.add_special_tokens(
        [AddedToken(token, special=True, normalized=False) for token in parts.added_tokens]
    )
    vocabulary = _vocabulary(folder)
    for token in parts.added_tokens:
        number = tokenizer.token_to_id(token)
        if vocabulary is not None and (number is None or number >= vocabulary):
            raise UserError(
                f"{parts.folder}: the token {token!r} gets the id {number}, the weights know {vocabulary} tokens.",
                "Name the base that it was trained on in stepsight.json.",
            )
    (folder / TOKENIZER).unlink(missing_ok=True)
    tokenizer.save(str(folder / TOKENIZER))


def _check_room(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise UserError(
            f"{folder.parent}: {free / 1e9:.1f} GB are free, the weights need {needed / 1e9:.1f} GB.",
            f"Make room, or name another folder with {CACHE_VARIABLE}.",
        )


def _link(path: Path, name: Path) -> None:
    """Create a link to a file, or copy the file if the system does not support links."""
    try:
        name.symlink_to(path.resolve())
    except OSError:
        shutil.copyfile(path, name)


def _write(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=1), encoding="utf-8")
