"""Every way of scoring against the plain one: one input per forward through Transformers' own model."""

import random
from concurrent.futures import CancelledError

import numpy as np
import pytest
import torch

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Mode
from stepsight.core.scoring.forward import PaddedForward
from stepsight.core.scoring.packed import PackedForward
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import write_evaluator
from tests.messages import refused

EXACT = 1e-5


def make_traces(count, seed=0):
    draw = random.Random(seed)
    return [
        Trace.of(
            f"What is {draw.randint(0, 99)} + 3?",
            [
                [f"{draw.randint(0, 9)} + 3 = 5." * draw.randint(1, 4) for _ in range(draw.choice([1, 1, 2]))]
                for _ in range(draw.randint(1, 6))
            ],
            id=str(i),
        )
        for i in range(count)
    ]


@torch.inference_mode()
def plain(evaluator, trace):
    """Separate probabilities of every prefix, shape (j + 1, 3) each, one forward per prefix."""
    encoded = evaluator.encode(trace)
    rows = []
    for j, end in enumerate(encoded.ends):
        ids = torch.from_numpy(encoded.ids[: end + 1])[None]
        out = evaluator.model(ids, torch.ones_like(ids), torch.from_numpy(encoded.ends[: j + 1])[None])
        rows.append(out["logits"][0].softmax(-1).numpy())
    return rows


@pytest.fixture(scope="module", params=["bidirectional", "causal", "one-layer", "grouped"])
def evaluator(request, tmp_path_factory):
    options = {
        "bidirectional": {},
        "causal": {"is_causal": True},
        "one-layer": {"layers": 1},
        "grouped": {"layers": 3, "kv_heads": 2, "is_causal": False},
    }[request.param]
    return load_evaluator(write_evaluator(tmp_path_factory.mktemp("evaluator") / request.param, **options))


@pytest.fixture(params=[PackedForward, PaddedForward])
def scorer(request, evaluator):
    return Scorer(evaluator, request.param(evaluator.model, token_budget=200), window=5)


def test_whole_steps_are_online_the_last_row_offline_and_every_row_its_prefix(scorer):
    traces = make_traces(7)
    hindsight = scorer.score(traces, "hindsight")
    online = scorer.score(traces, "online")
    offline = scorer.score(traces, "offline")
    for trace, h, on, off in zip(traces, hindsight, online, offline, strict=True):
        assert h.trace is trace
        for row, expected in zip(h.hindsight.rows, plain(scorer.evaluator, trace), strict=True):
            np.testing.assert_allclose(row, expected, atol=EXACT)
        # Online a step is read when all its sub-steps are there.
        prefixes = plain(scorer.evaluator, trace)
        wholes = [max(i for i, one in enumerate(trace.owners) if one == owner) for owner in trace.owners]
        expected = [prefixes[whole][i] for i, whole in enumerate(wholes)]
        np.testing.assert_allclose(on.online.probs, expected, atol=EXACT)
        np.testing.assert_allclose(h.online.probs, on.online.probs, atol=EXACT)
        np.testing.assert_allclose(h.offline.probs, off.offline.probs, atol=EXACT)
        assert on.offline is None
        assert off.online is None


