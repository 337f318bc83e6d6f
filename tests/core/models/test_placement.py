import json
import os
import platform
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModel, ElectraConfig, LlamaConfig

from stepsight.core.evaluator_summary import Reading
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models import kernels, memory
from stepsight.core.models.checkpoint_resolver import (
    evaluator_folder,
    open_checkpoint,
    resolve_placement,
    stored_dtype,
)
from stepsight.core.models.devices import check_placement, torch_dtype
from stepsight.core.models.location import shipped_evaluators
from stepsight.core.models.memory import check_memory, free_memory, needed_memory, total_memory
from stepsight.core.models.placement import (
    DTYPES,
    SPREADS,
    STORED,
    Placement,
    computed_dtype,
    typed_name,
    untyped_name,
)
from stepsight.core.models.pretrained import check_split
from stepsight.core.scoring.scorer import Scorer
from stepsight.training.evaluate.strength import read_gallery
from tests.cases import each
from tests.checkpoints import pickled, write_evaluator, write_reasoneval, write_shards
from tests.core.formats.by_hand import TRACES
from tests.messages import refused

GPUS = torch.cuda.device_count()
SMALL = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}


def judged(evaluator, traces=TRACES):
    return np.concatenate([one.hindsight.packed for one in Scorer(evaluator).score(traces, "hindsight")])


def test_auto_is_a_gpu_if_there_is_one():
    assert check_placement(Placement("auto")).device == ("cuda" if GPUS else "cpu")
    assert check_placement(Placement(device_map="auto")) == Placement(device_map="auto")


@each(
    "place",
    [
        Placement("cuda:77"),
        Placement(device_map="cuda:77"),
        Placement(device_map={"layers": "cpu", "norm": 77}),
        # Kinds of device that there are not, and types that no device computes in.
        *map(Placement, ("gpu", "cuda:x", "cpu,cuda")),
        *(Placement(dtype=dtype) for dtype in ("float8_e4m3fn", "int64", "float")),
    ],
)
def test_a_placement_that_this_machine_does_not_have_is_refused(place):
    with refused():
        check_placement(place)


@pytest.mark.parametrize("count", [1, 3])
def test_the_gpus_that_are_there_are_named(monkeypatch, count):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    with refused():
        check_placement(Placement(f"cuda:{count}"))


@pytest.mark.parametrize("device_map", SPREADS)
def test_a_network_whose_parts_are_not_known_is_not_spread(device_map):
    place = Placement(device_map=device_map)
    with refused():
        check_split(place, AutoModel.from_config(ElectraConfig(**SMALL)))
    check_split(
        place, AutoModel.from_config(LlamaConfig(**SMALL, pad_token_id=None, bos_token_id=None, eos_token_id=None))
    )
    # On one device nothing is taken apart.
    check_split(Placement(device_map="cpu"), AutoModel.from_config(ElectraConfig(**SMALL)))


def test_a_device_map_that_leaves_parts_out_is_refused_before_weights_are_read(tmp_path):
    write_reasoneval(tmp_path)
    with refused():
        load_evaluator(tmp_path, device_map={"embed_tokens": "cpu", "layers.0": "cpu", "norm": "cpu"})


def test_on_one_device_a_device_map_changes_nothing(tmp_path):
    for write, folder in ((write_evaluator, tmp_path / "own"), (write_reasoneval, tmp_path / "theirs")):
        write(folder)
        plain = load_evaluator(folder)
        for device_map in ("cpu", {"": "cpu"}):
            mapped = load_evaluator(folder, device_map=device_map)
            assert (mapped.name, mapped.fingerprint) == (plain.name, plain.fingerprint)
            np.testing.assert_allclose(judged(mapped), judged(plain), atol=1e-6)


