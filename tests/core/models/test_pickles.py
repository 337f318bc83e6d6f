import json
import os

import pytest
import torch

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.pickles import pickle_files, read_pickle
from tests.checkpoints import pickled, write_reasoneval
from tests.messages import refused


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