@pytest.mark.parametrize("mode", Mode)
def test_a_judgment_shares_no_memory_with_its_batch(scorer, mode):
    for judgment in scorer.score(make_traces(4), mode):
        result = judgment.result
        rows, n = (result.rows, len(result)) if mode == Mode.HINDSIGHT else ([result.probs], len(result))
        whole = rows[-1]
        while whole.base is not None:
            whole = whole.base
        # Three numbers of four bytes each, of a bidirectional triangle for every prefix.
        triangle = mode == Mode.HINDSIGHT and scorer.evaluator.attention == "bidirectional"
        assert whole.nbytes == 12 * (n * (n + 1) // 2 if triangle else n)


def test_causal_columns_are_constant_and_bidirectional_ones_are_not(scorer):
    trace = Trace.of("What is 2 + 3?", ["2 + 3 = 5.", "So 5.", "Check: 5 - 3 = 2."])
    change = np.abs(scorer.score_one(trace).hindsight.retroactive).max()
    assert (change == 0) == (scorer.evaluator.attention == "causal")


def test_batch_composition_does_not_matter(scorer):
    traces = make_traces(9, seed=1)
    together = [judgment.result.packed for judgment in scorer.score(traces, "hindsight")]
    for trace, packed in zip(traces, together, strict=True):
        np.testing.assert_allclose(scorer.score_one(trace).result.packed, packed, atol=EXACT)
    backwards = [judgment.result.packed for judgment in scorer.score(traces[::-1], "hindsight")]
    for first, second in zip(together, backwards[::-1], strict=True):
        np.testing.assert_allclose(first, second, atol=EXACT)


def test_the_stream_is_read_a_window_at_a_time(evaluator):
    read = []

    def stream():
        for trace in make_traces(9):
            read.append(trace.id)
            yield trace

    judgments = Scorer(evaluator, window=4).score(stream(), "offline")
    assert next(judgments).trace.id == "0"
    assert read == ["0", "1", "2", "3"]
    assert [judgment.trace.id for judgment in judgments] == [str(i) for i in range(1, 9)]


class Counting:
    def __init__(self, forward):
        self.forward = forward
        self.lengths = []

    def run(self, inputs, *listeners):
        self.lengths += [item.length for item in inputs]
        return self.forward.run(inputs, *listeners)


def test_a_prefix_is_never_run_twice(tmp_path):
    evaluator = load_evaluator(write_evaluator(tmp_path / "bidir"))
    counting = Counting(PackedForward(evaluator.model))
    steps = ["2 + 3 = 5.", "So 5.", "Check: 5 - 3 = 2.", "Done."]
    # Two branches share the prefixes of two steps; the third is the first again: 2 + 2 + 2 distinct inputs.
    traces = [Trace.of("q", steps), Trace.of("q", [*steps[:2], "No.", "6"]), Trace.of("q", steps)]
    first, second, third = Scorer(evaluator, counting).score(traces, "hindsight")
    assert len(counting.lengths) == 6
    np.testing.assert_array_equal(first.result.packed, third.result.packed)
    np.testing.assert_allclose(first.result.packed[:3], second.result.packed[:3], atol=EXACT)


def test_a_causal_evaluator_runs_each_trace_once(tmp_path):
    evaluator = load_evaluator(write_evaluator(tmp_path / "causal", is_causal=True))
    counting = Counting(PackedForward(evaluator.model))
    list(Scorer(evaluator, counting).score(make_traces(7), "hindsight"))
    assert len(counting.lengths) == 7


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("mode", ["offline", "online", "hindsight"])
def test_the_tokens_of_a_trace_are_those_that_are_run(tmp_path, causal, mode):
    evaluator = load_evaluator(write_evaluator(tmp_path / "it", is_causal=causal))
    counting = Counting(PackedForward(evaluator.model))
    scorer = Scorer(evaluator, counting)
    trace = Trace.of("q", ["2 + 3 = 5.", ["So 5.", "Check: 5 - 3 = 2."], "Done."])
    tokens = scorer.tokens(trace, evaluator.encode(trace), mode)
    scorer.score_one(trace, mode)
    assert tokens == sum(counting.lengths)


@pytest.mark.parametrize(
    ("forward", "dtype"), [(PackedForward, "float32"), (PackedForward, "bfloat16"), (PaddedForward, "float32")]
)
def test_scoring_ends_between_two_batches_when_the_check_raises(tmp_path, forward, dtype):
    """After three batches, of which there are many more."""
    evaluator = load_evaluator(write_evaluator(tmp_path / "it"), dtype=dtype)
    scorer = Scorer(evaluator, forward(evaluator.model, token_budget=64))
    traces = [(trace, evaluator.encode(trace)) for trace in make_traces(1)]
    left = [1, 2, 3]

    def check():
        if not left:
            raise CancelledError
        left.pop()

    with pytest.raises(CancelledError):
        scorer.forward.run(scorer._inputs(*traces[0], Mode.HINDSIGHT) * 20, check)
    # What was ended does no harm to what comes next.
    (judgment,) = scorer.score_encoded(traces[:1])
    alone = Scorer(evaluator).score_one(traces[0][0], "offline")
    atol = EXACT if dtype == "float32" else 0.1
    np.testing.assert_allclose(judgment.offline.probs, alone.offline.probs, atol=atol)


def test_online_scores_are_told_while_a_trace_is_scored(scorer):
    """A causal model has them all at once, with the judgment."""
    traces, told = make_traces(7), {}
    encoded = [(trace, scorer.evaluator.encode(trace)) for trace in traces]

    def on_step(number, substep, row):
        told[number, substep] = row

    judged = list(scorer.score_encoded(encoded, "hindsight", on_step=on_step))
    bidirectional = scorer.evaluator.attention == "bidirectional"
    assert len(told) == (sum(len(trace.substeps) for trace in traces) if bidirectional else 0)
    for (number, substep), row in told.items():
        np.testing.assert_array_equal(row, judged[number].online.probs[substep])


def test_a_trace_over_the_context_limit_is_an_error_or_left_out_and_reported(evaluator):
    traces = [*make_traces(2), Trace.of("q", ["2 " * 200], id="long"), *make_traces(1)]
    with refused():
        list(Scorer(evaluator).score(traces, "offline"))
    left_out = []
    kept = list(Scorer(evaluator).score(traces, "offline", lambda trace, error: left_out.append(trace.id)))
    assert len(kept) == 3
    assert left_out == ["long"]


def test_an_unknown_mode_is_refused(evaluator):
    with pytest.raises(ValueError, match="sideways"):
        list(Scorer(evaluator).score(make_traces(1), "sideways"))


def test_scores_that_are_not_numbers_are_refused(tmp_path):
    evaluator = load_evaluator(write_evaluator(tmp_path / "broken"))
    with torch.no_grad():
        evaluator.model.score.weight[0, 0] = float("nan")
    scorer, (trace,) = Scorer(evaluator), make_traces(1)
    for mode in ("offline", "online", "hindsight"):
        with refused():
            scorer.score_one(trace, mode)
    with refused():
        scorer.score_next("q", ["a"], ["b"])
