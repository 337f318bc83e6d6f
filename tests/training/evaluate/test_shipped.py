"""Figures of shipped evaluators: on held-out synthetic traces, on the gallery, and as their folders state them."""

import json
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from stepsight.core.evaluators.conclusion import conclude
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.files.jsonl import parse_trace, read_file
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.models.location import shipped_evaluators, shipped_folder
from stepsight.core.scores import Hindsight
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.training.evaluate import shipped
from stepsight.training.evaluate.strength import (
    CLEAN,
    CLEARED,
    EXPOSED,
    VISIBLE,
    opinion_of,
    read_card,
    read_gallery,
)
from stepsight.training.synth.corpus import HELD_OUT
from tests.checkpoints import write_evaluator


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shipped") / "causal"
    return write_evaluator(folder, is_causal=True, max_position_embeddings=2048)


def triangle(rows):
    """A judgment's triangle from validities: row j holds those of steps 0 to j."""
    return Hindsight(tuple(np.array([[1 - v, 0, v] for v in row], np.float32) for row in rows))


def judgment(labels, rows):
    trace = Trace.of("q", [f"s{i}" for i in range(len(labels))], labels)
    return Judgment(trace, Mode.HINDSIGHT, triangle(rows))


def test_a_causal_evaluator_gains_nothing_from_later_steps(causal):
    measured = shipped.measure_held_out(load_evaluator(causal), size=40)
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
    assert {t.meta["family"] for t in shipped._SETS["families never trained on"](1, 60)} <= set(HELD_OUT)
    assert not {t.meta["family"] for t in shipped._SETS["fresh seed"](1, 60)} & set(HELD_OUT)


def test_later_steps_that_put_a_verdict_right():
    # Valid, then wrong. The verdict on the first step is put right by the second, itself not seen for what it is.
    turned = judgment(["pos", "neg"], [[0.1], [0.9, 0.9]])
    known = judgment(["pos", "neg"], [[0.9], [0.9, 0.1]])
    compared = shipped.compare_modes([turned, known])
    # Online pairs (valid, wrong): (.1, .9) lost, (.1, .1) tie, (.9, .9) tie, (.9, .1) won: (0 + .5 + .5 + 1) / 4.
    assert compared["online"]["step_auc"][0] == 0.5
    # Offline (.9, .9), (.9, .1), (.9, .9), (.9, .1): (.5 + 1 + .5 + 1) / 4.
    assert compared["offline"]["step_auc"][0] == 0.75
    assert compared["offline - online"]["step_auc"][0] == 0.25


def test_endings_are_counted_on_right_traces_but_for_their_last_steps():
    # Of the steps before the last, one of two is called wrong when the trace ends there, none with the rest there.
    right = judgment(["pos", "pos", "pos"], [[0.4], [0.9, 0.8], [0.9, 0.9, 0.1]])
    wrong = judgment(["pos", "neg"], [[0.1], [0.1, 0.1]])
    found = shipped.endings([right, wrong])
    assert found["traces"] == 1
    assert (found["cut"][0], found["whole"][0], found["cut - whole"][0]) == (0.5, 0.0, 0.5)
    # Of two traces with the same share every resample has it; one alone has no interval.
    assert found["cut"][1:] == [None, None]
    assert shipped.endings([right, right])["cut"] == [0.5, 0.5, 0.5]


def test_without_a_right_trace_there_is_no_rate():
    wrong = judgment(["pos", "neg"], [[0.1], [0.1, 0.1]])
    assert shipped.endings([wrong])["cut"] == [None, None, None]


def judged(online, offline, labels, kind=EXPOSED, focus=0, evidence=None):
    """A judgment by its validities in both modes; between them, after each later step, they are as online."""
    n = len(labels)
    meta = {"kind": kind, "focus": focus, "evidence": evidence}
    rows = [(offline if j == n - 1 else online)[: j + 1] for j in range(n)]
    trace = Trace.of("q", [f"Step {i}." for i in range(n)], labels, id="t", meta=meta)
    return Judgment(trace, Mode.HINDSIGHT, triangle(rows))


def row_of(judgment):
    return shipped.trace_row(judgment, shipped.judged_steps([judgment], 0.5))


def test_an_error_crosses_where_it_is_valid_online_and_invalid_offline():
    labels = ["pos", "neg", "pos"]
    crosses = judged([0.9, 0.5, 0.8], [0.9, 0.49, 0.8], labels, focus=1, evidence=2)
    seen_at_once = judged([0.9, 0.4, 0.8], [0.9, 0.1, 0.8], labels, focus=1, evidence=2)
    never_seen = judged([0.9, 0.7, 0.8], [0.9, 0.6, 0.8], labels, focus=1, evidence=2)
    assert [row_of(item)["crossed"] for item in (crosses, seen_at_once, never_seen)] == [True, False, False]
    assert (row_of(crosses)["step"], row_of(crosses)["evidence"]) == (2, 3)
    assert shipped.judged_steps([crosses], 0.5)["distance"].tolist() == [1, 1, 1]


def test_correct_steps_called_wrong_are_counted_of_those_that_gold_calls_correct():
    item = judged([0.4, 0.4, 0.1, 0.8], [0.4, 0.6, 0.1, 0.1], ["pos", "neg", None, "neu"], focus=1)
    # Steps 1 and 4 count: online step 1 is called wrong, offline both. The last step has one verdict only.
    assert row_of(item)["called wrong"] == [2, 2]
    item = judged([0.4, 0.9, 0.8], [0.6, 0.3, 0.8], ["pos", "pos", "pos"], kind=CLEARED)
    assert row_of(item)["called wrong"] == [1, 1]


