import numpy as np
import pytest
import torch
from transformers import AutoModel, ElectraConfig, LlamaConfig

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.devices import check_placement, torch_dtype
from stepsight.core.models.placement import DTYPES, SPREADS, Placement, typed_name
from stepsight.core.models.pretrained import check_split
from stepsight.core.scoring.scorer import Scorer
from stepsight.training.evaluate.gallery import read_gallery
from tests.checkpoints import write_evaluator, write_reasoneval
from tests.core.formats.by_hand import TRACES
from tests.messages import refused

GPUS = torch.cuda.device_count()
SMALL = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}


def judged(evaluator, traces=TRACES):
    return np.concatenate([one.hindsight.packed for one in Scorer(evaluator).score(traces, "hindsight")])


def test_auto_is_a_gpu_if_there_is_one():
    assert check_placement(Placement("auto")).device == ("cuda" if GPUS else "cpu")
    assert check_placement(Placement(device_map="auto")) == Placement(device_map="auto")


@pytest.mark.parametrize(
    "place",
    [Placement("cuda:77"), Placement(device_map="cuda:77"), Placement(device_map={"layers": "cpu", "norm": 77})],
)
def test_a_device_that_is_not_there_is_named(place):
    with refused():
        check_placement(place)


@pytest.mark.parametrize("count", [1, 3])
def test_the_gpus_that_are_there_are_named(monkeypatch, count):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    with refused():
        check_placement(Placement(f"cuda:{count}"))


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cpu,cuda"])
def test_a_kind_of_device_that_there_is_not(name):
    with refused():
        check_placement(Placement(name))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "int64", "float"])
def test_a_type_that_the_device_cannot_compute_in_is_refused(dtype):
    with refused():
        check_placement(Placement(dtype=dtype))


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
