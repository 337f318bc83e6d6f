"""Windows of whole steps, against forward passes over windows that are cut by hand."""

from dataclasses import replace

import numpy as np
import pytest

from stepsight.core.arrays import Floats32
from stepsight.core.evaluator_summary import OWN_READING, Reading, split_reading
from stepsight.core.evaluators.both_orders import read_as
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Mode, StepScore, judgments_of
from stepsight.core.models.evaluator import ModelEvaluator
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import write_evaluator
from tests.core.formats.by_hand import TRACES, check_candidates, check_judgments, check_modes
from tests.core.scoring.test_scorer import plain
from tests.messages import refused

# A character is a token. The problem and what stands around it have 44, each step 10 with its separator. A window
# of 104 has room for six steps.
OPENING, ROOM = 44, 60
STEPS = [f"{i:09}" for i in range(12)]
# The first step in view, the first and the one after the last that are judged, and the one after the last in view.
SEES_LATER = [(0, 0, 4, 6), (2, 4, 6, 8), (4, 6, 8, 10), (6, 8, 10, 12), (8, 10, 12, 12)]
SEES_NONE = [(0, 0, 5, 5), (2, 5, 7, 7), (4, 7, 9, 9), (6, 9, 11, 11), (8, 11, 12, 12)]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder, found = tmp_path_factory.mktemp("evaluators"), {}
    for name in ("bidirectional", "causal"):
        loaded = load_evaluator(write_evaluator(folder / name, is_causal=name == "causal"))
        assert isinstance(loaded, ModelEvaluator)
        found[name] = loaded
    return found


def cut(evaluator, windows, problem, texts):
    """Return the last row of the windows that judge the first `texts`, each read by itself."""
    rows = []
    for start, first, stop, end in windows:
        if first < len(texts):
            seen = Trace.of(problem, texts[start:end])
            rows.append(plain(evaluator, seen)[-1][first - start : min(stop, len(texts)) - start])
    return np.concatenate(rows)


@pytest.mark.parametrize(("name", "windows"), [("bidirectional", SEES_LATER), ("causal", SEES_NONE)])
def test_a_step_is_judged_in_the_window_of_its_block(models, name, windows):
    own = models[name]
    evaluator = own.read_as(Reading(window=OPENING + ROOM))
    traces = [Trace.of("q", STEPS[:n], id="long") for n in (12, 7, 3)]

    def rows(trace: Trace, j: int) -> Floats32:
        return cut(own, windows, "q", trace.substeps[: j + 1])

    check_modes(evaluator, rows, traces, one_pass=False)
    if name == "bidirectional":
        # A judgment step by step has the scores that online has in the end.
        events = list(Scorer(evaluator).stream(traces[:1], Mode.HINDSIGHT))
        known = {event.substep: event.row for event in events if isinstance(event, StepScore)}
        (judged,) = judgments_of(events)
        assert judged.online is not None
        np.testing.assert_allclose([known[i] for i in range(12)], judged.online.probs)


def test_substeps_stay_together_and_a_window_reads_what_stands_before_its_steps(models):
    own = models["bidirectional"]
    evaluator = own.read_as(Reading(window=OPENING + ROOM))
    # Step 4, the first of the second block, has two sub-steps of 5 tokens.
    steps = [*STEPS[:4], ["0004", "0005"], *STEPS[5:8]]
    trace = Trace.of("q", steps)
    bounds = [0, 1, 2, 3, 4, 6, 7, 8, 9]
    windows = [tuple(bounds[i] for i in (a, b, min(c, 8), min(d, 8))) for a, b, c, d in SEES_LATER[:3]]
    check_modes(
        evaluator, lambda trace, j: cut(own, windows, "q", trace.substeps[: j + 1]), [trace], one_pass=False
    )


def test_windows_go_with_both_orders(models):
    own = models["causal"]
    windows = Reading(window=OPENING + ROOM)
    each = Scorer(own.read_as(windows))
    evaluator = read_as(Scorer(own), replace(windows, reading="both-orders")).evaluator

    def rows(trace: Trace, j: int) -> Floats32:
        texts = trace.substeps[: j + 1]
        orders = [each.score_one(Trace.of("q", steps), "offline").offline for steps in (texts, texts[::-1])]
        forward, back = (scores.probs for scores in orders if scores is not None)
        return (forward + back[::-1]) / 2

    trace = Trace.of("q", STEPS)
    check_judgments(Scorer(evaluator), [[rows(trace, j) for j in range(len(STEPS))]], [trace])


