"""A checkpoint on disk: a folder in Hugging Face layout with config, tokenizer and safetensors, sharded or not."""

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import read_json
from stepsight.core.hubs.checkpoint_files import (
    CARD,
    CARD_VERSION,
    INDEX,
    LARGEST_FILE,
    LARGEST_HEADER,
    TOKENIZER,
    UNPICKLE,
    WEIGHTS,
    check_header,
    read_config_file,
    read_shards,
)
from stepsight.core.hubs.hub_cache import is_from_hub
from stepsight.core.prompts.vocabulary import Vocabulary, open_vocabulary

ATTENTIONS = ("bidirectional", "causal")
"""The masks of a network, as a stepsight.json names them."""

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")


@dataclass(frozen=True)
class Checkpoint:
    """The folder of an evaluator.

    `config` holds its config.json, and `card` its stepsight.json (empty if there is none). `source` is the original
    folder if `folder` was assembled from several. Every error is a `UserError` that names the folder.
    """

    folder: Path
    config: dict[str, Any]
    card: dict[str, Any]
    source: Path | None = None

    @classmethod
    def open(cls, folder: Path) -> "Checkpoint":
        """Open the checkpoint in a folder. Raises `UserError` if there is no config.json, or if config.json or
        stepsight.json cannot be read."""
        return cls(folder, read_config_file(folder), read_card(folder))

    @property
    def name(self) -> str:
        return model_name(self.source or self.folder)

    @property
    def architectures(self) -> list[str]:
        names = self.config.get("architectures")
        return [str(name) for name in names] if isinstance(names, list) else []

    @cached_property
    def files(self) -> dict[str, Path]:
        return tensor_files(self.folder)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer, for looking up tokens only, since encoders need one of their own. Loading it takes half a
        second."""
        return self.open_vocabulary()

    def open_vocabulary(self) -> Vocabulary:
        """Return the tokenizer, in a child if the checkpoint is from a hub, since its files are untrusted."""
        return open_vocabulary(self.folder, strange=is_from_hub(self.source or self.folder))

    @property
    def state(self) -> list[tuple[int, int, int]]:
        """The inodes, sizes and times of its files, which tell whether any has changed."""
        files = [self.folder / TOKENIZER, *sorted(set(self.files.values()))]
        found = [path.stat() for path in files if path.exists()]
        return [(one.st_ino, one.st_size, one.st_mtime_ns) for one in found]

    def tensor(self, name: str, shape: Sequence[int]) -> Tensor:
        """Return the tensor called `name`. Raises `UserError` if it is missing or has a different shape."""
        tensor = read_tensor(self.files, [name])
        if tensor is None:
            raise UserError(f"{self.folder}: the tensor {name} is missing.", "Copy the checkpoint again.")
        self._check(name, tuple(tensor.shape), shape)
        return tensor

    def rows(self, name: str, rows: Sequence[int], shape: Sequence[int]) -> Tensor:
        """Return only the given rows of a tensor. Raises `UserError` if the tensor is missing or has a different
        shape."""
        if name not in self.files:
            raise UserError(f"{self.folder}: the tensor {name} is missing.", "Copy the checkpoint again.")
        with safe_open(self.files[name], framework="pt") as file:
            tensor = file.get_slice(name)
            self._check(name, tuple(tensor.get_shape()), shape)
            return torch.cat([tensor[row : row + 1] for row in rows])

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of a tensor without reading it, or None if there is no such tensor."""
        if name not in self.files:
            return None
        with safe_open(self.files[name], framework="pt") as file:
            return tuple(file.get_slice(name).get_shape())

    def special_token(self, role: str) -> str | None:
        """Return the token that the tokenizer's files assign to a role such as `bos_token`, or None if they assign
        no token to it."""
        for file in ("tokenizer_config.json", "special_tokens_map.json"):
            if not (self.folder / file).is_file():
                continue
            token = read_json(self.folder / file, LARGEST_HEADER).get(role)
            token = token.get("content") if isinstance(token, dict) else token
            if isinstance(token, str):
                return token
        return None

    def size(self, key: str) -> int:
        """Return an integer from the config. Raises `UserError` if the key is missing or its value is not an
        integer."""
        size = self.config.get(key)
        if isinstance(size, bool) or not isinstance(size, int):
            raise UserError(f"{self.folder}/config.json: the key {key!r} is missing or not a whole number.")
        return size

    def _check(self, name: str, shape: tuple[int, ...], expected: Sequence[int]) -> None:
        if shape != tuple(expected):
            raise UserError(
                f"{self.folder}: {name} has shape {shape}, expected {tuple(expected)}.",
                "Check that config.json belongs to these weights.",
            )


