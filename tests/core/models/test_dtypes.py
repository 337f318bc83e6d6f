"""The type in which weights are computed: the one asked for, else the stored one if the processor computes it
well."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models import kernels
from stepsight.core.models.checkpoint_resolver import (
    evaluator_folder,
    open_checkpoint,
    resolve_placement,
    stored_dtype,
)
from stepsight.core.models.location import shipped_evaluators
from stepsight.core.models.placement import STORED, Placement, computed_dtype
from tests.checkpoints import pickled, write_evaluator, write_reasoneval, write_shards
from tests.messages import refused

HERE, GPU = Placement(), Placement("cuda")


@pytest.fixture(params=[True, False], ids=["able", "unable"])
def able(request, monkeypatch):
    """True if the processor has instructions for types of 16 bits."""
    monkeypatch.setattr(kernels, "is_native", lambda dtype: request.param)
    return request.param


def stored_in(folder, dtype, *, config=None):
    """The evaluator of a folder with its weights written in that type."""
    tensors = {name: tensor.to(dtype) for name, tensor in load_file(folder / "model.safetensors").items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    values = json.loads((folder / "config.json").read_text())
    values.pop("torch_dtype", None)
    values["dtype"] = config or str(dtype).removeprefix("torch.")
    (folder / "config.json").write_text(json.dumps(values))
    return folder


@pytest.fixture
def theirs(tmp_path):
    write_reasoneval(tmp_path / "prm")
    return stored_in(tmp_path / "prm", torch.bfloat16)


def test_the_rule(able):
    assert computed_dtype("float32", HERE) == "float32"
    for stored in ("bfloat16", "float16"):
        assert computed_dtype(stored, HERE) == (stored if able else "float32")
        assert computed_dtype(stored, GPU) == stored
        assert computed_dtype(stored, Placement(device_map="auto")) == stored
    for stored in ("float64", "F8_E4M3", "int8"):
        assert computed_dtype(stored, HERE) == "float32"


def test_the_stored_type_is_that_of_the_tensors(theirs):
    assert stored_dtype(open_checkpoint(theirs)) == "bfloat16"
    # A config that says what no tensor has.
    assert stored_dtype(open_checkpoint(stored_in(theirs, torch.float16, config="bfloat16"))) == "float16"
    # Some tensors differ: what the config says of the others counts.
    tensors = load_file(theirs / "model.safetensors")
    (theirs / "model.safetensors").unlink()
    mixed = {name: tensor.float() if "mlp" in name else tensor.bfloat16() for name, tensor in tensors.items()}
    write_shards(theirs, mixed)
    assert stored_dtype(open_checkpoint(theirs)) == "bfloat16"


def test_the_type_of_pickles_is_that_of_their_tensors(theirs, able):
    pickled(theirs)
    assert stored_dtype(open_checkpoint(theirs)) == "bfloat16"
    expected = "bfloat16" if able else "float32"
    assert resolve_placement(HERE, open_checkpoint(theirs)).dtype == load_evaluator(theirs).dtype == expected


def test_an_evaluator_is_loaded_in_its_stored_type_if_that_is_computed_well(theirs, able):
    evaluator = load_evaluator(theirs)
    expected = "bfloat16" if able else "float32"
    assert evaluator.dtype == resolve_placement(HERE, open_checkpoint(theirs)).dtype == expected
    assert evaluator.name == ("prm (bfloat16)" if able else "prm")
    assert evaluator.fingerprint == load_evaluator(theirs, dtype=expected).fingerprint


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_a_type_that_is_asked_for_wins(theirs, able, dtype):
    assert resolve_placement(Placement(dtype=dtype), open_checkpoint(theirs)).dtype == dtype
    assert load_evaluator(theirs, dtype=dtype).dtype == dtype


def test_the_shipped_pair_is_stored_in_float16_and_computed_in_float32(able):
    for name in shipped_evaluators():
        assert stored_dtype(open_checkpoint(evaluator_folder(name))) == "float16"
        evaluator = load_evaluator(name)
        assert (evaluator.dtype, evaluator.name) == ("float32", name)


def test_the_card_may_name_the_type(tmp_path, able):
    folder = write_evaluator(tmp_path / "ours")
    card = json.loads((folder / "stepsight.json").read_text())
    (folder / "stepsight.json").write_text(json.dumps(card | {"dtype": "bfloat16"}))
    assert load_evaluator(folder).name == "ours (bfloat16)"
    (folder / "stepsight.json").write_text(json.dumps(card | {"dtype": "int4"}))
    with refused():
        load_evaluator(folder)


def test_a_resolved_placement_keeps_its_device(theirs):
    place = Placement("cuda:1", STORED, {"": "cuda:1"})
    assert resolve_placement(place, open_checkpoint(theirs)) == Placement("cuda:1", "bfloat16", {"": "cuda:1"})
