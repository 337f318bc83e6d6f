"""The files of an evaluator's folder by name, and what a hub's id looks like. Needs no PyTorch."""

import re

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
TOKENIZER = "tokenizer.json"
CARD = "stepsight.json"
CARD_VERSION = 1
"""The version of the keys of stepsight.json; a file that names none is of the first."""
SLOW_TOKENIZERS = ("tokenizer.model", "spiece.model", "vocab.txt", "vocab.json")
"""Files that a tokenizer.json can be made from."""
ADAPTER = "adapter_config.json"
ADAPTER_WEIGHTS = "adapter_model.safetensors"
ADAPTER_PICKLE = "adapter_model.bin"

UNPICKLE = (
    "If you trust who made it, load the model with Transformers once and write it with save_pretrained, which "
    "makes safetensors; then give that folder."
)
"""What to do with a checkpoint that others saved as pickle files."""

_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def is_hub_id(spec: str) -> bool:
    """Whether it looks like `owner/name`."""
    return _ID.fullmatch(spec) is not None