def repository(folder: Path) -> str:
    """Return the `OWNER/NAME` of a model from its folder in a hub's cache, such as
    `models--OWNER--NAME/snapshots/HASH`. For a folder elsewhere, return the folder's name."""
    folder = folder.resolve()
    cache = folder.parent.parent.name
    if folder.parent.name != "snapshots" or "--" not in cache:
        return folder.name
    return "/".join(cache.removeprefix("models--").split("--"))


def model_name(folder: Path) -> str:
    """Return the result of `repository` without the owner."""
    return repository(folder).rpartition("/")[2]


def read_card(folder: Path) -> dict[str, Any]:
    """Return the content of a folder's stepsight.json, or an empty dict if the folder has none. Raises `UserError`
    if the file cannot be read or has an unsupported version."""
    card = read_json(folder / CARD, LARGEST_FILE) if (folder / CARD).is_file() else {}
    if (version := card.get("version", CARD_VERSION)) != CARD_VERSION:
        raise UserError(
            f"{folder / CARD}: version {version!r:.40} found, expected {CARD_VERSION}.", "Update StepSight."
        )
    return card


def tensor_files(folder: Path) -> dict[str, Path]:
    """Map the name of each tensor in a folder to the safetensors file that holds it. Raises `UserError` if the
    folder has no safetensors, a shard is missing, or a file is damaged."""
    files: dict[str, Path] = {}
    for path in _weight_files(folder):
        if not path.is_file():
            raise UserError(f"{folder}: {path.name} is missing.", "An evaluator needs its safetensors weights.")
        check_header(path)
        try:
            with safe_open(path, framework="pt") as file:
                files |= dict.fromkeys(file.keys(), path)
        except (SafetensorError, OSError) as error:
            raise UserError(f"{path}: not a whole safetensors file ({error}).", "Copy it again.") from None
    return files


def count_numbers(folder: Path) -> int:
    """Count the elements of all tensors in a folder without reading the tensors. Raises `UserError` if
    `tensor_files` does."""
    count = 0
    for path in set(tensor_files(folder).values()):
        with safe_open(path, framework="pt") as file:
            count += sum(math.prod(file.get_slice(name).get_shape()) for name in file.keys())  # noqa: SIM118
    return count


def hash_tensors(digest: Any, folder: Path) -> None:
    """Update a hash with the name, type, shape and bytes of every tensor in a folder. The hash does not depend on
    how the tensors are split into files."""
    files = tensor_files(folder)
    for name in sorted(files):
        tensor = read_tensor(files, [name])
        assert tensor is not None
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.contiguous().flatten().view(torch.uint8).numpy().data)


def weights_sha256(folder: Path) -> str:
    """Return the SHA-256 of all tensors in a folder."""
    digest = hashlib.sha256()
    hash_tensors(digest, folder)
    return digest.hexdigest()


def _weight_files(folder: Path) -> list[Path]:
    if (folder / INDEX).is_file():
        return [folder / name for name in read_shards(folder / INDEX)]
    pickles = sorted(path.name for pattern in _PICKLES for path in folder.glob(pattern))
    if pickles and not (folder / WEIGHTS).is_file():
        raise UserError(
            f"{folder}: no safetensors, only pickle files ({pickles[0]}), which can run code when they are read.",
            UNPICKLE,
        )
    return [folder / WEIGHTS]


def read_tensor(files: dict[str, Path], names: Iterable[str]) -> Tensor | None:
    """Read the first tensor in `names` that exists, or return None if none exists. `files` maps tensor names to
    files."""
    for name in names:
        if name in files:
            with safe_open(files[name], framework="pt") as file:
                tensor: Tensor = file.get_tensor(name)
                return tensor
    return None
