"""File names in an evaluator's folder, and the form of a hub id. Does not need PyTorch."""

import re

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
TOKENIZER = "tokenizer.json"
CARD = "stepsight.json"
CARD_VERSION = 1
"""The version of the keys of stepsight.json, also of a file that names none."""
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

_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")


def is_hub_id(spec: str) -> bool:
    """True if the text has the form `owner/name`."""
    return _ID.fullmatch(spec) is not None