def test_a_share_adds_up_traces_and_its_interval_draws_them():
    steps = shipped.judged_steps(
        [judged([v, 0.9], [v, 0.9], ["pos", "pos"], kind=CLEAN, focus=None) for v in (0.1, 0.9, 0.9, 0.9)], 0.5
    )
    # One of the eight steps is called wrong; a draw of four traces finds it 0 to 4 times, so at most 4 of 8.
    share = shipped.share_of(steps["trace"], ~steps["offline"])
    assert (share["count"], share["of"]) == (1, 8)
    value, low, high = share["share"]
    assert value == 0.125
    assert low == 0
    assert 0.125 < high <= 0.5
    # A trace without such steps may be drawn all the same.
    first = steps[steps["trace"] == 0]
    assert shipped.share_of(first["trace"], ~first["offline"], steps["trace"])["share"] == [0.5, None, None]


def test_a_share_of_nothing_has_no_value():
    none = shipped.judged_steps([judged([0.9], [0.9], ["pos"])], 0.5)[:0]
    assert shipped.share_of(none["trace"], none["online"]) == {"count": 0, "of": 0, "share": None}


def test_a_causal_evaluator_crosses_nowhere(causal):
    measured = shipped.measure_gallery(load_evaluator(causal))
    exposed = measured[EXPOSED]
    assert exposed["crossed"]["count"] == 0
    assert exposed["crossed"]["of"] == exposed["valid online"]["of"] >= 12
    apart = [exposed[f"crossed, evidence {where}"]["of"] for where in ("in the next step", "further on")]
    assert sum(apart) == exposed["crossed"]["of"]
    assert min(apart) > 0
    assert measured["called wrong"]["online"] == measured["called wrong"]["offline"]
    counts = [exposed["crossed"], measured[CLEARED]["cleared"], measured[VISIBLE]["found"]]
    rows = measured["traces"]
    assert [row["id"] for row in rows] == [trace.id for trace in read_gallery()]
    assert sum(count["of"] for count in counts) == sum(row["step"] is not None for row in rows)
    for row in rows:
        assert row["online"] == row["offline"]


def test_the_command_prints_json(causal, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["shipped", str(causal), "--size", "8"])
    shipped.main()
    figures = json.loads(capsys.readouterr().out)
    assert (figures["gallery"]["threshold"], figures["held out"]["traces"]) == (0.5, 8)


@pytest.mark.parametrize(("context", "message"), [(None, "there is no evaluator"), (64, "tokens")])
def test_an_unmeasurable_evaluator_is_a_user_error(tmp_path, capsys, monkeypatch, context, message):
    """No evaluator, and one that cannot read a trace of the gallery."""
    folder = tmp_path / "short"
    if context:
        write_evaluator(folder, max_position_embeddings=context)
    monkeypatch.setattr(sys, "argv", ["shipped", str(folder)])
    with pytest.raises(SystemExit, match="2"):
        shipped.main()
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("name", shipped_evaluators())
def test_stated_figures_are_those_of_the_model_card(name):
    text, strength = (shipped_folder(name) / "README.md").read_text(), read_card(name)
    rows = re.findall(
        r"^\| ([\w-]+) \| (?:offline|online) \|.* \[([-+][\d.]+), [-+][\d.]+\] \|$", text, re.MULTILINE
    )
    # The offline figure of a dataset comes before the online one, and is the one that counts.
    assert strength.clears == {dataset: float(low) > 0 for dataset, low in reversed(rows)}
    assert "{} of {} first errors that a later step exposes".format(*strength.exposed) in " ".join(text.split())
    assert "{} of {} errors visible at once found".format(*strength.visible) in text
    # They are also those of its copies with other weights or another reading.
    assert all(read_card(f"{name}{more}") == strength for more in (" (bfloat16)", ", read in both orders"))
    assert read_card(f"my-{name}") != strength


FILE = Path(__file__).with_name("own_solutions.jsonl")


@pytest.fixture(scope="module")
def concluded():
    scorer = Scorer(load_evaluator("mini-bidir"))
    traces = [parse_trace(row, "own solutions") for _, row in read_file(FILE)]
    evaluator = scorer.evaluator
    return [
        (trace, conclude(trace, [opinion_of(evaluator.name, evaluator.outputs, evaluator.thresholds, [judgment])]))
        for trace, judgment in zip(traces, scorer.score(traces, Mode.HINDSIGHT), strict=True)
    ]


def of_kind(concluded, kind):
    return [(trace, sentence) for trace, sentence in concluded if trace.meta["kind"] == kind]


def test_half_of_them_are_wrong(concluded):
    assert Counter(trace.meta["kind"] for trace, _ in concluded) == {"right": 20, "arithmetic": 14, "set-up": 6}


def test_no_step_of_a_right_solution_is_accused(concluded):
    assert not [sentence.text for _, sentence in of_kind(concluded, "right") if sentence.accuses]


def test_an_error_of_arithmetic_is_named_first(concluded):
    for trace, sentence in of_kind(concluded, "arithmetic"):
        assert sentence.text.startswith(f"Step {trace.first_error + 1} is wrong: ")


def test_an_error_in_the_set_up_that_is_not_seen_is_not_talked_away(concluded):
    for trace, sentence in of_kind(concluded, "set-up"):
        assert "mini-bidir, a demonstration, blames step" in sentence.text or sentence.text == (
            "No step is called wrong. mini-bidir is a demonstration and misses many errors."
        ), trace.id
