"""The forward pass for decoders, apart from its numbers, which test_scorer checks."""

import threading

import numpy as np
import pytest
import torch

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models import network
from stepsight.core.models.network import Layer
from stepsight.core.scoring.forward import PaddedForward
from stepsight.core.scoring.packed import PackedForward
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import write_evaluator, write_reasoneval


def threads_of_a_new_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]


def test_other_threads_keep_their_count(tmp_path):
    evaluator = load_evaluator(write_evaluator(tmp_path / "tiny"))
    before = torch.get_num_threads(), threads_of_a_new_thread()
    Scorer(evaluator, PackedForward(evaluator.model, workers=2)).score_one(Trace.of("q", ["a", "b"]))
    assert (torch.get_num_threads(), threads_of_a_new_thread()) == before


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_long_inputs_are_computed_in_blocks_of_rows(tmp_path, monkeypatch, layers):
    evaluator = load_evaluator(write_evaluator(tmp_path / "tiny", layers=layers))
    scorer = Scorer(evaluator, PackedForward(evaluator.model, token_budget=64, workers=1))
    trace = Trace.of("q" * 60, ["a" * 50, "b" * 40, "c" * 50])
    whole = scorer.score_one(trace).hindsight.packed
    rows, finish = [], Layer.finish
    monkeypatch.setattr(network, "_BLOCK", 64)
    monkeypatch.setattr(network, "_WHOLE", 64)
    monkeypatch.setattr(
        Layer, "finish", lambda self, attended, states: rows.append(len(states)) or finish(self, attended, states)
    )
    np.testing.assert_array_equal(scorer.score_one(trace).hindsight.packed, whole)
    # Of the last layer no more than what is read, which is padded.
    assert set(rows) == {64}
    assert (len(rows) > 4) == (layers > 1)


@pytest.mark.parametrize("kind", [PackedForward, PaddedForward])
def test_the_masks_of_a_window_are_as_wide_as_the_window(tmp_path, monkeypatch, kind):
    write_reasoneval(tmp_path / "tiny", sliding_window=9)
    evaluator = load_evaluator(tmp_path / "tiny")
    scorer = Scorer(evaluator, kind(evaluator.model))
    trace = Trace.of("What is 2 + 3? " * 3, ["2 + 3 = 5. " * 4, "So the answer is 5. " * 4, "Check: 5 - 3 = 2."])
    whole, left_out = scorer.score_one(trace).offline.probs, scorer.leave_one_out(trace).rows()
    masks, attention = [], network._attention

    def measured(query, key, value, mask, **options):
        masks.append((query.shape[2], key.shape[2], mask is not None))
        return attention(query, key, value, mask, **options)

    monkeypatch.setattr(network, "_BLOCK", 8)
    monkeypatch.setattr(network, "_WHOLE", 8)
    monkeypatch.setattr(network, "_attention", measured)
    again = Scorer(evaluator, kind(evaluator.model))
    np.testing.assert_allclose(again.score_one(trace).offline.probs, whole, atol=1e-6)
    assert len(evaluator.encode(trace)) > 80
    # Eight queries in a row see 9 + 7 keys, and those before them up to the beginning of a block.
    assert max(keys for queries, keys, _ in masks if queries == 8) <= 9 + 7 + 7
    for place, rows in again.leave_one_out(trace).rows().items():
        np.testing.assert_allclose(rows, left_out[place], atol=1e-6)
    assert max(queries for queries, _, _ in masks) == 8
    assert all(is_masked for _, _, is_masked in masks)


def test_small_models_in_float32_are_prepared_and_others_run_as_they_lie(tmp_path):
    model = load_evaluator(write_evaluator(tmp_path / "tiny")).model
    assert PackedForward(model).is_prepared
    half = load_evaluator(tmp_path / "tiny", dtype="bfloat16").model
    assert not PackedForward(half).is_prepared


def test_a_network_of_transformers_is_computed_on_its_own_weights(tmp_path):
    evaluator = load_evaluator(write_evaluator(tmp_path / "tiny"))
    theirs = load_evaluator(tmp_path / "tiny", device_map={"": "cpu"}).model
    traces = [Trace.of("q", ["a", "b"])]
    ours, other = (list(Scorer(evaluator, PackedForward(one)).score(traces)) for one in (evaluator.model, theirs))
    np.testing.assert_array_equal(ours[0].result.probs, other[0].result.probs)
    theirs.config.attention_bias = True
    assert not PackedForward.supports(theirs)
    theirs.config.attention_bias = False
    # Of large ones, and in other types, there is no copy.
    assert not PackedForward.supports(theirs.half())
