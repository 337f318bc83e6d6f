"""The type that an evaluator's weights are computed in where none is asked for: that in which they are stored, if
the processor computes it well.

Commands, pages, jobs and estimates of memory ask here, so that they agree. Needs no PyTorch until a processor has
to be asked.
"""

import struct
from collections import Counter
from dataclasses import replace
from functools import cache, lru_cache
from math import prod
from pathlib import Path

from stepsight.core.errors import UserError
from stepsight.core.files.json_values import parse_json
from stepsight.core.hubs.layout import ADAPTER_WEIGHTS, CARD, INDEX
from stepsight.core.models.config_files import read_config_file, read_shards
from stepsight.core.models.placement import DTYPES, STORED, Placement

# The longest header that the format allows, in bytes.
_HEADER = 100_000_000
_NAMES = {"F64": "float64", "F32": "float32", "BF16": "bfloat16", "F16": "float16"}
# What else a processor has to say beside oneDNN, which computes in bfloat16 by way of float32 as well.
_NATIVE = {
    "bfloat16": ("avx512_bf16", "amx_bf16", "avx10_2", "bf16"),
    "float16": ("avx512_fp16", "amx_fp16", "avx10_2", "fp16"),
}


def resolved(place: Placement, folder: Path) -> Placement:
    """The placement of the evaluator of a folder, with the type that its weights are computed in there.

    It is the type that was asked for; else the one that its stepsight.json names; else `computed_dtype`. Raises
    `UserError` where a part of the evaluator is not there.
    """
    return replace(place, dtype=_own(folder, place)) if place.dtype == STORED else place


def computed_dtype(stored: str, place: Placement) -> str:
    """The type that weights `stored` in one are computed in, where none is asked for: that one if it is one of
    `DTYPES` and the device computes it well, else float32."""
    if stored not in DTYPES or stored == "float32":
        return "float32"
    return stored if not place.on_processor or is_native(stored) else "float32"


def stored_dtype(folder: Path, untold: str = "float32") -> str:
    """The type in which a folder's weights are stored: that of its config if a tensor has it, else the one that
    most numbers have; of pickles what the config says. `untold` where nothing tells."""
    try:
        config = read_config_file(folder)
    except UserError:
        config = {}
    named = str(config.get("dtype") or config.get("torch_dtype") or untold)
    counts: Counter[str] = Counter()
    for path in _weight_files(folder):
        about = path.stat()
        counts.update(dict(_counts(path, about.st_size, about.st_mtime_ns)))
    return named if named in counts or not counts else counts.most_common(1)[0][0]


def expected_dtype(stored: str, place: Placement) -> str:
    """The type that weights which are not here yet would be computed in: `stored` in that one, or in bfloat16, as
    most are, where that is ""."""
    return computed_dtype(stored or "bfloat16", place) if place.dtype == STORED else place.dtype


@cache
def is_native(dtype: str) -> bool:
    """Whether this processor multiplies in that type by instructions of its own, as PyTorch and oneDNN tell."""
    import torch

    if dtype == "float32":
        return True
    able = {"bfloat16": "_is_mkldnn_bf16_supported", "float16": "_is_mkldnn_fp16_supported"}
    try:
        is_computed = bool(getattr(torch.ops.mkldnn, able[dtype])())
        known = torch.cpu.get_capabilities()
    except (AttributeError, RuntimeError):
        return False
    return is_computed and any(bool(known.get(name)) for name in _NATIVE[dtype])


def _own(folder: Path, place: Placement) -> str:
    # It brings PyTorch, and puts together what is not whole: as loading would.
    from stepsight.core.models.assembly import open_checkpoint

    checkpoint = open_checkpoint(folder)
    named = checkpoint.card.get("dtype")
    if named is None:
        return computed_dtype(stored_dtype(checkpoint.folder), place)
    if named not in DTYPES:
        raise UserError(f"{folder}/{CARD}: dtype is {named!r:.40}.", f"Give one of: {', '.join(DTYPES)}.")
    return str(named)


def _weight_files(folder: Path) -> list[Path]:
    names = {path.name for path in folder.glob("*.safetensors")} - {ADAPTER_WEIGHTS}
    if (folder / INDEX).is_file():
        try:
            names &= set(read_shards(folder / INDEX))
        except UserError:
            return []
    return [folder / name for name in sorted(names)]


@lru_cache(512)
def _counts(path: Path, size: int, changed: int) -> tuple[tuple[str, int], ...]:
    """How many numbers a safetensors file of that size, `changed` then, has of each type, by its header."""
    counts: Counter[str] = Counter()
    try:
        with open(path, "rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            header = parse_json(file.read(length)) if length < min(size, _HEADER) else {}
        for name, tensor in header.items():
            if name != "__metadata__":
                counts[_NAMES.get(tensor["dtype"], str(tensor["dtype"]))] += prod(tensor["shape"])
    except (OSError, struct.error, ValueError, KeyError, TypeError, AttributeError):
        # Whoever loads it says what is wrong.
        return ()
    return tuple(counts.items())
