"""The next step's scores against scoring problem, steps and candidate from scratch."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModel, LlamaConfig

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.network import DecoderNetwork
from stepsight.core.scoring.forward import PaddedForward
from stepsight.core.scoring.packed import PackedForward
from stepsight.core.scoring.prefixes import KeptPrefix, PrefixCache, can_continue, read_after, shared
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import (
    TOKEN_CLASSIFIERS,
    random_model,
    write_evaluator,
    write_llada,
    write_reasoneval,
)
from tests.messages import refused

EXACT = 1e-5
PROBLEM = "What is 2 + 3? Then 三?"
# One token, several, what a tokenizer could join with what is before, one twice.
CANDIDATES = ["5", "So the answer is 5. " * 3, " = 5", "2 + 3 = 5.", "√2 ≠ 三", "5"]
# The last two go on from the one before, then another branch, then back to the beginning.
STEPS = [
    [],
    ["2 + 3 = 5."],
    ["2 + 3 = 5.", ["So the answer is 5.", "Check."]],
    ["2 + 3 = 5.", "So 5. "],
    ["No."],
    [],
]

# Other formats are compared with their authors' candidates in `check_modes`.
CAUSAL = {
    "stepsight": lambda folder: write_evaluator(folder, is_causal=True),
    "grouped": lambda folder: write_evaluator(folder, is_causal=True, layers=3, kv_heads=2),
    "reasoneval-7b": write_reasoneval,
    "sliding": lambda folder: write_reasoneval(folder, sliding_window=9),
}
BIDIRECTIONAL = {"stepsight": write_evaluator, "llada": write_llada}


def from_scratch(evaluator, steps, candidates=CANDIDATES):
    traces = [Trace.of(PROBLEM, [*steps, text]) for text in candidates]
    scorer = Scorer(evaluator, PaddedForward(evaluator.model, token_budget=1))
    return np.stack([judgment.online.probs[-1] for judgment in scorer.score(traces, "online")])


def loaded(tmp_path, kinds, kind):
    kinds[kind](tmp_path / kind)
    return load_evaluator(tmp_path / kind)


class Counted:
    """The number of tokens that a decoder gets in each pass, without padding."""

    def __init__(self, monkeypatch):
        self.tokens = []
        states = DecoderNetwork.states

        def counting(network, ids, *rest):
            self.tokens.append(int(np.trim_zeros(ids.numpy(), "b").size))
            return states(network, ids, *rest)

        monkeypatch.setattr(DecoderNetwork, "states", counting)


@pytest.mark.parametrize("kind", CAUSAL)
def test_a_causal_evaluator_goes_on_from_the_prefix_and_equals_scoring_from_scratch(tmp_path, kind):
    evaluator = loaded(tmp_path, CAUSAL, kind)
    assert evaluator.attention == "causal"
    scorer = Scorer(evaluator)
    for steps in STEPS:
        found = scorer.score_next(PROBLEM, steps, CANDIDATES)
        assert found.shape == (len(CANDIDATES), 3)
        np.testing.assert_allclose(found, from_scratch(evaluator, steps), atol=EXACT)
        np.testing.assert_array_equal(found[0], found[-1])
    assert (type(scorer.forward), scorer.next_steps.keeps_prefixes) == (PackedForward, True)


@pytest.mark.parametrize("kind", ["stepsight", "grouped", "sliding"])
def test_a_backbone_of_transformers_goes_on_from_its_own_cache(tmp_path, kind):
    CAUSAL[kind](tmp_path / kind)
    evaluator = load_evaluator(tmp_path / kind, device_map={"": "cpu"})
    scorer = Scorer(evaluator, PaddedForward(evaluator.model))
    for steps in STEPS:
        found = scorer.score_next(PROBLEM, steps, CANDIDATES)
        np.testing.assert_allclose(found, from_scratch(evaluator, steps), atol=EXACT)
    assert scorer.next_steps.keeps_prefixes


@pytest.mark.parametrize("kind", BIDIRECTIONAL)
def test_a_bidirectional_evaluator_scores_anew(tmp_path, kind):
    evaluator = loaded(tmp_path, BIDIRECTIONAL, kind)
    assert evaluator.attention == "bidirectional"
    scorer = Scorer(evaluator)
    for steps in STEPS[:3]:
        found = scorer.score_next(PROBLEM, steps, CANDIDATES)
        np.testing.assert_allclose(found, from_scratch(evaluator, steps), atol=EXACT)
    assert scorer.next_steps is None


def test_only_new_tokens_are_read(tmp_path, monkeypatch):
    evaluator = loaded(tmp_path, CAUSAL, "stepsight")
    scorer = Scorer(evaluator)
    scorer.score_next(PROBLEM, [], ["5"])
    counted = Counted(monkeypatch)

    def length(*steps):
        return len(evaluator.encode(Trace.of(PROBLEM, steps)))

    opening, first, second = length("5") - 2, length("2 + 3 = 5."), length("2 + 3 = 5.", "So 5.")
    other = length("2 + 3 = 5.", "No, it is 6 then.")
    # "5" is a token, a separator is another: of the opening, all is kept.
    scorer.score_next(PROBLEM, ["2 + 3 = 5."], ["So 5.", "No, it is 6 then."])
    # The step that is new of the prefix and both candidates, side by side in one pass.
    assert counted.tokens == [first - opening + (second - first) + (other - first)]

    counted.tokens.clear()
    scorer.score_next(PROBLEM, ["2 + 3 = 5.", "So 5."], ["6", "7"])
    # The step that was chosen, then the candidates for the next: a token and a separator each.
    assert counted.tokens == [second - first + 2 * 2]

    counted.tokens.clear()
    scorer.score_next(PROBLEM, ["2 + 3 = 5."], ["6", "7"])
    # The prefix of an earlier call is the beginning of one that is kept.
    assert counted.tokens == [2 * 2]


def test_many_candidates_and_long_prefixes_are_read_in_parts(tmp_path, monkeypatch):
    evaluator = loaded(tmp_path, CAUSAL, "stepsight")
    monkeypatch.setattr("stepsight.core.scoring.packed._NEW", 40)
    candidates = [f"{number} + 3 = 5. " * (number % 3 + 1) for number in range(12)]
    scorer = Scorer(evaluator)
    counted = Counted(monkeypatch)
    steps = ["2 + 3 = 5. " * 3] * 3
    found = scorer.score_next(PROBLEM, steps, candidates)
    assert len(counted.tokens) > 6
    assert counted.tokens[:2] == [40, 40]
    np.testing.assert_allclose(found, from_scratch(evaluator, steps, candidates), atol=EXACT)


def test_prefixes_read_longest_ago_give_way(tmp_path, monkeypatch):
    evaluator = loaded(tmp_path, CAUSAL, "stepsight")
    scorer = Scorer(evaluator)
    branches = [["2 + 3 = 5."], ["So it must be 6, I think."], ["No."]]
    # Room for any two of them.
    kept = sum(sorted(len(evaluator.encode(Trace.of(PROBLEM, steps))) for steps in branches)[1:])
    scorer.forward.prefixes = PrefixCache(kept)
    counted = Counted(monkeypatch)
    sizes = []
    for steps in (branches[0], branches[0], branches[1], branches[2], branches[1], branches[0]):
        counted.tokens.clear()
        found = scorer.score_next(PROBLEM, steps, CANDIDATES)
        np.testing.assert_allclose(found, from_scratch(evaluator, steps), atol=EXACT)
        sizes.append(sum(counted.tokens[:1]))
        assert sum(len(prefix.ids) for prefix in scorer.forward.prefixes._prefixes) <= kept
    # At once again nothing of the prefix is read; after two others have come, some of it is.
    assert sizes[1] < sizes[0]
    assert sizes[5] > sizes[1]


def test_a_candidate_of_one_token_is_read_at_the_formats_position(tmp_path):
    # ReasonEval-7B reads the token before a step's last: of a step of one token, the last of the step before.
    evaluator = loaded(tmp_path, CAUSAL, "reasoneval-7b")
    encoded = evaluator.encode(Trace.of(PROBLEM, ["2 + 3 = 5.", "5"]))
    assert encoded.reads[-1] <= encoded.ends[-2] or encoded.ends[-1] - encoded.ends[-2] > 1
    found = Scorer(evaluator).score_next(PROBLEM, ["2 + 3 = 5."], ["5"])
    np.testing.assert_allclose(found, from_scratch(evaluator, ["2 + 3 = 5."], ["5"]), atol=EXACT)


def test_half_precision_stays_close(tmp_path):
    write_evaluator(tmp_path / "causal", is_causal=True)
    half = Scorer(load_evaluator(tmp_path / "causal", dtype=torch.bfloat16))
    found = half.score_next(PROBLEM, STEPS[2], CANDIDATES)
    np.testing.assert_allclose(found, from_scratch(load_evaluator(tmp_path / "causal"), STEPS[2]), atol=0.15)


def test_an_evaluator_that_accelerate_placed_goes_on_too(tmp_path):
    write_evaluator(tmp_path / "causal", is_causal=True)
    evaluator = load_evaluator(tmp_path / "causal", device_map={"": "cpu"})
    scorer = Scorer(evaluator)
    found = scorer.score_next(PROBLEM, STEPS[2], CANDIDATES)
    np.testing.assert_allclose(found, from_scratch(evaluator, STEPS[2]), atol=EXACT)
    assert scorer.next_steps.keeps_prefixes


@pytest.mark.parametrize("attention", [True, False])
def test_a_candidate_that_cannot_be_scored_is_named(tmp_path, attention):
    scorer = Scorer(load_evaluator(write_evaluator(tmp_path / "tiny", is_causal=attention)))
    with refused():
        scorer.score_next("q", ["a"], [])
    with refused():
        scorer.score_next("q", ["a"], "b")
    with refused():
        scorer.score_next("q", ["a"], ["b", " "])
    with refused():
        scorer.score_next("q", ["a"], ["b", "2 " * 200])
    with refused():
        scorer.score_next("", ["a"], ["b"])


def test_the_beam_search_of_the_manual_runs(capsys):
    page = (Path(__file__).parents[3] / "docs" / "score.md").read_text(encoding="utf-8")
    found = {}
    for code in re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:2]:
        exec(compile(code, "score.md", "exec"), found)
    assert len(found["beams"]) == 2
    steps, score = found["beams"][0]
    assert len(steps) == len(found["proposed"])
    # The best is the first, and its score that of its steps from scratch.
    trace = Trace.of(found["problem"], steps)
    online = found["scorer"].score_one(trace, "online").online
    assert score == pytest.approx(np.log(online.validity.astype(np.float64)).sum(), abs=1e-4)
    assert score >= found["beams"][1][1]
    assert capsys.readouterr().out


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
    def states(**inputs):
        return backbone(**inputs)[0]

    for beginning in ([1, 2, 3, 4, 5], [1, 2, 3], [], [8]):
        layers = read_after(states, [], torch.tensor([beginning]))[1] if beginning else []
        hidden, longer = read_after(states, layers, torch.tensor([[11, 12, 13], [14, 0, 0]]))
        np.testing.assert_allclose(hidden[0].numpy(), whole(backbone, [*beginning, 11, 12, 13])[-3:], atol=1e-5)
        # Padding to the right changes nothing before it.
        np.testing.assert_allclose(hidden[1, 0].numpy(), whole(backbone, [*beginning, 14])[-1], atol=1e-5)
        # The first keys and values are those of the prefix, which stay as they were.
        first = KeptPrefix(ids(), longer).first(len(beginning))
        for (keys, values), (before, _) in zip(first, layers, strict=True):
            assert before.shape[2] == keys.shape[2] == values.shape[2] == len(beginning)
            torch.testing.assert_close(keys, before.expand(2, -1, -1, -1))


def test_the_oldest_prefixes_are_dropped_and_longer_ones_replace_their_beginnings():
    cache = PrefixCache(kept=8)

    def read(*tokens):
        kept, begun = cache.take(ids(*tokens), len(tokens))
        cache.put(KeptPrefix(ids(*tokens)) if begun < len(tokens) else kept)
        return begun

    def held():
        return [prefix.ids.tolist() for prefix in cache._prefixes]

    assert read(1, 2) == 0
    assert read(1, 2, 3) == 2
    assert held() == [[1, 2, 3]]
    assert read(4, 5, 6) == 0
    assert read(1, 2) == 2
    # Asking for a beginning of it makes it the last that was asked for.
    assert held() == [[4, 5, 6], [1, 2, 3]]
    assert read(1, 2, 9) == 2
    # 3 + 3 + 3 tokens are more than 8.
    assert held() == [[1, 2, 3], [1, 2, 9]]
    # A single one stays, however long; nothing is kept of an empty one.
    assert read(*range(20, 40)) == 0
    assert read() == 0
    assert held() == [list(range(20, 40))]


def test_a_prefix_that_is_in_use_is_out_of_reach_of_others():
    cache = PrefixCache()
    cache.put(KeptPrefix(ids(1, 2, 3)))
    longer, begun = cache.take(ids(1, 2, 3, 4), 2)
    assert (longer.ids.tolist(), begun) == ([1, 2, 3], 2)
    assert cache.take(ids(1, 2, 3, 4), 4)[1] == 0
    cache.put(longer)
    # One that branches off leaves it where it is.
    branch, begun = cache.take(ids(1, 2, 9), 3)
    assert (branch.ids.tolist(), begun) == ([1, 2], 2)
    assert cache.take(ids(1, 2, 3), 3) == (longer, 3)


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
