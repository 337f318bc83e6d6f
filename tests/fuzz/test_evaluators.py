"""Folders of evaluators with a damaged file: each loads and scores, or is refused with a reason."""

import json
import struct
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.hubs.checkpoint_files import ADAPTER, ADAPTER_WEIGHTS, CARD, INDEX, TOKENIZER, WEIGHTS
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import (
    pickled,
    write_adapter,
    write_backbone,
    write_evaluator,
    write_llada,
    write_math_shepherd,
    write_qwen_prm,
    write_shards,
    write_token_classifier,
)
from tests.core.formats.cases import PLAIN, write_chat
from tests.fuzz.attack import COUNT, Damage, attack
from tests.fuzz.mutations import changed_json, damaged

TRACE = Trace.of("2 + 3?", ["2 + 3 = 5.", "So 5."])
CONFIG = "config.json"
# Transformers takes its time with each.
SLOW = max(8, COUNT // 3)


@pytest.fixture(autouse=True)
def caches(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPSIGHT_CACHE", str(tmp_path / "cache"))


def changed_header(data, rng):
    """A safetensors file with another header, which is as long as it says."""
    (length,) = struct.unpack("<Q", data[:8])
    header = changed_json(data[8 : 8 + length], rng)
    return struct.pack("<Q", len(header)) + header + data[8 + length :]


def damaged_head(data, rng):
    """A file with faults where it begins, and with another end."""
    head = damaged(data[:400], rng)
    return head + data[400:] if rng.random() < 0.8 else head


def load(path):
    """What a folder loads and scores as, of a file in it."""
    with warnings.catch_warnings():
        # Transformers tells what it thinks of values.
        warnings.simplefilter("ignore")
        return list(Scorer(load_evaluator(path.parent)).score([TRACE], "hindsight"))


def sharded(folder):
    tensors = load_file(write_evaluator(folder) / WEIGHTS)
    (folder / WEIGHTS).unlink()
    write_shards(folder, tensors)


def chat(folder):
    write_chat(folder.parent, folder.name, card={"format": "chat-two-token"}, template=PLAIN)


def adapter(folder):
    """An adapter of ours, whose base lies beside it."""
    base = folder.with_name("base")
    backbone = write_backbone(base, "llama")
    head = {"score.weight": torch.randn(3, backbone.config.hidden_size)}
    write_adapter(folder, str(base), dict(backbone.state_dict()), whole=head, task_type="TOKEN_CLS")
    (folder / CARD).write_text(json.dumps({"format": "stepsight", "template": {"separator": "<step>"}}))


MAKERS: dict[str, Callable[[Path], object]] = {
    "own": write_evaluator,
    "sharded": sharded,
    "llada": write_llada,
    "math_shepherd": lambda folder: write_math_shepherd(folder, card={"format": "math-shepherd"}),
    "qwen_prm": write_qwen_prm,
    "chat": chat,
    "modernbert": lambda folder: write_token_classifier(folder, "modernbert"),
    "pickles": lambda folder: pickled(write_evaluator(folder)),
    "adapter": adapter,
}
ATTACKS: list[tuple[str, str, tuple[Damage, ...], int]] = [
    ("own", CONFIG, (damaged, changed_json, changed_json), COUNT),
    ("own", CARD, (damaged, changed_json, changed_json), COUNT),
    ("own", TOKENIZER, (damaged, changed_json, changed_json), COUNT),
    ("own", WEIGHTS, (damaged_head, changed_header), COUNT),
    ("sharded", INDEX, (damaged, changed_json), COUNT),
    ("llada", CONFIG, (damaged, changed_json), COUNT),
    ("math_shepherd", CONFIG, (damaged, changed_json), COUNT),
    ("qwen_prm", CONFIG, (damaged, changed_json), SLOW),
    ("math_shepherd", "tokenizer_config.json", (damaged, changed_json), COUNT),
    ("chat", "tokenizer_config.json", (damaged, changed_json), SLOW),
    ("modernbert", CONFIG, (damaged, changed_json), SLOW),
    ("modernbert", WEIGHTS, (damaged_head, changed_header), SLOW),
    ("pickles", "pytorch_model.bin", (damaged_head, damaged), SLOW),
    ("adapter", ADAPTER, (damaged, changed_json, changed_json), COUNT),
    ("adapter", ADAPTER_WEIGHTS, (damaged_head, changed_header), COUNT),
    ("adapter", CARD, (damaged, changed_json), SLOW),
]


@pytest.mark.parametrize(("made", "file", "ways", "count"), ATTACKS, ids=[f"{a}-{b}" for a, b, _, _ in ATTACKS])
def test_folders(made, file, ways, count, tmp_path):
    path = tmp_path / "it" / file
    MAKERS[made](path.parent)
    attack(f"{made} {file}", path.read_bytes(), path, load, *ways, count=count)
