"""What is particular to formats with a head of their own; `test_conformance` compares them with their authors."""

import json

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.formats.heads import HEADS
from stepsight.core.judgment import Mode
from stepsight.core.scoring.forward import PaddedForward
from stepsight.core.scoring.packed import PackedForward
from stepsight.core.scoring.scorer import Scorer
from tests.cases import each
from tests.checkpoints import (
    LLEMMA,
    pickled,
    write_actprm,
    write_evaluator,
    write_language_model,
    write_pqm,
    write_qwen_prm,
    write_reasoneval,
    write_shards,
    write_skywork,
)
from tests.core.formats.by_hand import TRACES, hidden_states
from tests.core.formats.cases import CASES, LLEMMA_NAME, by_head, official, write_llemma
from tests.messages import refused
from tests.vocabularies import sentencepiece


def offline(folder, **options):
    return Scorer(load_evaluator(folder, **options)).score_one(TRACES[0], "offline").offline


def edit_json(path, **changes):
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("name", HEADS)
def test_a_head_of_ours_may_go_by_several_names_and_have_a_bias(tmp_path, name):
    write_evaluator(tmp_path)
    plain, path = offline(tmp_path), tmp_path / "model.safetensors"
    tensors = load_file(path)
    head = tensors.pop("score.weight")
    save_file(tensors | {name: head}, path, {"format": "pt"})
    np.testing.assert_array_equal(plain.probs, offline(tmp_path).probs)
    # Adding log 2 to the first logit doubles its odds: p / (1 - p) of neg.
    bias = torch.tensor([np.log(2.0), 0, 0], dtype=torch.float32)
    save_file(tensors | {name: head, name.replace("weight", "bias"): bias}, path, {"format": "pt"})
    shifted = offline(tmp_path)
    np.testing.assert_allclose(shifted.neg / (1 - shifted.neg), 2 * plain.neg / (1 - plain.neg), rtol=1e-3)


@each("head", [{"layers": 3}, {"layers": "mixture"}, "first"])
def test_a_head_on_another_layer_is_refused_and_one_on_the_last_may_say_so(tmp_path, head):
    write_evaluator(tmp_path)
    own, path = load_evaluator(tmp_path).fingerprint, tmp_path / "stepsight.json"
    edit_json(path, head={"layers": "last"})
    assert load_evaluator(tmp_path).fingerprint == own
    edit_json(path, head=head)
    with refused():
        load_evaluator(tmp_path)


def test_reasonevals_shift_can_be_switched_off(tmp_path):
    write_reasoneval(tmp_path / "shifted")
    write_reasoneval(tmp_path / "straight", card={"template": {"read": "last"}})
    shifted, straight = load_evaluator(tmp_path / "shifted"), load_evaluator(tmp_path / "straight")
    first, second = shifted.encode(TRACES[0]), straight.encode(TRACES[0])
    np.testing.assert_array_equal(first.ids, second.ids)
    np.testing.assert_array_equal(first.reads + 1, second.reads)
    assert shifted.fingerprint != straight.fingerprint
    assert "each step read at the second-to-last token" in shifted.described
    assert "each step read at the last token" in straight.described


def test_both_kinds_of_space_mark_give_the_tokens_of_one_long_text(tmp_path):
    write_reasoneval(tmp_path, tokenizer=sentencepiece(metaspace=True))
    evaluator = load_evaluator(tmp_path)
    for trace in TRACES:
        assert evaluator.encode(trace).ids.tolist() == official("7B")(tmp_path, trace)[0]


def test_the_rotation_and_the_window_are_those_of_the_config(tmp_path):
    write_reasoneval(tmp_path / "34B", size="34B")
    assert load_evaluator(tmp_path / "34B").model.config.rope_parameters["rope_theta"] == 1000000
    write_reasoneval(tmp_path / "narrow", sliding_window=6)
    assert load_evaluator(tmp_path / "narrow").model.config.window(0) == 6


