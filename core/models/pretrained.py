"""Networks loaded with Transformers: any kind that Transformers supports, on any device, without remote code.

Importing Transformers takes seconds, so `core.models.model` imports this module only if needed.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import torch
import transformers
from accelerate.utils import check_device_map
from transformers import CONFIG_MAPPING, AutoConfig, LlamaConfig, PretrainedConfig, PreTrainedModel
from transformers.utils import logging

from stepsight.core.errors import UserError
from stepsight.core.hubs.checkpoint_files import CARD
from stepsight.core.models import llada
from stepsight.core.models.checkpoint import ATTENTIONS, Checkpoint
from stepsight.core.models.devices import torch_dtype
from stepsight.core.models.network import KINDS, layer_windows
from stepsight.core.models.placement import SPREADS, Placement
from stepsight.core.models.weights import CheckpointWeights

# The largest number of weights that may be missing from a network's files, such as those of a new head.
_NEW = 20_000_000


def load_backbone(
    checkpoint: Checkpoint, place: Placement | None = None, attention: str | None = None
) -> PreTrainedModel:
    """Load the network that computes a checkpoint's hidden states, without its head. LLaDA is also supported.

    `place` defaults to the CPU in float32. `attention` sets the mask; None keeps the mask in the config.
    Raises `UserError`, with a message that names the tensor, if a tensor is missing or misshapen.
    """
    config = read_config(checkpoint, attention)
    # Gemma 2 caps its attention logits, which Transformers' scaled dot product attention does not support.
    attend = "eager" if config.model_type == "gemma2" else "sdpa"
    return load_weights(
        "AutoModel",
        checkpoint,
        config,
        place or Placement(dtype="float32"),
        key_mapping=_key_mapping(checkpoint.weights, config),
        attn_implementation=attend,
    )


def _key_mapping(weights: CheckpointWeights, config: PretrainedConfig) -> Mapping[str, str] | None:
    """Return regular expressions that turn stored tensor names into Transformers' names, or None if no renaming is
    needed."""
    if any(name.startswith("model.transformer.blocks.") for name in weights):
        # This also holds if the config is that of a Llama, as with an adapter trained here.
        return llada.NAMES
    # Transformers itself drops `model.`; other prefixes come from wrappers, such as TRL's value head.
    if config.model_type not in KINDS or weights.backbone_prefix in ("", "model."):
        return None
    return {f"^{re.escape(weights.backbone_prefix)}": ""}


def read_config(checkpoint: Checkpoint, attention: str | None = None) -> PretrainedConfig:
    """Return the Transformers config of a checkpoint, with the attention mask `attention` if that is given.

    Raises `UserError` if Transformers does not know the model or refuses a value, if the mask is unknown, or if the
    config requires a different mask.
    """
    folder, values = checkpoint.folder, checkpoint.config
    kind = values.get("model_type")
    try:
        if llada.recognises(values):
            config: PretrainedConfig = LlamaConfig(**llada.backbone_values(values))
        elif kind not in CONFIG_MAPPING:
            raise UserError(
                f"config.json: the model_type {kind!r} is unknown to Transformers {transformers.__version__}.",
                "A checkpoint's own code is never run; a newer version of Transformers may support this type.",
            )
        else:
            understood = {key: value for key, value in _adapt_config(values).items() if key != "auto_map"}
            with _quiet():
                config = AutoConfig.for_model(**understood)
    except UserError as error:
        raise error.at(str(folder)) from None
    except Exception as error:  # untrusted values can cause any kind of exception there
        raise _network_error(folder, error) from None
    _set_attention(config, attention, folder, values)
    return config


def _adapt_config(values: dict[str, Any]) -> dict[str, Any]:
    """Return the content of a config.json in a form with which Transformers follows its `layer_types`, and finds
    the head width if the file leaves it open.

    Raises `UserError` if the layer types contradict other keys.
    """
    kind, layers = values.get("model_type"), values.get("num_hidden_layers")
    if kind not in KINDS:
        return values
    windows = layer_windows(values, kind, layers) if type(layers) is int else None
    if windows is None and values.get("layer_types") is not None:
        raise UserError(
            f"config.json: layer_types does not fit a {kind} with these num_hidden_layers and sliding_window.",
            "Copy it again.",
        )
    if windows and kind in ("mistral", "ministral"):
        # In Transformers, all layers of a Mistral are of one kind, and a Ministral has at least one with a window.
        if not any(windows):
            values = {**values, "model_type": "mistral", "sliding_window": None}
        elif values.get("layer_types") is not None:
            values = {**values, "model_type": "ministral"}
    if values.get("head_dim") is None and ("head_dim" in values or values["model_type"] == "ministral"):
        values = {**values, "head_dim": values["hidden_size"] // values["num_attention_heads"]}
    return values


class _Unread:
    """A tensor of a checkpoint that is read when Transformers takes it, like a slice of a safetensors file."""

    def __init__(self, weights: CheckpointWeights, name: str) -> None:
        self._weights, self._name = weights, name

    def __getitem__(self, part: Any) -> torch.Tensor:
        return self._weights.read(self._name)[part]


def load_weights(
    kind: str, checkpoint: Checkpoint, config: PretrainedConfig, place: Placement, **options: Any
) -> PreTrainedModel:
    """Load a checkpoint's weights into the network that `config` describes.

    `kind` is the name of one of Transformers' Auto classes. Raises `UserError` if a tensor is missing or misshapen
    (the message names the first one), or if the network cannot be spread over the placement's devices.
    """
    folder, weights, auto = checkpoint.folder, checkpoint.weights, getattr(transformers, kind)
    # If the files are in one folder, Transformers can leave weights on the disk.
    is_plain = all(path.parent == folder for path in weights.all_paths) and not weights.tensors
    source = {} if is_plain else {"state_dict": {name: _Unread(weights, name) for name in weights}}
    with _quiet():
        try:
            with torch.device("meta"):
                network = auto.from_config(config)
            _check_size(network, weights.size)
            check_split(place, network)
            model, report = type(network).from_pretrained(
                folder if is_plain else None,
                config=config,
                dtype=torch_dtype(place.dtype),
                device_map=place.device_map,
                use_safetensors=True,
                local_files_only=True,
                trust_remote_code=False,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                **source,
                **options,
            )
        except UserError as error:
            raise error.at(str(folder)) from None
        except Exception as error:  # as above
            raise _network_error(folder, error) from None
    _check_report(report, folder)
    if place.device_map is not None:
        return cast(PreTrainedModel, model)
    try:
        return cast(PreTrainedModel, model.to(place.device))
    except (RuntimeError, AssertionError) as error:
        message = " ".join(str(error).split())
        raise UserError(
            f"the device {place.device!r} cannot hold {folder}: {message:.200}", "Choose another device."
        ) from None


def check_split(place: Placement, network: PreTrainedModel) -> None:
    """Raise `UserError` if a network cannot be spread over devices as the placement's `device_map` requires. The
    weights of the network need not be loaded."""
    if isinstance(place.device_map, dict):
        try:
            check_device_map(network, place.device_map)
        except ValueError as error:
            raise UserError(f"the device map does not fit: {' '.join(str(error).split())}") from None
    elif place.device_map in SPREADS and not network._no_split_modules:
        # Accelerate would split within layers.
        raise UserError(
            f"a backbone of type {network.config.model_type!r} cannot be spread over several devices: Transformers "
            "does not say which of its parts belong together.",
            "Give one device.",
        )


def _check_size(network: PreTrainedModel, stored: int) -> None:
    """Raise `UserError` if a network has many more weights than the files. Without this check, memory would be
    allocated for the missing weights, and for tables of as many positions as the config names."""
    expected = sum(tensor.numel() for tensors in (network.parameters(), network.buffers()) for tensor in tensors)
    if expected > 2 * stored + _NEW:
        raise UserError(
            f"config.json describes a network of {expected:,} weights, but the files have {stored:,}.",
            "Copy it again.",
        )


def _network_error(folder: Path, error: Exception) -> UserError:
    message = " ".join(str(error).split())
    return UserError(
        f"{folder}/config.json: Transformers cannot build its network ({type(error).__name__}: {message:.400}).",
        "Copy it again, or choose another model.",
    )


def _set_attention(config: PretrainedConfig, attention: str | None, folder: Path, values: dict[str, Any]) -> None:
    if attention is None:
        return
    if attention not in ATTENTIONS:
        raise UserError(f"{folder}/{CARD}: attention {attention!r} found, expected bidirectional or causal.")
    if "is_causal" in values and bool(values["is_causal"]) != (attention == "causal"):
        raise UserError(f"{folder}: config.json and {CARD} disagree on the attention mask.")
    config.is_causal = attention == "causal"


def _check_report(report: dict[str, Any], folder: Path) -> None:
    if report["missing_keys"]:
        names = sorted(report["missing_keys"])
        raise UserError(f"{folder}: {len(names)} tensors are missing; the first is {names[0]}.", "Copy it again.")
    if report["mismatched_keys"]:
        name, shape, expected = sorted(report["mismatched_keys"])[0]
        raise UserError(f"{folder}: {name} has shape {tuple(shape)}, but config.json requires {tuple(expected)}.")


@contextmanager
def _quiet() -> Iterator[None]:
    """Temporarily silence Transformers' loader: its progress bar and its table of unused head weights."""
    level = logging.get_verbosity()
    bar = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bar:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
