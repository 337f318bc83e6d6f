"""The initial model of a run, either new or read from a folder, with its tokenizer and encoder."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import nn
from transformers import LlamaConfig, PreTrainedModel, set_seed

from stepsight.core.errors import UserError, located
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.files.whole_files import read_json
from stepsight.core.formats.heads import HEADS
from stepsight.core.hubs.checkpoint_files import CARD, is_hub_id
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.checkpoint_resolver import evaluator_folder, model_folder, open_checkpoint
from stepsight.core.models.evaluator import ModelEvaluator, fingerprint
from stepsight.core.models.model import StepModel, context_of, looks_ahead
from stepsight.core.models.placement import Placement
from stepsight.core.models.pretrained import load_backbone, read_config
from stepsight.core.prompts.encoding import Encoder
from stepsight.core.prompts.template import PromptTemplate, Separator
from stepsight.core.prompts.tokenizer_files import TokenizerFiles
from stepsight.core.scores import Outputs
from stepsight.training.data.mixture import Mixture
from stepsight.training.train.config import Backbone, Lora, TrainConfig
from stepsight.training.train.lora import trained_targets

PAD, SEPARATOR = "<pad>", "<step>"

# Mitchell's initialisation: the cut-off in standard deviations, and the modules that write to the residual stream.
_CUT = 3
_OUTPUTS = ("self_attn.o_proj", "mlp.down_proj")
# Words with their leading space, single digits, runs of other characters, and white space.
_PIECES = r" ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+"
# The number of traces per source from which the tokenizer is learnt; using more only takes longer.
_TOKENIZER_TRACES = 4000


class InitialModel(NamedTuple):
    """The model that a run starts from, with its encoder.

    `origin` gives the name and fingerprint of the model to train further, and `folder` its location. Both are None
    when training from scratch. The fingerprint of an evaluator does not depend on the attention mask of the run.
    The fingerprint of a backbone covers the template and the mask with which it is trained.
    """

    encoder: Encoder
    model: StepModel
    origin: dict[str, str] | None
    folder: Path | None = None


def initial_model(config: TrainConfig, mixture: Mixture, root: Path) -> InitialModel:
    """Return the initial model in float32, with its encoder. New weights depend on the seed alone, not on the mask.

    `root` is the folder of the configuration. `config.init` may name an evaluator, whose head is trained further,
    or a backbone: a plain Hugging Face backbone or LLaDA's. The language-modelling head of a backbone, if there is
    one, is never read.

    A backbone gets a new head and the template in its `stepsight.json`. If it has no such file, it gets the default
    template, for which a token that closes a step is added to the tokenizer. With `config.lora`, which does not
    train the embedding, a line break closes a step instead. Frozen weights are in bfloat16 if `bf16` is set.

    Raises `UserError` if the folder cannot be read, if the architecture does not support the mask of
    `config.attention`, if the head has two classes, or if `config.lora` does not fit.
    """
    if config.init is None:
        return InitialModel(*_build_from_scratch(config, mixture, root), None)
    folder = init_folder(config.init, root)
    checkpoint = open_checkpoint(folder)
    if config.lora is not None:
        _check_lora(config.lora, checkpoint)
    if any(name in checkpoint.weights for name in HEADS):
        evaluator = load_evaluator(folder, dtype="float32")
        if not isinstance(evaluator, ModelEvaluator) or evaluator.outputs != Outputs.THREE_WAY:
            raise UserError(
                f"{folder}: this evaluator judges only validity, and lacks the class neu.",
                "Start from its backbone, or from an evaluator of three classes.",
            )
        head, encoder, mark = evaluator.model.score, evaluator.encoder, evaluator.fingerprint
        # Not every evaluator that can score can be trained. Its own weights are freed before they are read again.
        del evaluator
        model = StepModel(load_backbone(checkpoint), head)
    else:
        encoder, model = _build_from_backbone(checkpoint, config)
        mark = fingerprint(checkpoint, encoder.template.to_dict(), config.attention)
    if config.lora is not None and config.bf16:
        model.model.to(torch.bfloat16)  # type: ignore[arg-type]
    _set_mask(model.model, config.attention, folder)
    return InitialModel(encoder, model, {"name": folder.resolve().name, "fingerprint": mark}, folder)


def _check_lora(lora: Lora, checkpoint: Checkpoint) -> None:
    """Raise `UserError` if the LoRA targets do not exist or the starting model is itself an adapter.

    No weights are read.
    """
    if checkpoint.weights.base is not None:
        raise UserError(
            f"{checkpoint.folder}: this is an adapter, on which no adapters can be trained.",
            "Merge it first: stepsight evaluators merge FOLDER --output FOLDER",
        )
    config = read_config(checkpoint)
    with torch.device("meta"):
        trained_targets(lora, StepModel.from_config(config).model)


def init_folder(init: str, root: Path) -> Path:
    """Return the folder of the model that `init` names.

    The name may be a folder in `root`, a shipped evaluator, a folder relative to the current one, or a model on a
    hub.
    """
    if (root / init).is_dir():
        return root / init
    # A base for training is not listed as an evaluator.
    return model_folder(init) if is_hub_id(init) and not Path(init).is_dir() else evaluator_folder(init)


def longest_input(backbone: PreTrainedModel, name: object) -> int:
    """Return the largest number of tokens that a backbone accepts. Raises `UserError`, with the `name` of the
    model, if its config.json does not say it."""
    context = context_of(backbone)
    if context is None:
        raise UserError(
            f"{name}: config.json lacks the input length (max_position_embeddings).", "Choose another backbone."
        )
    return context


def llama_config(backbone: Backbone, vocabulary: int, attention: str) -> LlamaConfig:
    """Return a Llama configuration with the dimensions of `backbone`. `attention` only sets `is_causal`."""
    values: dict[str, Any] = {
        "vocab_size": vocabulary,
        "hidden_size": backbone.hidden,
        "num_hidden_layers": backbone.layers,
        "num_attention_heads": backbone.heads,
        "num_key_value_heads": backbone.kv_heads or backbone.heads,
        "intermediate_size": backbone.mlp,
        "max_position_embeddings": backbone.context,
        "rms_norm_eps": 1e-5,
        "rope_parameters": {"rope_type": "default", "rope_theta": backbone.rope_theta},
        "initializer_range": 0.02,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": None,
        "is_causal": attention == "causal",
    }
    return LlamaConfig(**values)


def _build_from_scratch(config: TrainConfig, mixture: Mixture, root: Path) -> tuple[Encoder, StepModel]:
    assert config.backbone is not None
    encoder, vocabulary = _encoder(config, mixture, root)
    set_seed(config.seed)
    llama = llama_config(config.backbone, vocabulary, config.attention)
    model = StepModel.from_config(llama)
    if config.initialisation == "mitchell":
        initialise(model.model)
    return encoder, model


def initialise(backbone: PreTrainedModel) -> None:
    """Reinitialise a Llama in place by Mitchell's truncated-normal initialisation, which LLaDA inherits from OLMo.

    This follows `reset_parameters` in LLaDA's modelling code with `init_fn: mitchell`. Every matrix is sampled from
    a normal distribution with standard deviation `1 / sqrt(d)`, truncated at three standard deviations, where `d`
    is the width of its input. For the two matrices that write to the residual stream in layer `l`, counted from 1,
    the standard deviation is `1 / sqrt(2 l d)`. For the embedding, `d` is the width of the model. Norms are ones,
    and there are no biases. The random numbers come from torch's global generator.
    """
    llama: Any = backbone
    _draw(llama.embed_tokens.weight, backbone.config.hidden_size)
    for number, layer in enumerate(llama.layers, 1):
        for name, module in layer.named_modules():
            if isinstance(module, nn.Linear):
                _draw(module.weight, module.in_features, 2 * number if name in _OUTPUTS else 1)


def _draw(weight: torch.Tensor, width: int, share: int = 1) -> None:
    std = 1 / math.sqrt(width * share)
    nn.init.trunc_normal_(weight, std=std, a=-_CUT * std, b=_CUT * std)


def _encoder(config: TrainConfig, mixture: Mixture, root: Path) -> tuple[Encoder, int]:
    """Return the encoder and the number of rows that the embedding needs."""
    if config.tokenizer is None:
        tokenizer = learn_tokenizer(mixture, config.vocabulary)
        return Encoder(tokenizer, PromptTemplate(separator=SEPARATOR)), tokenizer.get_vocab_size()
    folder = init_folder(config.tokenizer, root)
    with located(str(folder)):
        tokenizer = TokenizerFiles(folder).load()
        encoder = Encoder(tokenizer, _template(folder, tokenizer))
    size = tokenizer.get_vocab_size()
    if size > config.vocabulary:
        raise UserError(
            f"vocabulary is {config.vocabulary:,}, but the tokenizer in {folder} has {size:,} tokens.",
            f"Set vocabulary to {size} or more.",
        )
    return encoder, config.vocabulary


def learn_tokenizer(mixture: Mixture, vocabulary: int) -> Tokenizer:
    """Train a tokenizer of `vocabulary` tokens on the first traces of each source."""
    traces = mixture.heads(_TOKENIZER_TRACES)
    return train_tokenizer((text for trace in traces for text in (trace.problem, *trace.substeps)), vocabulary)


def _build_from_backbone(checkpoint: Checkpoint, config: TrainConfig) -> tuple[Encoder, StepModel]:
    folder, frozen = checkpoint.folder, config.lora is not None
    place = Placement(dtype="bfloat16" if frozen and config.bf16 else "float32")
    backbone = load_backbone(checkpoint, place)
    with located(str(folder)):
        tokenizer = checkpoint.tokenizer.load()
        encoder = Encoder(tokenizer, _template(folder, tokenizer, frozen))
    set_seed(config.seed)
    if frozen and tokenizer.get_vocab_size() > int(backbone.config.vocab_size):
        raise UserError(
            f"{folder}: the tokenizer has {tokenizer.get_vocab_size():,} tokens, but the embedding, which "
            f"lora does not change, has {int(backbone.config.vocab_size):,} rows.",
            "Use the tokenizer that the backbone came with.",
        )
    _make_room(backbone, tokenizer.get_vocab_size())
    return encoder, StepModel.with_new_head(backbone)


def own_template(folder: Path) -> PromptTemplate | None:
    """Return the template in the stepsight.json of a folder, or None if there is none. Raises `UserError` if it is
    invalid."""
    card = read_json(folder / CARD) if (folder / CARD).is_file() else {}
    return PromptTemplate.from_dict(card["template"]) if isinstance(card.get("template"), dict) else None


def _template(folder: Path, tokenizer: Tokenizer, frozen: bool = False) -> PromptTemplate:
    if own := own_template(folder):
        return own
    # A tokenizer with a start token adds it to an empty input too.
    first = tokenizer.encode("", add_special_tokens=True).tokens[:1]
    bos = first[0] if first else None
    if frozen:
        # A new token would be meaningless, since the embedding is not trained.
        return PromptTemplate(separator="\n", separator_is=Separator.TEXT, opening=False, bos=bos)
    tokenizer.add_special_tokens([SEPARATOR])
    return PromptTemplate(separator=SEPARATOR, bos=bos)


def _make_room(backbone: PreTrainedModel, vocabulary: int) -> None:
    """Extend the embedding to at least `vocabulary` rows. Each new row is the mean of the existing ones.

    Many embeddings already have enough spare rows and are left as they are.
    """
    before = int(backbone.config.vocab_size)
    if vocabulary <= before:
        return
    embedding = backbone.resize_token_embeddings(vocabulary, mean_resizing=False)
    with torch.no_grad():
        embedding.weight[before:] = embedding.weight[:before].mean(0)


def _set_mask(backbone: PreTrainedModel, attention: str, folder: Path) -> None:
    backbone.config.is_causal = attention == "causal"
    if attention == "bidirectional" and getattr(backbone.config, "sliding_window", None) is not None:
        # A sliding window would hide distant tokens on both sides.
        backbone.config.sliding_window = None
    with located(str(folder)):
        is_bidirectional = looks_ahead(backbone)
    if is_bidirectional != (attention == "bidirectional"):
        kind = backbone.config.model_type
        raise UserError(f"{folder}: a backbone of type {kind!r} cannot be {attention}.", "Choose another one.")


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> Tokenizer:
    """Train a byte-level BPE tokenizer of `vocabulary` tokens on `texts`. It can encode any UTF-8 text, and every
    digit is a token."""
    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(_PIECES), "isolated")
    bytes_of_pieces = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, bytes_of_pieces])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, SEPARATOR],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer
