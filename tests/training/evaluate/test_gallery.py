import json
import sys

import numpy as np
import pytest

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Hindsight
from stepsight.core.trace import Trace
from stepsight.training.evaluate import gallery
from stepsight.training.evaluate.gallery import CLEAN, CLEARED, EXPOSED, VISIBLE
from tests.checkpoints import write_evaluator


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gallery") / "causal"
    return write_evaluator(folder, is_causal=True, max_position_embeddings=2048)


def judged(online, offline, labels, kind=EXPOSED, focus=0, evidence=None):
    """A judged trace by its validities in both modes; between them, after each later step, they are as online."""
    n = len(labels)
    meta = {"kind": kind, "focus": focus, "evidence": evidence}
    rows = [[[1 - v, 0.0, v] for v in (offline if j == n - 1 else online)[: j + 1]] for j in range(n)]
    triangle = Hindsight.from_packed(np.concatenate([np.array(row, np.float32) for row in rows]))
    trace = Trace.of("q", [f"Step {i}." for i in range(n)], labels, id="t", meta=meta)
    return gallery._Judged(Judgment(trace, Mode.HINDSIGHT, triangle), 0.5)


def test_an_error_crosses_where_it_is_valid_online_and_invalid_offline():
    labels = ["pos", "neg", "pos"]
    crosses = judged([0.9, 0.5, 0.8], [0.9, 0.49, 0.8], labels, focus=1, evidence=2)
    seen_at_once = judged([0.9, 0.4, 0.8], [0.9, 0.1, 0.8], labels, focus=1, evidence=2)
    never_seen = judged([0.9, 0.7, 0.8], [0.9, 0.6, 0.8], labels, focus=1, evidence=2)
    assert [item.crossed() for item in (crosses, seen_at_once, never_seen)] == [(1, 1), (0, 1), (0, 1)]
    assert crosses.distance == 1
    assert crosses.row()["crossed"] is True


def test_correct_steps_called_wrong_are_counted_of_those_that_gold_calls_correct():
    item = judged([0.4, 0.4, 0.1, 0.8], [0.4, 0.6, 0.1, 0.1], ["pos", "neg", None, "neu"], focus=1)
    # Steps 1 and 4 count: online step 1 is called wrong, offline both. The last step has one verdict only.
    assert item.called_wrong(item.offline) == (2, 2)
    assert item.row()["called wrong"] == [2, 2]
    item = judged([0.4, 0.9, 0.8], [0.6, 0.3, 0.8], ["pos", "pos", "pos"], kind=CLEARED)
    assert item.row()["called wrong"] == [1, 1]


def test_a_share_adds_up_traces_and_its_interval_draws_them():
    items = [judged([v, 0.9], [v, 0.9], ["pos", "pos"], kind=CLEAN, focus=None) for v in (0.1, 0.9, 0.9, 0.9)]
    # One of the eight steps is called wrong; a draw of four traces finds it 0 to 4 times, so at most 4 of 8.
    share = gallery._share(items, lambda item: item.called_wrong(item.offline))
    assert (share["count"], share["of"]) == (1, 8)
    value, low, high = share["share"]
    assert value == 0.125
    assert low == 0
    assert 0.125 < high <= 0.5


def test_a_share_of_nothing_has_no_value():
    assert gallery._share([], gallery._Judged.crossed) == {"count": 0, "of": 0, "share": None}


def test_a_causal_evaluator_crosses_nowhere(causal):
    measured = gallery.measure(load_evaluator(causal))
    exposed = measured[EXPOSED]
    assert exposed["crossed"]["count"] == 0
    assert exposed["crossed"]["of"] == exposed["valid online"]["of"] >= 12
    apart = [exposed[f"crossed, evidence {where}"]["of"] for where in ("in the next step", "further on")]
    assert sum(apart) == exposed["crossed"]["of"]
    assert min(apart) > 0
    assert measured["called wrong"]["online"] == measured["called wrong"]["offline"]
    counts = [exposed["crossed"], measured[CLEARED]["cleared"], measured[VISIBLE]["found"]]
    rows = measured["traces"]
    assert [row["id"] for row in rows] == [trace.id for trace in gallery.read_gallery()]
    assert sum(count["of"] for count in counts) == sum(row["step"] is not None for row in rows)
    for row in rows:
        assert row["online"] == row["offline"]


def test_the_command_prints_json(causal, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["gallery", str(causal)])
    gallery.main()
    assert json.loads(capsys.readouterr().out)["threshold"] == 0.5


@pytest.mark.parametrize(("context", "message"), [(None, "there is no evaluator"), (64, "tokens")])
def test_an_unmeasurable_evaluator_is_a_user_error(tmp_path, capsys, monkeypatch, context, message):
    """No evaluator, and one that cannot read a trace of the gallery."""
    folder = tmp_path / "short"
    if context:
        write_evaluator(folder, max_position_embeddings=context)
    monkeypatch.setattr(sys, "argv", ["gallery", str(folder)])
    with pytest.raises(SystemExit, match="2"):
        gallery.main()
    assert message in capsys.readouterr().err
