import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.formats.stepsight import HEADS
from stepsight.core.scoring.scorer import Scorer
from tests.cases import each
from tests.checkpoints import write_evaluator
from tests.core.formats.by_hand import TRACES
from tests.messages import refused


@pytest.mark.parametrize("name", HEADS)
def test_a_head_may_go_by_several_names_and_have_a_bias(tmp_path, name):
    write_evaluator(tmp_path)
    plain = Scorer(load_evaluator(tmp_path)).score_one(TRACES[0]).offline
    path = tmp_path / "model.safetensors"
    tensors = load_file(path)
    head = tensors.pop("score.weight")
    save_file(tensors | {name: head}, path, {"format": "pt"})
    same = Scorer(load_evaluator(tmp_path)).score_one(TRACES[0]).offline
    np.testing.assert_array_equal(plain.probs, same.probs)
    # Adding log 2 to the first logit doubles its odds: p / (1 - p) of neg.
    bias = torch.tensor([np.log(2.0), 0, 0], dtype=torch.float32)
    save_file(tensors | {name: head, name.replace("weight", "bias"): bias}, path, {"format": "pt"})
    shifted = Scorer(load_evaluator(tmp_path)).score_one(TRACES[0]).offline
    np.testing.assert_allclose(shifted.neg / (1 - shifted.neg), 2 * plain.neg / (1 - plain.neg), rtol=1e-3)


@each("head", [{"layers": 3}, {"layers": "mixture"}, "first"])
def test_a_head_on_another_layer_is_refused_and_one_on_the_last_may_say_so(tmp_path, head):
    write_evaluator(tmp_path)
    own, path = load_evaluator(tmp_path).fingerprint, tmp_path / "stepsight.json"
    card = json.loads(path.read_text())
    path.write_text(json.dumps(card | {"head": {"layers": "last"}}))
    assert load_evaluator(tmp_path).fingerprint == own
    path.write_text(json.dumps(card | {"head": head}))
    with refused():
        load_evaluator(tmp_path)
