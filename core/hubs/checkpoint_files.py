"""The files in an evaluator's folder: their names, and the JSON files that give sizes and file names.

The JSON files are config.json, an adapter's adapter_config.json, and the index of sharded weights. They may come
from anyone, so sizes are checked before anything large is allocated, and weight files must be in the checkpoint's
folder. Does not need PyTorch.
"""

import os
import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from stepsight.core.errors import UserError, located
from stepsight.core.files.whole_files import read_json
from stepsight.core.validation import validate

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
TOKENIZER = "tokenizer.json"
CARD = "stepsight.json"
CARD_VERSION = 1
"""The version of the keys in stepsight.json, which is also assumed for a file that names none."""
SENTENCEPIECE = "tokenizer.model"
SLOW_TOKENIZERS = (SENTENCEPIECE, "spiece.model", "vocab.txt", "vocab.json")
"""Files from which a tokenizer.json can be made."""
ADAPTER = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
ADAPTER_PICKLE = "adapter_model.bin"

UNPICKLE = (
    "If you trust who made it, load the model with Transformers once and write it with save_pretrained, which "
    "makes safetensors; then give that folder."
)
"""A hint for checkpoints saved as pickle files."""

NAME_BASE = f'Name the folder or OWNER/NAME of its base in {CARD}, such as {{"base": "OWNER/NAME"}}.'
"""A hint for adapters whose base model is missing."""

_LONGEST_NAME = 200
LARGEST_FILE = 1_000_000
"""The largest config.json, stepsight.json or adapter_config.json in bytes; public ones are a hundredth of that."""
LARGEST_HEADER = 8_000_000
"""The largest header of a safetensors file, or index of several, in bytes. Once parsed, it takes ten times as much
memory. For models with 7 billion weights it has 40,000 bytes."""

# The product of two sizes fits into 64 bits; no known network has a tenth as many layers, or a quarter as many
# heads. A head takes time and memory for each pair of tokens, however narrow it is.
Size = Annotated[int, Field(ge=1, lt=2**31)] | None
Layers = Annotated[int, Field(ge=1, le=2000)] | None
Heads = Annotated[int, Field(ge=1, le=1024)] | None
Number = Annotated[float, Field(strict=False, gt=0, le=1e12)] | None
Scale = Annotated[float, Field(strict=False, gt=0, le=1e6)]


_STRICT = ConfigDict(strict=True, extra="ignore")
# PEFT interprets a module's name in an adapter's config as a regular expression, which can take forever to match.
_PLAIN_NAME = re.compile(r"\w+(\.\w+)*")
_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def is_hub_id(spec: str) -> bool:
    """True if the text has the form `owner/name`."""
    return _ID.fullmatch(spec) is not None


class _Network(BaseModel):
    """The keys of a config.json that are checked here, under the names used by Transformers, GPT-2 and LLaDA. The
    network itself checks all other keys."""

    model_config = _STRICT

    model_type: str | None = None
    dtype: str | None = None
    torch_dtype: str | None = None
    num_hidden_layers: Layers = None
    n_layers: Layers = None
    n_layer: Layers = None
    vocab_size: Size = None
    embedding_size: Size = None
    hidden_size: Size = None
    d_model: Size = None
    n_embd: Size = None
    intermediate_size: Size = None
    mlp_hidden_size: Size = None
    n_inner: Size = None
    num_attention_heads: Heads = None
    n_heads: Heads = None
    n_head: Heads = None
    num_key_value_heads: Heads = None
    n_kv_heads: Heads = None
    head_dim: Size = None
    max_position_embeddings: Size = None
    max_sequence_length: Size = None
    n_positions: Size = None
    sliding_window: Size = None
    rms_norm_eps: Number = None
    rope_theta: Number = None
    rope_scaling: dict[str, Any] | None = None
    rope_parameters: dict[str, Any] | None = None


def read_config_file(folder: Path) -> dict[str, Any]:
    """Read the config.json of a folder. Raises `UserError` if it is missing or gives an impossible size."""
    values = read_json(folder / CONFIG, LARGEST_FILE)
    with located(f"{folder}/{CONFIG}"):
        validate(_Network, values)
    return values


class _Adapter(BaseModel):
    """The keys of an adapter_config.json that StepSight uses, as named by PEFT."""

    model_config = _STRICT

    base_model_name_or_path: str | None = None
    revision: str | None = None
    r: Scale | None = None
    lora_alpha: Scale | None = None
    use_rslora: bool | None = None
    fan_in_fan_out: bool | None = None
    rank_pattern: dict[str, Scale] | None = None
    alpha_pattern: dict[str, Scale] | None = None


def read_adapter_file(folder: Path) -> dict[str, Any]:
    """Read the adapter_config.json of a folder. Raises `UserError` if it is missing, has an impossible value, or
    uses a regular expression in place of a module's name."""
    values = read_json(folder / ADAPTER, LARGEST_FILE)
    with located(f"{folder}/{ADAPTER}"):
        config = validate(_Adapter, values)
        for name in {**(config.rank_pattern or {}), **(config.alpha_pattern or {})}:
            if len(name) > _LONGEST_NAME or not _PLAIN_NAME.fullmatch(name):
                raise UserError(f"{name!r:.60} is not the name of a module.", "Name the modules themselves.")
    return values


def read_shards(index: Path) -> list[str]:
    """Return the names of the weight files listed in an index of sharded weights. Raises `UserError` if the index
    is malformed or names a file outside its own folder."""
    shards = read_json(index, LARGEST_HEADER).get("weight_map")
    if not isinstance(shards, dict):
        raise UserError(f"{index}: the key 'weight_map' is missing or not an object.", "Copy it again.")
    for name in shards.values():
        if not isinstance(name, str) or not _is_plain(name):
            raise UserError(
                f"{index}: {name!r:.60} found, expected the name of a file in the same folder.", "Copy it again."
            )
    return sorted(set(shards.values()))


def check_header(path: Path) -> None:
    """Raise `UserError` if a safetensors file has a header of more than `LARGEST_HEADER` bytes."""
    try:
        with open(path, "rb") as file:
            length, size = int.from_bytes(file.read(8), "little"), os.fstat(file.fileno()).st_size
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error}).", "Copy it again.") from None
    # A length beyond the end of the file is left for the library to reject.
    if LARGEST_HEADER < length < size:
        raise UserError(
            f"{path}: its header has {length:,} bytes, expected at most {LARGEST_HEADER:,}.", "Copy it again."
        )


def _is_plain(name: str) -> bool:
    is_path = name in ("", ".", "..") or "/" in name or "\\" in name
    return len(name) <= _LONGEST_NAME and name.isprintable() and not is_path
