"""ActPRM's checkpoint against its authors' code: the chat template as one text, eight heads one after the other."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.judgment import Mode
from stepsight.core.scores import Outputs
from stepsight.core.scoring.forward import PaddedForward
from stepsight.core.scoring.packed import PackedForward
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from tests.checkpoints import pickled, write_actprm
from tests.core.formats.by_hand import TRACES, check_modes, hidden_states, of_two

SYSTEM = (
    "You are a helpful and harmless assistant. You should think step-by-step and put your final answer within "
    "\\boxed{}."
)


def published(folder, trace, token="<extra_0>"):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    text = f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{trace.problem}<|im_end|>\n"
    text += "<|im_start|>assistant\n"
    text += token.join(step.strip() for step in trace.substeps) + token
    ids = tokenizer.encode(text).ids
    return ids, [place for place, one in enumerate(ids) if one == tokenizer.encode(token).ids[0]]


def by_head(head, states):
    """The sigmoid of each head, computed on its own."""
    results = []
    for one in range(len(head["score.model.nn1.bias"])):
        x = states.double()
        for name in ("nn1", "nn2", "nn_out"):
            x = (
                x @ head[f"score.model.{name}.weight"][one].double()
                + head[f"score.model.{name}.bias"][one].double()
            )
            x = x.clamp(min=0) if name != "nn_out" else x
        results.append(1 / (1 + torch.exp(-x[:, 0])))
    return torch.stack(results)


@pytest.mark.parametrize("token", ["<extra_0>", None])
def test_every_mode_equals_the_mean_of_the_heads(tmp_path, token):
    changes = {} if token else {"rr_token": None}
    backbone, head = write_actprm(tmp_path / "ActPRM", **changes)
    evaluator = load_evaluator(tmp_path / "ActPRM")
    assert (evaluator.format, evaluator.attention, evaluator.outputs) == (
        "ensemble-prm", "causal", Outputs.VALIDITY
    )  # fmt: skip

    def rows(trace, j):
        ids, places = published(tmp_path / "ActPRM", trace, token or " \n\n")
        return of_two(by_head(head, hidden_states(backbone, ids)[places[: j + 1]]).mean(0).float().numpy())

    more = Trace.of(" What? ", [" a \n", "b"])
    for trace in [*TRACES, more]:
        assert evaluator.encode(trace).ids.tolist() == published(tmp_path / "ActPRM", trace, token or " \n\n")[0]
    check_modes(evaluator, rows, [*TRACES, more])


def test_a_saturated_head_is_still_a_probability(tmp_path):
    _, head = write_actprm(tmp_path / "ActPRM")
    tensors = load_file(tmp_path / "ActPRM" / "model.safetensors")
    for name in head:
        tensors[name] = tensors[name] * 100
    save_file(tensors, tmp_path / "ActPRM" / "model.safetensors", {"format": "pt"})
    probs = Scorer(load_evaluator(tmp_path / "ActPRM")).score_one(TRACES[0], "offline").offline.probs
    np.testing.assert_allclose(probs.sum(1), 1, atol=1e-6)
    assert np.isfinite(probs).all()


def test_the_heads_stay_in_float32_and_weights_may_be_pickled(tmp_path):
    write_actprm(tmp_path / "ActPRM")
    exact = load_evaluator(tmp_path / "ActPRM")
    pickled(tmp_path / "ActPRM", shards=2)
    rough = load_evaluator(tmp_path / "ActPRM", dtype="bfloat16")
    assert rough.dtype == "bfloat16"
    assert {weight.dtype for weight in rough.model.score.parameters()} == {torch.float32}
    first, second = (Scorer(one).score_one(TRACES[0], "offline").offline.probs for one in (exact, rough))
    assert 0 < np.abs(first - second).max() < 0.15


@pytest.mark.parametrize("heads", [8, 1])
def test_the_spread_of_the_heads_is_kept(tmp_path, heads):
    backbone, head = write_actprm(tmp_path / "ActPRM", num_ensemble=heads)
    evaluator = load_evaluator(tmp_path / "ActPRM")
    for forward in (None, PaddedForward(evaluator.model), PackedForward(evaluator.model)):
        scorer = Scorer(evaluator, forward)
        judged = {mode: list(scorer.score(TRACES, mode)) for mode in Mode}
        for place, trace in enumerate(TRACES):
            ids, places = published(tmp_path / "ActPRM", trace)
            values = by_head(head, hidden_states(backbone, ids)[places]).numpy()
            expected = values.std(0, ddof=1) if heads > 1 else np.zeros(len(places))
            for scores in (
                judged[Mode.ONLINE][place].online,
                judged[Mode.OFFLINE][place].offline,
                judged[Mode.HINDSIGHT][place].online,
                judged[Mode.HINDSIGHT][place].offline,
            ):
                np.testing.assert_allclose(scores.spread, expected, atol=1e-5)
            # Of sub-steps of one step, that of the least valid.
            owners = np.zeros(len(places), int)
            scores = judged[Mode.OFFLINE][place].offline
            assert scores.by_step(owners).spread.tolist() == [scores.spread[scores.validity.argmin()]]
