import json

import pytest
import torch
from safetensors.torch import save_file

from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.weights import tensor_files
from stepsight.core.prompts.tokenizer_files import TokenizerFiles
from tests.checkpoints import tiny_tokenizer, write_shards
from tests.messages import refused


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.json").write_text('{"hidden_size": 4, "width": true, "architectures": ["A", "B"]}')
    save_file({"w": torch.arange(12.0).view(3, 4), "b": torch.ones(3)}, tmp_path / "model.safetensors")
    return tmp_path


def test_tensors_and_rows_are_read_by_name_and_shape(folder):
    checkpoint = Checkpoint.open(folder)
    assert checkpoint.card == {}
    assert checkpoint.architectures == ["A", "B"]
    assert checkpoint.tensor("w", (3, 4)).shape == (3, 4)
    assert checkpoint.rows("w", [2, 0], (3, 4)).tolist() == [[8.0, 9.0, 10.0, 11.0], [0.0, 1.0, 2.0, 3.0]]
    for read in (lambda name, shape: checkpoint.tensor(name, shape), lambda *a: checkpoint.rows(a[0], [0], a[1])):
        with refused():
            read("x", (3, 4))
        with refused():
            read("w", (2, 4))


def test_whole_numbers_of_the_config(folder):
    checkpoint = Checkpoint.open(folder)
    assert checkpoint.size("hidden_size") == 4
    for key in ("width", "layers"):
        with refused():
            checkpoint.size(key)


def test_special_tokens_come_from_either_file(folder):
    checkpoint = Checkpoint.open(folder)
    assert checkpoint.special_token("bos_token") is None
    (folder / "special_tokens_map.json").write_text('{"bos_token": "<a>", "pad_token": {"content": "<p>"}}')
    (folder / "tokenizer_config.json").write_text('{"bos_token": "<b>", "pad_token": null}')
    assert [checkpoint.special_token(role) for role in ("bos_token", "pad_token", "x")] == ["<b>", "<p>", None]


def test_a_folder_of_a_hub_s_cache_has_the_model_s_name(tmp_path):
    kept = tmp_path / "models--GAIR--ReasonEval-7B" / "snapshots" / "0a1b2c"
    assert Checkpoint(kept, {}, {}).name == "ReasonEval-7B"
    assert Checkpoint(tmp_path / "snapshots" / "mine", {}, {}).name == "mine"


def test_shards_are_found_by_their_index(tmp_path):
    write_shards(tmp_path, {"a": torch.zeros(1), "b": torch.zeros(1), "c": torch.zeros(1)})
    assert {name: path.name[:11] for name, path in tensor_files(tmp_path).items()} == {
        "a": "model-00001", "b": "model-00002", "c": "model-00001"
    }  # fmt: skip
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    with refused():
        tensor_files(tmp_path)
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps({"weight_map": [1]}))
    with refused():
        tensor_files(tmp_path)


@pytest.mark.parametrize("name", ["pytorch_model.bin", "pytorch_model-00001-of-00002.bin", "model.pt"])
def test_pickles_are_never_read(tmp_path, name):
    (tmp_path / name).write_bytes(b"\x80\x04cos\nsystem\n.")
    with refused():
        tensor_files(tmp_path)
    save_file({"a": torch.zeros(1)}, tmp_path / "model.safetensors")
    assert set(tensor_files(tmp_path)) == {"a"}


@pytest.mark.parametrize("name", ["tokenizer.model", "vocab.txt"])
def test_a_slow_tokenizer_has_to_be_turned_into_a_fast_one(tmp_path, name):
    (tmp_path / name).write_bytes(b"x")
    with refused():
        TokenizerFiles(tmp_path).load()
    tiny_tokenizer().save(str(tmp_path / "tokenizer.json"))
    assert TokenizerFiles(tmp_path).load().get_vocab_size() == tiny_tokenizer().get_vocab_size()
