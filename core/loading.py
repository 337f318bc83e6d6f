"""Finding and loading an evaluator by the name of a shipped one or the path of a folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from huggingface_hub.errors import StrictDataclassError
from tokenizers import Tokenizer
from torch import nn
from transformers import AutoConfig, AutoModel, PretrainedConfig, PreTrainedModel
from transformers.utils import logging

from core.assets import asset
from core.checkpoint import read_json, read_tensor, tensor_files
from core.encoding import Encoder, PromptTemplate
from core.errors import UserError
from core.evaluator import ATTENTIONS, CARD, TOKENIZER, Evaluator, fingerprint
from core.formats import llada
from core.label import Label
from core.model import StepModel
from core.scores import Thresholds

HEADS = ("score.weight", "score_head.weight", "model.score.weight")
"""Names that a score head goes by."""


def shipped_evaluators() -> list[str]:
    """Names of the evaluators in the assets folder, bidirectional ones first."""
    return sorted(path.parent.name for path in asset("evaluators").glob(f"*/{CARD}"))


def can_load(spec: str | Path) -> bool:
    """Whether there is a folder to load of that name or path; what is in it is not looked at."""
    try:
        return (evaluator_folder(spec) / "config.json").is_file()
    except UserError:
        return False


def load_evaluator(spec: str | Path, device: str = "cpu", dtype: torch.dtype = torch.float32) -> Evaluator:
    """Load a shipped evaluator by name, or any folder in StepSight's or LLaDA's layout.

    Raises `UserError` where there is no such folder, or a file or tensor is missing, damaged or misshapen.
    """
    folder = evaluator_folder(spec)
    config = read_json(folder / "config.json")
    card = read_json(folder / CARD) if (folder / CARD).is_file() else {}
    is_llada = llada.recognises(config)
    if not card and not is_llada:
        kind = config.get("model_type")
        raise UserError(
            f"{folder}: neither {CARD} nor a layout that StepSight knows (model_type {kind!r}).",
            "Give a folder written by stepsight train, or a LLaDA checkpoint.",
        )
    if "template" not in card:
        raise UserError(
            f"{folder}: no prompt template; this is a backbone, not an evaluator.",
            f"Train a score head with stepsight train, or write {CARD} with its template.",
        )
    backbone = load_backbone(folder, device=device, dtype=dtype, attention=card.get("attention"))
    try:
        template = PromptTemplate.from_dict(_object(card, "template"))
        thresholds = Thresholds.from_dict(_object(card, "thresholds"))
        encoder = Encoder(load_tokenizer(folder), template)
    except UserError as error:
        raise error.at(str(folder)) from None
    return Evaluator(
        name=folder.resolve().name,
        model=StepModel(backbone, _load_head(folder, backbone, device, dtype)).eval(),
        encoder=encoder,
        fingerprint=fingerprint(folder, template.to_dict(), str(card.get("attention"))),
        format="llada" if is_llada else "stepsight",
        thresholds=thresholds,
        provenance=_object(card, "provenance"),
    )


def load_backbone(
    folder: Path,
    device: str = "cpu",
    dtype: torch.dtype = torch.float32,
    attention: str | None = None,
) -> PreTrainedModel:
    """The hidden-state network of a folder, LLaDA's layout included, without its head and without remote code.

    `attention` sets the mask; None keeps what the folder's config says. Raises `UserError` naming the first
    tensor that is missing or misshapen.
    """
    values = read_json(folder / "config.json")
    is_llada = llada.recognises(values)
    config = _config(folder, values)
    _set_attention(config, attention, folder, values)
    tensor_files(folder)
    with _quiet():
        model, report = AutoModel.from_pretrained(
            folder,
            config=config,
            dtype=dtype,
            key_mapping=llada.NAMES if is_llada else None,
            attn_implementation="sdpa",
            use_safetensors=True,
            local_files_only=True,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
        )
    _check_report(report, folder)
    loaded: PreTrainedModel = model.to(device)
    return loaded


def evaluator_folder(spec: str | Path) -> Path:
    """The folder of a shipped evaluator's name, or of a path. Raises `UserError` where there is none."""
    shipped = asset("evaluators", str(spec))
    folder = shipped if str(spec) in shipped_evaluators() else Path(spec)
    if not os.path.isdir(folder):
        names = ", ".join(shipped_evaluators()) or "none"
        raise UserError(f"there is no evaluator {str(spec)!r}.", f"Give a folder, or one of: {names}.")
    return folder


def _config(folder: Path, values: dict[str, Any]) -> PretrainedConfig:
    try:
        return llada.backbone_config(values) if llada.recognises(values) else AutoConfig.for_model(**values)
    except UserError as error:
        raise error.at(str(folder)) from None
    except (ValueError, TypeError, KeyError, StrictDataclassError) as error:
        told = " ".join(str(error).split())
        raise UserError(f"{folder}/config.json: {told}", "Copy it again.") from None


def _object(card: dict[str, Any], key: str) -> dict[str, Any]:
    value = card.get(key, {})
    if not isinstance(value, dict):
        raise UserError(f"{CARD}: {key} is {type(value).__name__}, expected an object.")
    return value


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
        raise UserError(f"{folder}: {len(names)} tensors are missing, the first is {names[0]}.", "Copy it again.")
    if report["mismatched_keys"]:
        name, found, expected = sorted(report["mismatched_keys"])[0]
        raise UserError(f"{folder}: {name} has shape {tuple(found)}, the config asks for {tuple(expected)}.")


def _load_head(folder: Path, backbone: PreTrainedModel, device: str, dtype: torch.dtype) -> nn.Linear:
    weight = read_tensor(tensor_files(folder), HEADS)
    expected = (len(Label), int(backbone.config.hidden_size))
    if weight is None:
        raise UserError(f"{folder}: there is no score head ({HEADS[0]}).", "Train one with stepsight train.")
    if tuple(weight.shape) != expected:
        raise UserError(f"{folder}: the score head has shape {tuple(weight.shape)}, expected {expected}.")
    head = nn.Linear(expected[1], expected[0], bias=False)
    head.weight = nn.Parameter(weight.to(device, dtype))
    return head


def load_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer.json of a folder. Raises `UserError` where there is none or it is damaged."""
    path = folder / TOKENIZER
    if not path.is_file():
        raise UserError(f"{TOKENIZER} is missing.", "An evaluator carries its tokenizer.")
    try:
        return Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises plain Exception on a damaged file
        raise UserError(f"{TOKENIZER} is not a tokenizer ({' '.join(str(error).split())}).") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the loader's table of dropped heads and its progress bar off the terminal."""
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
