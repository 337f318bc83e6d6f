"""The weights of a checkpoint by name: in safetensors, in pickle files, and as changed by an adapter.

Files are mapped, so that a tensor takes memory only when it is read. A matrix that an adapter changes is computed
when it is read, and no changed copy is kept. Pickle files are read without running any code in them: `torch.load`
with `weights_only` allows only what tensors need, and fails on anything else.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from stepsight.core.errors import UserError
from stepsight.core.hubs.checkpoint_files import INDEX, UNPICKLE, WEIGHTS, check_header, read_shards
from stepsight.core.models.placement import DTYPE_NAMES

PICKLES = ("*.bin", "*.pt", "*.ckpt", "*.pth")
EMBEDDING = "embed_tokens.weight"
_PICKLE = "pytorch_model.bin"
_INDEX = "pytorch_model.bin.index.json"
# How many bytes of tensors a file may describe beyond twice its size, which allows for tied weights.
_OVERHEAD = 1_000_000


def pickle_files(folder: Path) -> list[Path]:
    """Return the pickle files that hold a folder's weights: the files listed in the index, or the single weight
    file, or an empty list. Raises `UserError` if a file in the index is missing."""
    if not (folder / _INDEX).is_file():
        return [folder / _PICKLE] if (folder / _PICKLE).is_file() else []
    files = [folder / name for name in read_shards(folder / _INDEX)]
    missing = next((file for file in files if not file.is_file()), None)
    if missing is not None:
        raise UserError(f"{folder}: {missing.name} is missing, although {_INDEX} names it.", "Copy it again.")
    return files


def read_pickle(path: Path) -> dict[str, Tensor]:
    """Read the tensors in a pickle file by name, memory-mapped if possible.

    Raises `UserError` if the file is damaged or holds anything but tensors. Code in the file is never run.
    """
    try:
        values = _load(path)
    except Exception as error:  # a damaged file can cause any kind of exception
        raise _pickle_error(path, error) from None
    if not isinstance(values, Mapping) or not values:
        raise UserError(f"{path}: {type(values).__name__} found, expected tensors by name.", UNPICKLE)
    for name, value in values.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise UserError(
                f"{path}: {type(value).__name__} found as {name!r:.60}, expected tensors by name.", UNPICKLE
            )
    # When written anew, tensors that repeat numbers or share them with many others take their full size.
    size, stored = sum(value.nbytes for value in values.values()), path.stat().st_size
    if size > 2 * stored + _OVERHEAD:
        raise UserError(f"{path}: its tensors take {size:,} bytes, but the file has {stored:,}.", UNPICKLE)
    return dict(values)


def _load(path: Path) -> Any:
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except RuntimeError as error:
        # Files written before PyTorch 1.6 (2020) are not archives, and cannot be mapped.
        if "mmap can only be used" not in str(error):
            raise
    return torch.load(path, map_location="cpu", weights_only=True)


def _pickle_error(path: Path, error: Exception) -> UserError:
    message = " ".join(str(error).split())
    needed = re.search(r"GLOBAL ([\w.]+)|Trying to (?:call|instantiate) (\S+)", message)
    if needed:
        name = (needed[1] or needed[2]).rstrip(".")
        return UserError(
            f"{path}: the pickle file needs more than tensors ({name:.80}); it can run code, so it is not read.",
            UNPICKLE,
        )
    return UserError(f"{path}: not a complete weights file ({message:.120}).", "Copy it again.")


@dataclass(frozen=True, eq=False)
class LowRank:
    """The change that a LoRA adapter makes to a matrix: `scale · B A`, or its transpose if `is_turned` is True.
    `first` is A, with shape (r, inputs), and `second` is B, with shape (outputs, r)."""

    first: Tensor
    second: Tensor
    scale: float
    is_turned: bool = False

    def added_to(self, weight: Tensor) -> Tensor:
        """Return the changed matrix. It is computed in float32, whatever the type of the weight."""
        change = (self.second.float() @ self.first.float()) * self.scale
        return weight.float() + (change.T if self.is_turned else change)

    def update(self, digest: Any) -> None:
        """Update a hash with the matrices and their scale."""
        digest.update(f"{self.scale} {tuple(self.first.shape)} {tuple(self.second.shape)}".encode())
        for matrix in (self.first, self.second):
            digest.update(matrix.float().contiguous().numpy().data)


@dataclass(frozen=True, eq=False)
class CheckpointWeights:
    """The tensors of a checkpoint by their stored names.

    `files` maps names to safetensors files, and `tensors` holds what is stored otherwise. `base` has the weights of
    the model that an adapter was trained on, which `tensors` replace and complete, and `changes` modify. `paths`
    lists all files other than `files`.
    """

    files: Mapping[str, Path] = field(default_factory=dict)
    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    changes: Mapping[str, LowRank] = field(default_factory=dict)
    base: "CheckpointWeights | None" = None
    paths: Sequence[Path] = ()
    _opened: dict[Path, Any] = field(default_factory=dict, init=False)
    _lock: Any = field(default_factory=Lock, init=False)

    @classmethod
    def of(cls, folder: Path) -> "CheckpointWeights":
        """Return the weights in a folder: its safetensors, or else its pickle files. Raises `UserError` if there
        are none, or if a file is missing or damaged."""
        pickles = [] if has_safetensors(folder) else pickle_files(folder)
        if not pickles:
            return cls(tensor_files(folder))
        tensors = {name: tensor for path in pickles for name, tensor in read_pickle(path).items()}
        return cls(tensors=tensors, paths=pickles)

    def __contains__(self, name: object) -> bool:
        return name in self.files or name in self.tensors or (self.base is not None and name in self.base)

    def __iter__(self) -> Iterator[str]:
        return iter({**(dict.fromkeys(self.base) if self.base else {}), **self.files, **self.tensors})

    @property
    def all_paths(self) -> list[Path]:
        """Every file with weights, including those of the base."""
        return [*sorted(set(self.files.values())), *self.paths, *(self.base.all_paths if self.base else ())]

    @property
    def embedding(self) -> str | None:
        """The name of the tensor that embeds tokens, or None if no tensor has its usual name."""
        return next((name for name in self if name.endswith(EMBEDDING)), None)

    @property
    def backbone_prefix(self) -> str:
        """What comes before the names of a decoder's tensors, such as `model.`, or nothing."""
        return (self.embedding or "").removesuffix(EMBEDDING)

    @property
    def vocabulary_size(self) -> int | None:
        """The number of tokens that have an embedding, or None if no tensor has its usual name."""
        return self.shape(self.embedding)[0] if self.embedding else None

    @property
    def size(self) -> int:
        """The number of elements of all tensors."""
        return self.counts().total()

    def read(self, name: str) -> Tensor:
        """Return a tensor. Raises `KeyError` if there is none of this name."""
        tensor: Tensor
        if name in self.tensors:
            tensor = self.tensors[name].contiguous()
        elif name in self.files:
            tensor = self._open(name).get_tensor(name)
        elif self.base is not None:
            tensor = self.base.read(name)
        else:
            raise KeyError(name)
        return self.changes[name].added_to(tensor) if name in self.changes else tensor

    def rows(self, name: str, rows: Sequence[int]) -> Tensor:
        """Return only the given rows of a tensor."""
        if name in self.files:
            part = self._open(name).get_slice(name)
            return torch.cat([part[row : row + 1] for row in rows])
        if self.base is not None and name not in self.tensors and name not in self.changes:
            return self.base.rows(name, rows)
        return self.read(name)[list(rows)]

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a tensor without reading it."""
        return self._type_and_shape(name)[1]

    def counts(self) -> Counter[str]:
        """Return the number of elements that are stored in each data type."""
        counts: Counter[str] = Counter()
        for name in self:
            dtype, shape = self._type_and_shape(name)
            counts[dtype] += math.prod(shape)
        return counts

    def update(self, digest: Any) -> None:
        """Update a hash with the name, type, shape and bytes of every tensor. The hash does not depend on how the
        tensors are split into files. An adapter adds what it changes to the hash of its base."""
        if self.base is not None:
            digest.update(self.base.sha256.encode())
        for name in sorted({**self.files, **self.tensors}):
            tensor = self.tensors[name] if name in self.tensors else self._open(name).get_tensor(name)
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            digest.update(tensor.contiguous().flatten().view(torch.uint8).numpy().data)
        for name in sorted(self.changes):
            digest.update(name.encode())
            self.changes[name].update(digest)

    @cached_property
    def sha256(self) -> str:
        """The SHA-256 of all tensors."""
        digest = hashlib.sha256()
        self.update(digest)
        return digest.hexdigest()

    def _type_and_shape(self, name: str) -> tuple[str, tuple[int, ...]]:
        """Return the data type and the shape of a tensor."""
        if name in self.tensors:
            tensor = self.tensors[name]
            return str(tensor.dtype).removeprefix("torch."), tuple(tensor.shape)
        if name in self.files:
            part = self._open(name).get_slice(name)
            stored = str(part.get_dtype())
            return DTYPE_NAMES.get(stored, stored), tuple(part.get_shape())
        if self.base is None:
            raise KeyError(name)
        return self.base._type_and_shape(name)

    def _open(self, name: str) -> Any:
        """Return the open file that holds a tensor. Each file is mapped once, since a mapping counts in full
        against limits on a process."""
        path = self.files[name]
        with self._lock:
            if path not in self._opened:
                self._opened[path] = safe_open(path, framework="pt")
            return self._opened[path]


def has_safetensors(folder: Path) -> bool:
    """True if a folder has safetensors with weights; those of an adapter do not count."""
    return any((folder / name).is_file() for name in (WEIGHTS, INDEX))


def tensor_files(folder: Path) -> dict[str, Path]:
    """Map the name of each tensor in a folder to the safetensors file that holds it. Raises `UserError` if the
    folder has no safetensors, a shard is missing, or a file is damaged."""
    files: dict[str, Path] = {}
    for path in _weight_files(folder):
        if not path.is_file():
            raise UserError(f"{folder}: {path.name} is missing.", "An evaluator needs its safetensors weights.")
        files |= names_in(path)
    return files


def names_in(path: Path) -> dict[str, Path]:
    """Map the name of each tensor in a safetensors file to the file. Raises `UserError` if the file is damaged."""
    check_header(path)
    try:
        with safe_open(path, framework="pt") as file:
            return dict.fromkeys(file.keys(), path)
    except (SafetensorError, OSError) as error:
        raise UserError(f"{path}: not a complete safetensors file ({error}).", "Copy it again.") from None


def _weight_files(folder: Path) -> list[Path]:
    if (folder / INDEX).is_file():
        return [folder / name for name in read_shards(folder / INDEX)]
    pickles = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
    if pickles and not (folder / WEIGHTS).is_file():
        raise UserError(
            f"{folder}: no safetensors, only pickle files ({pickles[0]}), which can run code when they are read.",
            UNPICKLE,
        )
    return [folder / WEIGHTS]