def test_scores_in_another_type_are_those_of_another_evaluator(tmp_path):
    folder = write_evaluator(tmp_path / "own")
    found = {name: load_evaluator(folder, dtype=torch_dtype(name)) for name in DTYPES}
    assert [one.name for one in found.values()] == ["own", "own (bfloat16)", "own (float16)"]
    assert len({one.fingerprint for one in found.values()}) == 3
    assert found["float32"].fingerprint == load_evaluator(folder).fingerprint
    for name, evaluator in found.items():
        assert evaluator.dtype == name
        assert {weight.dtype for weight in evaluator.model.parameters()} == {torch_dtype(name)}
        assert typed_name("own", evaluator.dtype) == evaluator.name


@pytest.mark.parametrize("reading", [Reading(), Reading("both-orders", window=512)], ids=["own", "reread"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bare", ["own", "own (float32)", "own (bfloat16)"])
def test_a_name_without_its_type_is_the_evaluators_own(bare, dtype, reading):
    """Also where a folder is called like the type of weights."""
    assert untyped_name(f"{typed_name(bare, dtype)}{reading}", dtype, reading) == f"{bare}{reading}"


def test_scores_in_another_type_are_close():
    """float16 keeps 11 bits of a number and bfloat16 8, so that a rounding is off by 2 ** -11 of it at most, or by
    8 times as much, 2 ** -8. On their way to a probability, in a trained network, a few of them add up."""
    traces = read_gallery()[:3]
    exact = judged(load_evaluator("mini-bidir"), traces)
    apart = {
        dtype: np.abs(judged(load_evaluator("mini-bidir", dtype=dtype), traces) - exact)
        for dtype in ("bfloat16", "float16")
    }
    assert 0 < apart["float16"].max() < 4 * 2**-11
    assert 0 < apart["bfloat16"].max() < 4 * 2**-8
    assert np.median(apart["bfloat16"]) > 3 * np.median(apart["float16"])


@pytest.mark.skipif(GPUS == 0, reason="there is no GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:0", "auto"])
def test_on_a_gpu_the_scores_are_the_same(tmp_path, device):
    for write, folder in ((write_evaluator, tmp_path / "own"), (write_reasoneval, tmp_path / "theirs")):
        write(folder)
        there, here = load_evaluator(folder, device=device), load_evaluator(folder)
        assert {weight.device.type for weight in there.model.parameters()} == {"cuda"}
        assert there.fingerprint == here.fingerprint
        np.testing.assert_allclose(judged(there), judged(here), atol=1e-5)


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


def test_an_evaluator_takes_its_weights_a_share_and_some_more():
    # 7 billion parameters of 2 bytes, times 1.15, and 0.3 GB.
    assert needed_memory(7_000_000_000, "bfloat16") == 16_400_000_000
    assert needed_memory(7_000_000_000, "float32") == 32_500_000_000


def test_free_memory_is_a_part_of_the_whole():
    assert 10_000_000 < free_memory() <= total_memory()


def test_the_limit_of_a_container_counts_and_its_cached_files_are_free(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    (tmp_path / "memory.max").write_text("50000000\n")
    assert total_memory() == 50_000_000
    (tmp_path / "memory.current").write_text("30000000\n")
    (tmp_path / "memory.stat").write_text("anon 20000000\nactive_file 1000000\ninactive_file 4000000\n")
    assert free_memory() == 25_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert total_memory() > 50_000_000


def test_too_little_memory_is_reported_with_both_sizes_and_a_hint(monkeypatch):
    monkeypatch.setattr(memory, "total_memory", lambda: 8_000_000_000)
    monkeypatch.setattr(memory, "free_memory", lambda: 2_000_000_000)
    check_memory("a", 2_000_000_000)
    with refused():
        check_memory("a", 3_000_000_000)
    check_memory("a", 3_000_000_000, whole=True)
    with refused():
        check_memory("a", 16_400_000_000, whole=True)
    # Where the system does not tell, nothing is refused.
    monkeypatch.setattr(memory, "total_memory", lambda: None)
    check_memory("a", 10**15, whole=True)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries keep nothing")
def test_freed_memory_is_returned():
    def held():
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    blocks = [bytes(2000) for _ in range(50_000)]
    # The library gives back by itself what nothing in use lies above.
    above = bytes(2000)
    del blocks
    before = held()
    memory.release_memory()
    assert before - held() > 50_000_000
    assert above
