"""Prefixes kept for a causal backbone against reading the whole."""

import numpy as np
import pytest
import torch
from transformers import AutoModel, LlamaConfig

from stepsight.core.scoring.kv_cache import Prefix, Prefixes, can_continue, shared
from tests.checkpoints import TOKEN_CLASSIFIERS, random_model

SIZES = {
    "vocab_size": 50, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 64,
}  # fmt: skip


@pytest.fixture
def backbone():
    return random_model({"model_type": "llama", **SIZES})


@torch.inference_mode()
def whole(backbone, ids):
    return backbone(input_ids=torch.tensor([ids]))[0][0].numpy()


def ids(*tokens):
    return np.array(tokens, np.int64)


def test_shared_first_tokens_are_counted():
    assert shared([ids(1, 2, 3), ids(1, 2, 4, 5), ids(1, 2)]) == 2
    assert shared([ids(1, 2), ids(3, 2)]) == 0
    assert shared([ids(1, 2, 3)]) == 3
    assert shared([ids(), ids(1)]) == 0


def test_hidden_states_after_a_prefix_are_those_of_the_whole(backbone):
    prefixes = Prefixes(backbone)
    for beginning in ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 9], [], [8]):
        prefix = prefixes.find(ids(*beginning))
        assert prefix.ids.tolist() == beginning
        hidden = prefixes.after(prefix, np.array([[11, 12, 13], [14, 0, 0]])).numpy()
        np.testing.assert_allclose(hidden[0], whole(backbone, [*beginning, 11, 12, 13])[-3:], atol=1e-5)
        # Padding to the right changes nothing before it.
        np.testing.assert_allclose(hidden[1, 0], whole(backbone, [*beginning, 14])[-1], atol=1e-5)


def test_a_prefix_cut_short_is_the_shorter_one(backbone):
    long = Prefixes(backbone).find(ids(1, 2, 3, 4))
    cut = long.first(2)
    assert cut.ids.tolist() == [1, 2]
    for (keys, values), (expected, _) in zip(cut.layers, Prefixes(backbone).find(ids(1, 2)).layers, strict=True):
        assert keys.shape[-2] == values.shape[-2] == 2
        torch.testing.assert_close(keys, expected)
    assert long.first(4) is long
    assert long.first(0).layers == ()


def test_the_oldest_prefixes_are_dropped_and_longer_ones_replace_their_beginnings(backbone):
    prefixes = Prefixes(backbone, kept=8)

    def held():
        return [one.ids.tolist() for one in prefixes._prefixes]

    prefixes.find(ids(1, 2))
    prefixes.find(ids(1, 2, 3))
    assert held() == [[1, 2, 3]]
    prefixes.find(ids(4, 5, 6))
    prefixes.find(ids(1, 2))
    # Asking for a beginning of it makes it the last that was asked for.
    assert held() == [[4, 5, 6], [1, 2, 3]]
    prefixes.find(ids(1, 2, 9))
    # 3 + 3 + 3 tokens are more than 8.
    assert held() == [[1, 2, 3], [1, 2, 9]]
    # A single one stays, however long.
    prefixes.find(ids(*range(20, 40)))
    assert held() == [list(range(20, 40))]


def test_an_empty_prefix_has_no_layers():
    assert len(Prefix(ids())) == 0


def test_a_backbone_is_tried_out(backbone):
    assert can_continue(backbone)
    # It has no such word, or sees what comes later.
    bert = TOKEN_CLASSIFIERS["bert"] | {"model_type": "bert", "vocab_size": 50, "bos_token_id": None}
    assert not can_continue(random_model(bert))
    assert not can_continue(AutoModel.from_config(LlamaConfig(**SIZES, is_causal=False)).eval())


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_a_rotation_that_depends_on_the_length_is_not_gone_on_from(kind):
    rope = {"rope_type": kind, "rope_theta": 10000.0, "factor": 2.0}
    rope |= {"original_max_position_embeddings": 32, "short_factor": [1.0] * 4, "long_factor": [2.0] * 4}
    assert not can_continue(random_model({"model_type": "llama", **SIZES, "rope_parameters": rope}))
    # Nor in a backbone with rotations by kind of layer.
    backbone = random_model({"model_type": "llama", **SIZES})
    backbone.config.rope_parameters = {"full_attention": {"rope_type": kind}, "sliding_attention": None}
    assert not can_continue(backbone)


def test_a_backbone_with_another_kind_of_memory_is_recognised(backbone, monkeypatch):
    forward = backbone.forward

    def forgetful(input_ids, past_key_values=None, use_cache=None):
        if past_key_values is not None and past_key_values.get_seq_length():
            raise ValueError("this memory is of another kind")
        return forward(input_ids=input_ids, past_key_values=past_key_values, use_cache=use_cache)

    monkeypatch.setattr(backbone, "forward", forgetful)
    assert not can_continue(backbone)
