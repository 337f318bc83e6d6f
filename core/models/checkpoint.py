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
from tokenizers import Tokenizer
from torch import Tensor

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import read_json
from stepsight.core.hubs.layout import (
    CARD,
    CARD_VERSION,
    INDEX,
    SENTENCEPIECE,
    SLOW_TOKENIZERS,
    TOKENIZER,
    UNPICKLE,
    WEIGHTS,
)
from stepsight.core.models.config_files import read_config_file, read_shards
from stepsight.core.prompts.tokenizer_files import add_declared, check_spaces, sentencepiece_tokenizer

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
    def tokenizer(self) -> Tokenizer:
        """The tokenizer, for looking up tokens only, since encoders load and modify a copy of their own. Loading it
        takes half a second."""
        return load_tokenizer(self.folder)

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
            token = read_json(self.folder / file).get(role)
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
    card = read_json(folder / CARD) if (folder / CARD).is_file() else {}
    if (version := card.get("version", CARD_VERSION)) != CARD_VERSION:
        raise UserError(
            f"{folder / CARD}: version {version!r:.40} found, expected {CARD_VERSION}.", "Update StepSight."
        )
    return card


def load_tokenizer(folder: Path) -> Tokenizer:
    """Load the tokenizer of a folder from its tokenizer.json, or else convert its tokenizer.model.

    Tokens that only other files name are added (`tokenizer_files.add_declared`). Raises `UserError` if both files
    are missing, if the file is damaged or of an unsupported kind, or if tokenizer.json and tokenizer.model treat
    spaces differently.
    """
    path = folder / TOKENIZER
    if not path.is_file():
        tokenizer = _converted(folder)
    else:
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain Exception on a damaged file
            raise UserError(f"{TOKENIZER} is not a tokenizer ({' '.join(str(error).split())}).") from None
        check_spaces(tokenizer, folder)
    return add_declared(tokenizer, folder)


def needs_conversion(folder: Path) -> bool:
    """True if a folder has a tokenizer.model but no tokenizer.json, so that the latter must be created by
    conversion."""
    return (folder / SENTENCEPIECE).is_file() and not (folder / TOKENIZER).is_file()


def _converted(folder: Path) -> Tokenizer:
    if (folder / SENTENCEPIECE).is_file():
        return sentencepiece_tokenizer(folder)
    slow = next((name for name in SLOW_TOKENIZERS if (folder / name).is_file()), None)
    if slow:
        raise UserError(
            f"{TOKENIZER} is missing, there is only {slow}.",
            "Transformers makes it, once: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER).",
        )
    raise UserError(
        f"{TOKENIZER} is missing.",
        f'Copy it there, or name the folder or OWNER/NAME that has it in {CARD}: {{"tokenizer": "a/b"}}.',
    )


def first_token(tokenizer: Tokenizer) -> str | None:
    """Return the token that a tokenizer adds at the start of every text, or None if it adds none."""
    bare, whole = (tokenizer.encode("a", add_special_tokens=special).ids for special in (False, True))
    if len(whole) == len(bare) or whole[: len(bare)] == bare:
        return None
    return tokenizer.id_to_token(whole[0])


def tensor_files(folder: Path) -> dict[str, Path]:
    """Map the name of each tensor in a folder to the safetensors file that holds it. Raises `UserError` if the
    folder has no safetensors, a shard is missing, or a file is damaged."""
    files: dict[str, Path] = {}
    for path in _weight_files(folder):
        if not path.is_file():
            raise UserError(f"{folder}: {path.name} is missing.", "An evaluator needs its safetensors weights.")
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
