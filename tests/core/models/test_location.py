"""A model hub on this machine, asked by the hub's own client."""

import json

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file, save_file

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.hubs import hub_cache
from stepsight.core.hubs.checkpoint_files import is_hub_id
from stepsight.core.hubs.hub_cache import find_fetched, list_fetched
from stepsight.core.models import kernels, memory
from stepsight.core.models.checkpoint_resolver import evaluator_folder, model_folder
from stepsight.core.models.location import cached, can_load
from stepsight.core.models.placement import Placement
from tests.checkpoints import QWEN2, write_adapter, write_language_model, write_reasoneval
from tests.core.formats.test_two_token import tokenizer_of
from tests.hub import Hub, point_to
from tests.messages import refused

MODEL = "GAIR/ReasonEval-7B"


@pytest.fixture
def hub(published, tmp_path, monkeypatch):
    one = Hub()
    one.folders[MODEL] = published
    point_to(monkeypatch, one.url, tmp_path / "hub")
    monkeypatch.setenv("STEPSIGHT_CACHE", str(tmp_path / "cache"))
    with one.running():
        yield one


def asked_for(hub):
    return [path for _, path, _, _ in hub.asked]


@pytest.fixture
def published(tmp_path):
    folder = tmp_path / "published"
    write_reasoneval(folder)
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    (folder / "modeling.py").write_text("raise SystemExit")
    (folder / "onnx").mkdir()
    (folder / "onnx" / "config.json").write_text("{}")
    return folder


def test_an_evaluator_is_fetched_once_and_then_needs_no_hub(hub, published, monkeypatch, capsys):
    weights = published / "model.safetensors"
    hub.cut, hub.times = {weights.name: weights.stat().st_size // 2}, 1
    assert not can_load(MODEL)
    evaluator = load_evaluator(MODEL)
    assert (evaluator.name, evaluator.format) == ("ReasonEval-7B", "reasoneval")
    assert evaluator.fingerprint == load_evaluator(published).fingerprint
    assert f"{MODEL} at {hub.commit}: " in capsys.readouterr().err
    asked = asked_for(hub)
    assert not any("pytorch_model" in path or "modeling" in path or "onnx" in path for path in asked)
    assert len(hub.sent(weights.name)) == 2
    assert can_load(MODEL)
    folder = cached(MODEL)
    assert folder == evaluator_folder(MODEL) == find_fetched(MODEL).folder
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"
    ]  # fmt: skip
    # Nothing is asked of the hub any more.
    hub.asked.clear()
    assert load_evaluator(MODEL).fingerprint == evaluator.fingerprint
    assert hub.asked == []
    # A folder of the cache is known by the model's name.
    assert load_evaluator(folder).name == "ReasonEval-7B"


def test_a_model_that_the_hub_does_not_know_is_named(hub):
    with refused():
        load_evaluator("GAIR/ReasonEval-8B")


def test_pickles_are_fetched_if_there_is_nothing_else(hub, published):
    tensors = load_file(published / "model.safetensors")
    (published / "model.safetensors").unlink()
    torch.save(tensors, published / "pytorch_model.bin")
    evaluator = load_evaluator(MODEL)
    assert (evaluator.name, evaluator.format) == ("ReasonEval-7B", "reasoneval")
    assert not any("modeling" in path for path in asked_for(hub))
    assert can_load(MODEL)
    save_file(tensors, published / "model.safetensors", {"format": "pt"})
    assert evaluator.fingerprint == load_evaluator(published).fingerprint


def test_a_model_without_weights_is_refused(hub, published):
    (published / "model.safetensors").unlink()
    (published / "pytorch_model.bin").unlink()
    with refused():
        load_evaluator(MODEL)
    assert not can_load(MODEL)


def test_a_model_larger_than_memory_is_not_fetched(hub, monkeypatch):
    with monkeypatch.context() as patch:
        # Whether the processor has instructions for bfloat16 decides how large the weights are.
        patch.setattr(kernels, "is_native", lambda dtype: True)
        patch.setattr(memory, "total_memory", lambda: 1_000_000)
        with refused():
            evaluator_folder(MODEL, Placement())
    with monkeypatch.context() as patch:
        patch.setattr(hub_cache, "free_disk", lambda folder: 1000)
        with refused():
            evaluator_folder(MODEL, Placement())
    assert hub.sent("model.safetensors") == []


def test_a_folder_here_gets_the_base_that_it_names_at_the_revision_that_it_names(hub, tmp_path):
    base = tmp_path / "base"
    write_language_model(base, QWEN2, tokenizer_of(QWEN2))
    tensors = load_file(base / "model.safetensors")
    folder = tmp_path / "prm"
    write_adapter(folder, "Qwen/base", tensors, revision="v1")
    card = {"format": "two-token", "tokens": {"right": " +", "wrong": " -"}}
    template = {"prompt": "{problem} ", "separator": " ки"}
    (folder / "stepsight.json").write_text(json.dumps(card | {"template": template}))
    hub.folders["Qwen/base"] = base
    with refused():
        load_evaluator(folder)
    hub.tags = {"v1"}
    evaluator = load_evaluator(folder)
    assert (evaluator.name, evaluator.format) == ("prm", "two-token")
    # It is no evaluator, and it is brought once.
    assert list_fetched() == []
    hub.asked.clear()
    assert load_evaluator(folder).fingerprint == evaluator.fingerprint
    assert model_folder("Qwen/base", "v1").name == hub.commit
    assert hub.asked == []
    write_adapter(folder, "Qwen/other", tensors)
    with refused():
        load_evaluator(folder)


def test_an_unreachable_hub_is_named_and_the_clients_cache_is_used(hub, tmp_path, monkeypatch):
    huggingface_hub.snapshot_download(MODEL)
    point_to(monkeypatch, "http://127.0.0.1:9", tmp_path / "hub")
    assert load_evaluator(MODEL).name == "ReasonEval-7B"
    assert (model_folder(MODEL) / "config.json").is_file()
    for ask in (evaluator_folder, model_folder, load_evaluator):
        with refused():
            ask("a/b")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with refused():
        load_evaluator("a/b")
    assert cached("a/b") is None


def test_an_invalid_id_is_refused(hub):
    with refused():
        load_evaluator("a/b--c")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("GAIR/ReasonEval-7B", True),
        ("mini-bidir", False),
        ("/work/model", False),
        ("./a/b", False),
        ("a/b/c", False),
        ("../b", False),
        ("a/", False),
    ],
)
def test_ids_are_distinguished_from_paths(spec, expected):
    assert is_hub_id(spec) == expected
