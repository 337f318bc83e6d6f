"""What the CPU's forward pass does beside computing (test_scorer checks the numbers)."""

import threading

import numpy as np
import pytest
import torch

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scoring import cpu
from stepsight.core.scoring.cpu import CpuForward
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import write_evaluator


def threads_of_a_new_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]


def test_other_threads_keep_their_count(tmp_path):
    evaluator = load_evaluator(write_evaluator(tmp_path / "tiny"))
    before = torch.get_num_threads(), threads_of_a_new_thread()
    Scorer(evaluator, CpuForward(evaluator.model, workers=2)).score_one(Trace.of("q", ["a", "b"]))
    assert (torch.get_num_threads(), threads_of_a_new_thread()) == before


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_long_prefixes_are_computed_in_blocks_of_rows(tmp_path, monkeypatch, layers):
    evaluator = load_evaluator(write_evaluator(tmp_path / "tiny", layers=layers))
    trace = Trace.of("q" * 60, ["a" * 50, "b" * 40, "c" * 50])
    whole = (
        Scorer(evaluator, CpuForward(evaluator.model, token_budget=64, workers=1)).score_one(trace).hindsight.packed
    )
    rows, advance = [], CpuForward._mlp
    monkeypatch.setattr(cpu, "_BLOCK", 64)
    monkeypatch.setattr(
        CpuForward, "_mlp", lambda self, states, layer: rows.append(len(states)) or advance(self, states, layer)
    )
    blocks = (
        Scorer(evaluator, CpuForward(evaluator.model, token_budget=64, workers=1)).score_one(trace).hindsight.packed
    )
    np.testing.assert_array_equal(blocks, whole)
    # Of the last layer no more than what is read, which is padded.
    assert set(rows) == {64}
    assert (len(rows) > 4) == (layers > 1)


def test_other_layers_are_left_to_transformers(tmp_path):
    model = load_evaluator(write_evaluator(tmp_path / "tiny")).model
    assert CpuForward.supports(model)
    model.config.attention_bias = True
    assert not CpuForward.supports(model)
    model.config.attention_bias = False
    assert not CpuForward.supports(model.half())
