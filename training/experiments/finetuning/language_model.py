"""Causal language models: opening one from a folder or a hub, and making a small one with random weights."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from transformers import (
    AutoTokenizer,
    LlamaForCausalLM,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
    set_seed,
)
from transformers.utils import logging

from stepsight.core.errors import UserError
from stepsight.core.hubs.checkpoint_files import CARD, is_hub_id, read_config_file
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.checkpoint_resolver import model_folder as folder_of_hub
from stepsight.core.models.placement import Placement
from stepsight.core.models.pretrained import load_weights, read_config
from stepsight.training.train.config import Backbone
from stepsight.training.train.init import PAD, llama_config, train_tokenizer

_END = "<end>"


def model_folder(spec: str, root: Path = Path()) -> Path:
    """Return the folder of a causal language model.

    `spec` may be a folder in `root`, a folder relative to the current one, or a model on a hub, which is downloaded
    if needed. Only the model's config.json is read. Raises `UserError` if the folder does not exist or does not
    hold a causal language model.
    """
    folder = next((path for path in (root / spec, Path(spec)) if path.is_dir()), None)
    if folder is None and not is_hub_id(spec):
        raise UserError(f"there is no folder {spec!r}.", "Give the folder of a model, or a model hub's OWNER/NAME.")
    folder = folder or folder_of_hub(spec)
    named = read_config_file(folder).get("architectures") or ["no causal language model"]
    if (folder / CARD).is_file() or not str(named[0]).endswith(("ForCausalLM", "LMHeadModel")):
        kind = "an evaluator of steps" if (folder / CARD).is_file() else f"a {named[0]}"
        raise UserError(f"{folder}: this is {kind}, no causal language model.", "Give one that writes text.")
    return folder


def load_model(folder: Path, place: Placement) -> PreTrainedModel:
    """Load the model in a folder with the data type and on the device that `place` specifies. Raises `UserError`,
    naming the tensor, if a tensor is missing or has the wrong shape."""
    checkpoint = Checkpoint.open(folder)
    config = read_config(checkpoint)
    try:
        return load_weights("AutoModelForCausalLM", checkpoint, config, place, attn_implementation="sdpa")
    except ValueError as error:
        raise UserError(f"{folder}: {' '.join(str(error).split()):.300}", "Give a causal language model.") from None


def load_text_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Load the tokenizer in a folder. If the tokenizer has no pad token, its end token is used for padding. Raises
    `UserError` if there is no tokenizer, or if the tokenizer has no end token."""
    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, ImportError, KeyError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{folder}: the tokenizer cannot be read ({reason:.200}).", "Copy it again.") from None
    if tokenizer.eos_token_id is None:
        raise UserError(
            f"{folder}: the tokenizer has no eos_token, which ends an answer.", "Name one in its config."
        )
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer  # type: ignore[no-any-return]


def prompt_ids(tokenizer: PreTrainedTokenizerBase, prompt: str) -> list[int]:
    """Return the token ids that precede an answer, beginning with the tokenizer's start token if it has one. They
    are the same in training and in generation."""
    ids = tokenizer(prompt)["input_ids"]
    # Some tokenizers end every text with an end token, but here the answer follows.
    return list(ids[:-1] if ids and ids[-1] == tokenizer.eos_token_id else ids)


def write_scratch_model(folder: Path, texts: Iterable[str], backbone: Backbone, vocabulary: int, seed: int) -> None:
    """Write a Llama with random weights, and a byte-level tokenizer trained on `texts`, to a folder.

    The weights are initialised with `seed`. The tokenizer has `vocabulary` tokens plus an end token. The model's
    config.json is written last.
    """
    trained = train_tokenizer(texts, vocabulary)
    trained.add_special_tokens([_END])
    tokenizer = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=trained, eos_token=_END, pad_token=PAD, model_max_length=backbone.context
    )
    config = llama_config(backbone, trained.get_vocab_size(), "causal")
    config.eos_token_id, config.pad_token_id = tokenizer.eos_token_id, tokenizer.pad_token_id
    set_seed(seed)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    tokenizer.save_pretrained(folder)
    LlamaForCausalLM(config).save_pretrained(folder)