@pytest.mark.parametrize(
    ("reading", "suffix"),
    [
        (Reading(window=104), ", read in windows of 104 tokens"),
        (Reading("both-orders", window=104), ", read in both orders, in windows of 104 tokens"),
    ],
)
def test_windows_are_named_with_the_evaluator_and_its_fingerprint(models, reading, suffix):
    own = models["causal"]
    scorer = Scorer(own)
    found, summary = read_as(scorer, reading).evaluator, own.description().read_as(reading)
    assert found.name == summary.name == f"causal{suffix}"
    assert found.fingerprint == summary.fingerprint
    others = [replace(reading, window=90), replace(reading, window=None)]
    assert found.fingerprint not in {read_as(scorer, other).evaluator.fingerprint for other in others}
    assert found.reading == summary.reading == reading
    assert split_reading(found.name) == ("causal", reading)
    assert "windows of at most 104 tokens" in found.reading_note


def test_an_evaluators_own_reading_is_not_named_twice(models):
    own = models["bidirectional"]
    found = own.read_as(Reading(window=104))
    assert found.name == "bidirectional, read in windows of 104 tokens"
    assert found.read_as(Reading(window=104)) is found.read_as(OWN_READING) is found
    assert found.fingerprint == own.description().read_as(Reading(window=104)).fingerprint
    assert split_reading("it, read in windows of 0 tokens") == ("it, read in windows of 0 tokens", OWN_READING)


def test_windows_that_are_too_large_or_too_small_are_refused(models):
    own = models["bidirectional"]
    trace = Trace.of("q", ["a", "b" * 300, "c"], id="long")
    with refused():
        own.read_as(Reading(window=257))
    with refused():
        own.description().read_as(Reading(window=257))
    for size in (256, 10):
        with refused():
            own.read_as(Reading(window=size)).encode(trace)
    with refused():
        own.encode(trace)
    with refused():
        load_evaluator("equations, read in windows of 100 tokens")


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("evaluator") / "causal"
    return load_evaluator(write_evaluator(folder, is_causal=True, max_position_embeddings=400))


def in_both_orders(evaluator, window=None):
    return read_as(Scorer(evaluator), Reading("both-orders", window)).evaluator


def test_in_both_orders_a_step_has_the_mean_of_the_two(causal):
    def rows(trace, j):
        steps = trace.substeps[: j + 1]
        forward, back = (plain(causal, Trace.of(trace.problem, one))[-1] for one in (steps, steps[::-1]))
        return (forward + back[::-1]) / 2

    evaluator = in_both_orders(causal)
    assert evaluator.sees_later_steps
    by_prefix = [[rows(trace, j) for j in range(len(trace.substeps))] for trace in TRACES]
    check_judgments(Scorer(evaluator), by_prefix, TRACES)
    check_candidates(Scorer(evaluator), by_prefix, TRACES)


def test_a_reading_is_asked_for_by_name_and_an_evaluators_own_is_left_as_it_is(tmp_path):
    folder = write_evaluator(tmp_path / "it", is_causal=True)
    named = load_evaluator(f"{folder}, read in both orders")
    assert (named.name, named.attention) == ("it, read in both orders", "causal, read in both orders")
    assert named.read_as(Reading("both-orders")) is named


def test_what_cannot_be_read_in_both_orders_is_named(tmp_path, causal):
    write_evaluator(tmp_path / "bidir")
    for spec in (tmp_path / "bidir", "equations", "vllm:http://localhost:1", "critic:http://localhost:1"):
        with refused():
            load_evaluator(f"{spec}, read in both orders")
    long = Trace.of("q", ["2 " * 120, "3 " * 120], id="long")
    with refused():
        in_both_orders(causal).encode(long)


def test_a_template_that_reads_twice_is_refused(tmp_path):
    folder = write_evaluator(tmp_path / "it", is_causal=True)
    card = folder / "stepsight.json"
    card.write_text(card.read_text().replace('"bos": null', '"bos": null, "reading": "twice"'))
    with refused():
        load_evaluator(folder)
