"""A checkpoint: the config, weights and tokenizer of an evaluator, wherever they are stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import Tensor

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import read_json
from stepsight.core.hubs.checkpoint_files import (
    CARD,
    CARD_VERSION,
    LARGEST_FILE,
    LARGEST_HEADER,
    read_config_file,
)
from stepsight.core.hubs.hub_cache import is_from_hub
from stepsight.core.models.weights import CheckpointWeights
from stepsight.core.prompts.tokenizer_files import TokenizerFiles
from stepsight.core.prompts.vocabulary import Vocabulary, open_vocabulary

ATTENTIONS = ("bidirectional", "causal")
"""The masks of a network, as a stepsight.json names them."""


@dataclass(frozen=True)
class Checkpoint:
    """An evaluator's parts.

    `folder` is the evaluator's own, in Hugging Face layout. `config` holds its config.json, or that of its base
    model, and `card` its stepsight.json (empty if there is none). `parts` has its weights and tokenizer if they are
    not simply in this folder. Every error is a `UserError` that names the folder.
    """

    folder: Path
    config: dict[str, Any]
    card: dict[str, Any]
    parts: "tuple[CheckpointWeights, TokenizerFiles] | None" = None

    @classmethod
    def open(cls, folder: Path) -> "Checkpoint":
        """Open the checkpoint in a folder that has all of its parts. Raises `UserError` if there is no config.json,
        or if config.json or stepsight.json cannot be read."""
        return cls(folder, read_config_file(folder), read_card(folder))

    @property
    def name(self) -> str:
        return model_name(self.folder)

    @property
    def architectures(self) -> list[str]:
        names = self.config.get("architectures")
        return [str(name) for name in names] if isinstance(names, list) else []

    @cached_property
    def weights(self) -> CheckpointWeights:
        return self.parts[0] if self.parts else CheckpointWeights.of(self.folder)

    @property
    def tokenizer(self) -> TokenizerFiles:
        return self.parts[1] if self.parts else TokenizerFiles(self.folder)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokenizer, for looking up tokens only, since encoders need one of their own. Loading it takes half a
        second."""
        return self.open_vocabulary()

    def open_vocabulary(self) -> Vocabulary:
        """Return the tokenizer, in a child if its files are from a hub, since those are untrusted."""
        return open_vocabulary(self.tokenizer, strange=is_from_hub(self.tokenizer.folder))

    @property
    def state(self) -> list[tuple[int, int, int]]:
        """The inodes, sizes and times of its files, which tell whether any has changed."""
        files = [path.stat() for path in (*self.tokenizer.read, *self.weights.all_paths) if path.exists()]
        return [(file.st_ino, file.st_size, file.st_mtime_ns) for file in files]

    def tensor(self, name: str, shape: Sequence[int]) -> Tensor:
        """Return the tensor called `name`. Raises `UserError` if it is missing or has a different shape."""
        self._check(name, shape)
        return self.weights.read(name)

    def rows(self, name: str, rows: Sequence[int], shape: Sequence[int]) -> Tensor:
        """Return only the given rows of a tensor. Raises `UserError` if the tensor is missing or has a different
        shape."""
        self._check(name, shape)
        return self.weights.rows(name, rows)

    def shape(self, name: str) -> tuple[int, ...] | None:
        """Return the shape of a tensor without reading it, or None if there is no such tensor."""
        return self.weights.shape(name) if name in self.weights else None

    def special_token(self, role: str) -> str | None:
        """Return the token that the tokenizer's files assign to a role such as `bos_token`, or None if they assign
        no token to it."""
        for file in ("tokenizer_config.json", "special_tokens_map.json"):
            path = self.tokenizer.folder / file
            if not path.is_file():
                continue
            token = read_json(path, LARGEST_HEADER).get(role)
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

    def _check(self, name: str, expected: Sequence[int]) -> None:
        shape = self.shape(name)
        if shape is None:
            raise UserError(f"{self.folder}: the tensor {name} is missing.", "Copy the checkpoint again.")
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
