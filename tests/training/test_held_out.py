import json
import sys

import numpy as np
import pytest

from core.loading import load_evaluator
from tests.checkpoints import write_evaluator
from training import held_out


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("held-out") / "causal"
    return write_evaluator(folder, is_causal=True, max_position_embeddings=2048)


def test_a_causal_evaluator_gains_nothing_from_later_steps(causal):
    measured = held_out.measure(load_evaluator(causal), size=30)
    groups = [measured[name] for name in ("all", "later evidence", "no later evidence")]
    assert groups[0]["traces"] == groups[1]["traces"] + groups[2]["traces"] == 30
    for group in groups:
        assert group["offline - online"] == [0, 0, 0]
        value, low, high = group["online"]
        assert low <= value <= high


def test_an_evaluator_that_knows_the_gold_is_perfect_offline():
    # Two traces: validities right offline; online the first has them the wrong way round.
    right, wrong = np.array([0.9, 0.1]), np.array([0.1, 0.9])
    gold = np.array([True, False])
    pairs = [(wrong, right, gold), (right, right, gold)]
    # Online pairs (valid, invalid): (.1, .9), (.1, .1) tie, (.9, .9) tie, (.9, .1): (0 + .5 + .5 + 1) / 4.
    assert held_out._aucs(pairs) == (0.5, 1.0, 0.5)


def test_the_command_prints_json(causal, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["held_out", str(causal), "--size", "8"])
    held_out.main()
    assert json.loads(capsys.readouterr().out)["traces"] == 8


def test_an_evaluator_that_is_not_there_is_a_mistake_of_use(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["held_out", "nowhere"])
    with pytest.raises(SystemExit, match="2"):
        held_out.main()
    assert "there is no evaluator 'nowhere'" in capsys.readouterr().err
