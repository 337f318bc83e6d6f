"""Every format refuses what is missing, misshapen or another's, and says what it is.

That it reads its own layout as its authors do is tested in the module of each.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.formats.recognition import FORMATS
from tests.checkpoints import (
    LLEMMA,
    write_actprm,
    write_evaluator,
    write_language_model,
    write_math_shepherd,
    write_qwen_prm,
    write_reasoneval,
    write_skywork,
    write_token_classifier,
)
from tests.core.formats import test_chat_two_token, test_log_ratio, test_masked_tokens, test_two_token
from tests.messages import refused
from tests.vocabularies import sentencepiece


@dataclass(frozen=True)
class Family:
    """How a checkpoint of a format is written, and what it cannot do without.

    `folder` is the place of the evaluator within the folder that `write` gets. `heads` are the tensors behind the
    backbone, `tokens` those that the tokenizer must have, and `shown` the keys of config.json by which the format
    is known.
    """

    format: str
    write: Callable[[Path], Any]
    heads: tuple[str, ...]
    tokens: tuple[str, ...] = ()
    folder: str = ""
    shown: tuple[str, ...] = ("architectures",)


def _llemma(folder):
    card = {"format": "llemma-prm"}
    write_language_model(folder, LLEMMA, sentencepiece(), {"bos_token": "<s>"}, card)


FAMILIES = {
    "ReasonEval-7B": Family("reasoneval", write_reasoneval, ("score_head.weight",), shown=("score_dimension",)),
    "ReasonEval-34B": Family(
        "reasoneval",
        lambda folder: write_reasoneval(folder, size="34B"),
        ("score_head.weight", "score_head.bias"),
        shown=("score_dim",),
    ),
    "Qwen2.5-Math-PRM": Family(
        "qwen-prm",
        write_qwen_prm,
        ("score.0.weight", "score.0.bias", "score.2.weight", "score.2.bias"),
        ("<extra_0>",),
    ),
    "Skywork": Family("value-head", write_skywork, ("v_head.summary.weight", "v_head.summary.bias"), shown=()),
    "ActPRM": Family(
        "ensemble-prm", write_actprm, ("score.model.nn1.weight", "score.model.nn_out.bias"), ("<extra_0>",)
    ),
    "classifier": Family(
        "token-classification", lambda folder: write_token_classifier(folder, "llama"), ("score.weight",), shown=()
    ),
    "encoder": Family(
        "token-classification",
        lambda folder: write_token_classifier(folder, "modernbert"),
        ("classifier.weight",),
        shown=(),
    ),
    "ours": Family("stepsight", write_evaluator, ("score.weight",), shown=()),
    "Math-Shepherd": Family(
        "math-shepherd",
        lambda folder: write_math_shepherd(folder, card={"format": "math-shepherd"}),
        ("lm_head.weight",),
        ("▁ки", "▁+"),
    ),
    "VersaPRM": Family(
        "two-token",
        lambda folder: test_two_token.write(folder, "VersaPRM"),
        ("lm_head.weight",),
        folder="VersaPRM",
    ),
    "Llama3.1-8B-PRM": Family(
        "chat-two-token",
        lambda folder: test_chat_two_token.write(folder, "Llama3.1-8B-PRM-Mistral-Data"),
        ("lm_head.weight",),
        folder="Llama3.1-8B-PRM-Mistral-Data",
    ),
    "Llemma": Family("llemma-prm", _llemma, ("lm_head.weight",)),
    "PathFinder-PRM": Family(
        "masked-tokens",
        test_masked_tokens.write,
        ("lm_head.weight",),
        ("<extra>", "<->"),
        folder=test_masked_tokens.NAME,
    ),
    "EurusPRM": Family("log-ratio", test_log_ratio.write, ("lm_head.weight",), folder="prm"),
}


def cases(what):
    return [(name, part) for name, family in FAMILIES.items() for part in getattr(family, what)]


def written(folder, name):
    FAMILIES[name].write(folder)
    return folder / FAMILIES[name].folder


def test_every_format_is_among_them():
    assert {family.format for family in FAMILIES.values()} == {kind.NAME for kind in FORMATS}


@pytest.mark.parametrize(("name", "tensor"), cases("heads"))
def test_a_tensor_of_the_head_that_is_misshapen_or_missing_is_named(tmp_path, name, tensor):
    folder = written(tmp_path, name)
    tensors = load_file(folder / "model.safetensors")
    save_file(tensors | {tensor: torch.zeros(7)}, folder / "model.safetensors", {"format": "pt"})
    with refused():
        load_evaluator(folder)
    del tensors[tensor]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with refused():
        load_evaluator(folder)


@pytest.mark.parametrize(("name", "key"), cases("shown"))
def test_a_config_of_another_family_is_refused_although_the_format_is_named(tmp_path, name, key):
    folder = written(tmp_path, name)
    config = json.loads((folder / "config.json").read_text())
    del config[key]
    (folder / "config.json").write_text(json.dumps(config | {"architectures": ["MistralModel"]}))
    path = folder / "stepsight.json"
    card = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(card | {"format": FAMILIES[name].format}))
    with refused():
        load_evaluator(folder)


@pytest.mark.parametrize(("name", "token"), cases("tokens"))
def test_a_tokenizer_without_a_token_of_the_format_is_refused(tmp_path, name, token):
    folder = written(tmp_path, name)
    parts = json.loads((folder / "tokenizer.json").read_text())
    model = parts["model"]
    if token in model["vocab"]:
        model["vocab"]["<gone>"] = model["vocab"].pop(token)
    model["merges"] = [pair for pair in model["merges"] if token not in ("".join(pair), *pair)]
    for added in parts["added_tokens"]:
        added["content"] = "<gone>" if added["content"] == token else added["content"]
    (folder / "tokenizer.json").write_text(json.dumps(parts))
    with refused():
        load_evaluator(folder)


def test_a_tensor_of_the_backbone_that_is_missing_is_named(tmp_path):
    folder = written(tmp_path, "ReasonEval-7B")
    tensors = load_file(folder / "model.safetensors")
    del tensors["model.layers.1.self_attn.o_proj.weight"]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    with refused():
        load_evaluator(folder)