def test_two_classes_and_a_tokenizer_without_separator_are_refused(tmp_path):
    write_reasoneval(tmp_path)
    edit_json(tmp_path / "config.json", score_dimension=2)
    with refused():
        load_evaluator(tmp_path)
    edit_json(tmp_path / "config.json", score_dimension=3)
    (tmp_path / "tokenizer_config.json").write_text('{"pad_token": {"content": "<sep>"}}')
    with refused():
        load_evaluator(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    with refused():
        load_evaluator(tmp_path)
    (tmp_path / "stepsight.json").write_text('{"template": {"separator": "</s>"}}')
    assert load_evaluator(tmp_path).encoder.template.separator == "</s>"
    (tmp_path / "stepsight.json").unlink()
    (tmp_path / "special_tokens_map.json").write_text('{"pad_token": "<s>"}')
    assert load_evaluator(tmp_path).encoder.template.separator == "<s>"


def test_a_saturated_ensemble_is_still_a_probability(tmp_path):
    _, head = write_actprm(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    save_file(
        tensors | {name: tensors[name] * 100 for name in head}, tmp_path / "model.safetensors", {"format": "pt"}
    )
    probs = offline(tmp_path).probs
    np.testing.assert_allclose(probs.sum(1), 1, atol=1e-6)
    assert np.isfinite(probs).all()


def test_the_heads_of_an_ensemble_stay_in_float32_and_weights_may_be_pickled(tmp_path):
    write_actprm(tmp_path)
    exact = offline(tmp_path).probs
    pickled(tmp_path, shards=2)
    rough = load_evaluator(tmp_path, dtype="bfloat16")
    assert rough.dtype == "bfloat16"
    assert {weight.dtype for weight in rough.model.score.parameters()} == {torch.float32}
    assert 0 < np.abs(exact - offline(tmp_path, dtype="bfloat16").probs).max() < 0.15


@pytest.mark.parametrize("heads", [8, 1])
def test_the_spread_of_the_heads_is_kept(tmp_path, heads):
    backbone, head = write_actprm(tmp_path, num_ensemble=heads)
    evaluator = load_evaluator(tmp_path)
    for forward in (None, PaddedForward(evaluator.model), PackedForward(evaluator.model)):
        scorer = Scorer(evaluator, forward)
        judged = {mode: list(scorer.score(TRACES, mode)) for mode in Mode}
        for number, trace in enumerate(TRACES):
            ids, places = CASES["ActPRM"].published(tmp_path, trace)
            values = by_head(head, hidden_states(backbone, ids)[places]).numpy()
            expected = values.std(0, ddof=1) if heads > 1 else np.zeros(len(places))
            offline = judged[Mode.OFFLINE][number].offline
            hindsight = judged[Mode.HINDSIGHT][number]
            for scores in (judged[Mode.ONLINE][number].online, offline, hindsight.online, hindsight.offline):
                np.testing.assert_allclose(scores.spread, expected, atol=1e-5)
            # Of sub-steps of one step, that of the least valid.
            owners = np.zeros(len(places), int)
            assert offline.by_step(owners).spread.tolist() == [offline.spread[offline.validity.argmin()]]


def test_pickles_shards_and_safetensors_are_the_same_evaluator(tmp_path):
    folders = [tmp_path / name / "skywork" for name in ("plain", "single", "sharded", "both")]
    for folder in folders:
        write_skywork(folder)
    pickled(folders[1])
    pickled(folders[2], shards=3)
    write_shards(folders[3], load_file(folders[3] / "model.safetensors"))
    (folders[3] / "model.safetensors").unlink()
    loaded = [load_evaluator(folder) for folder in folders]
    assert len({evaluator.fingerprint for evaluator in loaded}) == 1
    assert {evaluator.name for evaluator in loaded} == {"skywork"}
    # The folders themselves are left as they were.
    assert not list(folders[1].glob("*.safetensors"))


@each("base", ["no/such/folder", "x" * 300, 3, ""])
def test_a_base_that_is_not_there_is_named(tmp_path, base):
    if not (tmp_path / "PQM").exists():
        write_pqm(tmp_path / "PQM", tmp_path / "base")
    (tmp_path / "PQM" / "stepsight.json").write_text(json.dumps({"base": base}))
    with refused():
        load_evaluator(tmp_path / "PQM")


def test_another_base_is_refused(tmp_path):
    """Its tokenizer has more tokens than the weights know."""
    write_pqm(tmp_path / "PQM", tmp_path / "base")
    tokenizer = Tokenizer.from_file(str(tmp_path / "base" / "tokenizer.json"))
    tokenizer.add_special_tokens([f"<more {number}>" for number in range(9)])
    tokenizer.save(str(tmp_path / "base" / "tokenizer.json"))
    (tmp_path / "PQM" / "stepsight.json").write_text(json.dumps({"base": str(tmp_path / "base")}))
    with refused():
        load_evaluator(tmp_path / "PQM")


def test_weights_of_another_family_and_a_missing_first_token_are_refused(tmp_path):
    write_qwen_prm(tmp_path / "qwen")
    edit_json(tmp_path / "qwen" / "config.json", architectures=["Qwen2ForPrmModel"])
    with refused():
        load_evaluator(tmp_path / "qwen")
    (tmp_path / "qwen" / "stepsight.json").write_text('{"template": {"bos": "<|endoftext|>"}}')
    with refused():
        load_evaluator(tmp_path / "qwen")


def test_only_the_mean_of_llemmas_head_is_kept(tmp_path):
    model = write_llemma(tmp_path)
    head = load_evaluator(tmp_path / LLEMMA_NAME).model.score.weight
    torch.testing.assert_close(head[2], model.lm_head.weight[:2].mean(0))
    assert not head[:2].any()


def test_a_tokenizer_that_is_not_there_is_asked_for(tmp_path, monkeypatch):
    import huggingface_hub

    write_llemma(tmp_path, card={"tokenizer": "no/such/place"})
    card = tmp_path / LLEMMA_NAME / "stepsight.json"
    with refused():
        load_evaluator(tmp_path / LLEMMA_NAME)
    (tmp_path / "empty").mkdir()
    card.write_text(json.dumps({"tokenizer": str(tmp_path / "empty")}))
    with refused():
        load_evaluator(tmp_path / LLEMMA_NAME)
    # Its place is known by the repository's name.
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    card.unlink()
    with refused():
        load_evaluator(tmp_path / LLEMMA_NAME)


def test_any_other_language_model_is_not_llemmas(tmp_path):
    write_language_model(tmp_path / LLEMMA_NAME, LLEMMA, sentencepiece(), {"bos_token": "<s>"})
    with refused():
        load_evaluator(tmp_path / LLEMMA_NAME)
