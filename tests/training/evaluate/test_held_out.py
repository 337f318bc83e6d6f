import json
import sys

import numpy as np
import pytest

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight
from stepsight.core.trace import Trace
from stepsight.training.evaluate import held_out
from stepsight.training.synth.corpus import HELD_OUT
from tests.checkpoints import write_evaluator


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("held-out") / "causal"
    return write_evaluator(folder, is_causal=True, max_position_embeddings=2048)


def triangle(rows):
    """A judgment's triangle from validities: row j holds those of steps 0 to j."""
    return Hindsight(tuple(np.array([[1 - v, 0, v] for v in row], np.float32) for row in rows))


def judgment(labels, rows):
    trace = Trace.of("q", [f"s{i}" for i in range(len(labels))], labels)
    return Judgment(trace, Mode.HINDSIGHT, triangle(rows))


def test_a_causal_evaluator_gains_nothing_from_later_steps(causal):
    measured = held_out.measure(load_evaluator(causal), size=40)
    groups = [measured[name] for name in ("later evidence", "no later evidence")]
    assert measured["fresh seed"]["traces"] == sum(group["traces"] for group in groups) == 40
    for name in ("fresh seed", "families never trained on", "larger numbers"):
        group = measured[name]
        assert group["offline - online"] == {"step_f1": [0, 0, 0], "step_auc": [0, 0, 0]}
        value, low, high = group["online"]["step_auc"]
        assert low <= value <= high
    assert measured["right traces called wrong"]["cut - whole"] == [0, 0, 0]


def test_the_sets_hold_what_their_names_say():
    assert HELD_OUT
    assert {t.meta["family"] for t in held_out._SETS["families never trained on"](1, 60)} <= set(HELD_OUT)
    assert not {t.meta["family"] for t in held_out._SETS["fresh seed"](1, 60)} & set(HELD_OUT)


def test_later_steps_that_put_a_verdict_right():
    # Valid, then wrong. The verdict on the first step is put right by the second, itself not seen for what it is.
    turned = judgment(["pos", "neg"], [[0.1], [0.9, 0.9]])
    known = judgment(["pos", "neg"], [[0.9], [0.9, 0.1]])
    compared = held_out.compare_modes([turned, known])
    # Online pairs (valid, wrong): (.1, .9) lost, (.1, .1) tie, (.9, .9) tie, (.9, .1) won: (0 + .5 + .5 + 1) / 4.
    assert compared["online"]["step_auc"][0] == 0.5
    # Offline (.9, .9), (.9, .1), (.9, .9), (.9, .1): (.5 + 1 + .5 + 1) / 4.
    assert compared["offline"]["step_auc"][0] == 0.75
    assert compared["offline - online"]["step_auc"][0] == 0.25


def test_endings_are_counted_on_right_traces_but_for_their_last_steps():
    # Of the steps before the last, one of two is called wrong when the trace ends there, none with the rest there.
    right = judgment(["pos", "pos", "pos"], [[0.4], [0.9, 0.8], [0.9, 0.9, 0.1]])
    wrong = judgment(["pos", "neg"], [[0.1], [0.1, 0.1]])
    found = held_out.endings([right, wrong])
    assert found["traces"] == 1
    assert (found["cut"][0], found["whole"][0], found["cut - whole"][0]) == (0.5, 0.0, 0.5)
    # Of two traces with the same share every resample has it.
    assert held_out.endings([right, right])["cut"] == [0.5, 0.5, 0.5]


def test_without_a_right_trace_there_is_no_rate():
    wrong = judgment(["pos", "neg"], [[0.1], [0.1, 0.1]])
    assert held_out.endings([wrong])["cut"] == [None, None, None]


def test_the_command_prints_json(causal, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["held_out", str(causal), "--size", "8"])
    held_out.main()
    assert json.loads(capsys.readouterr().out)["traces"] == 8


def test_an_evaluator_that_is_not_there_is_a_mistake_of_use(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["held_out", "nowhere"])
    with pytest.raises(SystemExit, match="2"):
        held_out.main()
    assert "there is no evaluator 'nowhere'" in capsys.readouterr().err
