import json
import os

import pytest
import torch
from safetensors.torch import save_file

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.checkpoint import Checkpoint
from stepsight.core.models.weights import pickle_files, read_pickle, tensor_files
from stepsight.core.prompts.tokenizer_files import TokenizerFiles
from tests.checkpoints import pickled, tiny_tokenizer, write_reasoneval, write_shards
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


class Code:
    """A pickle of it runs a command when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


def test_tensors_come_back_by_name(tmp_path):
    tensors = {"a": torch.arange(6.0).view(2, 3), "b": torch.ones(2, dtype=torch.bfloat16), "c": torch.tensor(3)}
    torch.save(tensors, tmp_path / "new.bin")
    torch.save(tensors, tmp_path / "old.bin", _use_new_zipfile_serialization=False)
    for file in ("new.bin", "old.bin"):
        found = read_pickle(tmp_path / file)
        assert found.keys() == tensors.keys()
        assert all(torch.equal(found[name], tensor) for name, tensor in tensors.items())


@pytest.mark.parametrize("new", [True, False])
def test_code_in_a_file_is_refused_and_not_run(tmp_path, new):
    ran = tmp_path / "ran"
    path = tmp_path / "pytorch_model.bin"
    torch.save({"a": torch.ones(1), "b": Code(ran)}, path, _use_new_zipfile_serialization=new)
    with refused():
        read_pickle(path)
    assert not ran.exists()


@pytest.mark.parametrize("value", [[torch.ones(1)], {"model": {"a": torch.ones(1)}}, {}, {"a": 3}])
def test_a_pickle_without_tensors_by_name_is_refused(tmp_path, value):
    torch.save(value, tmp_path / "x.bin")
    with refused():
        read_pickle(tmp_path / "x.bin")


@pytest.mark.parametrize("content", [b"", b"a pickle", b"PK\x03\x04 cut off", b"\x80\x04."])
def test_a_damaged_file_is_named(tmp_path, content):
    (tmp_path / "x.bin").write_bytes(content)
    with refused():
        read_pickle(tmp_path / "x.bin")


def test_a_file_that_was_cut_off_is_named(tmp_path):
    write_reasoneval(tmp_path / "theirs")
    path = pickled(tmp_path / "theirs") / "pytorch_model.bin"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with refused():
        load_evaluator(tmp_path / "theirs")
    path.write_bytes(whole)
    assert load_evaluator(tmp_path / "theirs").format == "reasoneval"


def test_a_missing_shard_and_a_damaged_index_are_named(tmp_path):
    write_reasoneval(tmp_path / "theirs")
    folder = pickled(tmp_path / "theirs", shards=2)
    assert len(pickle_files(folder)) == 2
    (folder / "pytorch_model-00002-of-00002.bin").unlink()
    with refused():
        load_evaluator(folder)
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": 3}))
    with refused():
        load_evaluator(folder)
