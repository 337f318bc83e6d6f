"""Every way of scoring against the plain one: one input per forward through Transformers' own model."""

import random
import threading
from itertools import islice

import numpy as np
import pytest
import torch

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Judgment, Mode, StepScore, judgments_of
from stepsight.core.models import network
from stepsight.core.models.network import DecoderNetwork, Layer
from stepsight.core.scoring.forward import Input, PaddedForward, chunks
from stepsight.core.scoring.packed import PackedForward
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import write_evaluator, write_reasoneval
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
        rows.append(out[0].softmax(-1).numpy())
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


def test_the_stream_is_read_a_window_at_a_time_and_a_trace_judged_before_the_rest_of_its_window(evaluator):
    read = []

    def stream():
        for trace in make_traces(9):
            read.append(trace.id)
            yield trace

    counting = Counting(PackedForward(evaluator.model, token_budget=64, workers=1))
    judgments = Scorer(evaluator, counting, window=4).score(stream(), "offline")
    assert next(judgments).trace.id == "0"
    assert read == ["0", "1", "2", "3"]
    assert len(counting.lengths) < 4
    assert [judgment.trace.id for judgment in judgments] == [str(i) for i in range(1, 9)]


class Counting:
    def __init__(self, forward):
        self.forward = forward
        self.lengths = []

    def run(self, inputs):
        for number, rows in self.forward.run(inputs):
            self.lengths.append(inputs[number].length)
            yield number, rows


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
def test_scoring_ends_between_two_inputs_when_no_more_events_are_read(tmp_path, monkeypatch, forward, dtype):
    """After three events, when many inputs are left."""
    evaluator = load_evaluator(write_evaluator(tmp_path / "it"), dtype=dtype)
    scorer = Scorer(evaluator, forward(evaluator.model, token_budget=64))
    traces = [(trace, evaluator.encode(trace)) for trace in make_traces(9)]
    passes, states = [], DecoderNetwork.states
    monkeypatch.setattr(
        DecoderNetwork, "states", lambda network, *inputs: passes.append(inputs) or states(network, *inputs)
    )
    events = scorer.stream_encoded(traces, Mode.HINDSIGHT)
    assert not any(isinstance(event, Judgment) for event in islice(events, 3))
    events.close()
    begun = len(passes)
    # What was ended does no harm to what comes next.
    (judgment, *_) = judgments_of(scorer.stream_encoded(traces, Mode.HINDSIGHT))
    assert 0 < 2 * begun < len(passes) - begun
    alone = Scorer(evaluator).score_one(traces[0][0], "offline")
    atol = EXACT if dtype == "float32" else 0.1
    np.testing.assert_allclose(judgment.offline.probs, alone.offline.probs, atol=atol)


def test_online_scores_come_while_a_trace_is_scored(scorer):
    """A causal model has them all at once, with the judgment."""
    traces = make_traces(7)
    events = list(scorer.stream(traces, "hindsight"))
    early = [event for event in events if isinstance(event, StepScore)]
    judged = list(judgments_of(events))
    bidirectional = scorer.evaluator.attention == "bidirectional"
    assert len(early) == (sum(len(trace.substeps) for trace in traces) if bidirectional else 0)
    for score in early:
        np.testing.assert_array_equal(score.row, judged[score.trace].online.probs[score.substep])


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


IDS = np.arange(10)


def numbered(*lengths):
    return [
        (number, Input(np.zeros(length, np.int64), length, np.array([length - 1])))
        for number, length in enumerate(lengths)
    ]


def batches(lengths, budget, *, padded):
    return [[item.length for _, item in batch] for batch in chunks(numbered(*lengths), budget, padded=padded)]


@pytest.mark.parametrize(
    ("lengths", "budget", "expected"),
    [
        # 3 + 4 = 7, and 5 more would be 12; 5 + 5 = 10 fits exactly.
        ([3, 4, 5, 5], 10, [[3, 4], [5, 5]]),
        ([3, 12, 4], 10, [[3], [12], [4]]),
        ([12], 10, [[12]]),
        ([], 10, []),
    ],
)
def test_batches_hold_at_most_the_budget(lengths, budget, expected):
    assert batches(lengths, budget, padded=False) == expected


@pytest.mark.parametrize(
    ("lengths", "budget", "expected"),
    [
        # Each counts as long as the longest: 2 x 4 = 8 fits, 3 x 5 = 15 does not; 2 x 5 = 10 fits.
        ([3, 4, 5, 5], 10, [[3, 4], [5, 5]]),
        # 3 + 6 = 9 would fit, but padded to 2 x 6 = 12 does not.
        ([3, 6], 10, [[3], [6]]),
        # The longest of a batch that was closed does not count for the next one.
        ([8, 3, 3, 3], 10, [[8], [3, 3, 3]]),
        # 4 comes after 5 and counts as 5 too: 2 x 5 = 10, 3 x 5 = 15.
        ([5, 4, 1], 10, [[5, 4], [1]]),
        ([12, 1], 10, [[12], [1]]),
    ],
)
def test_padded_batches_count_their_longest_for_each(lengths, budget, expected):
    assert batches(lengths, budget, padded=True) == expected


def test_nothing_is_lost_or_reordered():
    lengths = np.random.default_rng(0).integers(1, 40, 200).tolist()
    for padded in (False, True):
        pairs = [pair for batch in chunks(numbered(*lengths), 64, padded=padded) for pair in batch]
        assert [number for number, _ in pairs] == list(range(200))
        assert [item.length for _, item in pairs] == lengths


def test_a_key_is_that_of_the_tokens_read_alone():
    other = np.concatenate([IDS[:4], [99]])
    assert Input(IDS, 4, np.array([3])).key == Input(other, 4, np.array([1])).key
    assert Input(IDS, 5, np.array([3])).key != Input(other, 5, np.array([3])).key
    assert Input(IDS, 4, np.array([3])).key != Input(IDS, 5, np.array([3])).key
