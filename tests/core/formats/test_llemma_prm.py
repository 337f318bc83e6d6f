"""Easy-to-hard's checkpoints against their authors' reward, the mean of all logits at the first of two breaks."""

import json

import torch
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scores import Outputs
from stepsight.core.trace import Trace
from tests.checkpoints import LLEMMA, pickled, random_model, write_checkpoint, write_language_model
from tests.core.formats.by_hand import check_modes, of_two
from tests.messages import refused
from tests.vocabularies import sentencepiece

NAME = "llemma-7b-prm-prm800k-level-1to3-hf"
# Steps with two line breaks in a row are two steps for the authors' count.
TRACES = [
    Trace.of(
        "Janet's ducks lay 16 eggs per day.", ["She eats 3 + 4 = 7 eggs.", "She sells 16 - 7 = 9.", "So $18."]
    ),
    Trace.of("What is\n2 + 3?", ["2 + 3 = 5.", ["So the answer\nis 5.", "Check: 5 - 3 = 2."]]),
    Trace.of("三 + é = Ω?", ["√2 ≠ 三.", "a"]),
]


def write(folder, tokenizer_folder, card=None):
    """The layout: pickled shards whose head is two rows repeated, and no tokenizer, which is in a folder apart."""
    tokenizer = sentencepiece()
    size = tokenizer.get_vocab_size() + tokenizer.get_vocab_size() % 2
    model = random_model(LLEMMA | {"vocab_size": size}, AutoModelForCausalLM)
    model.lm_head.weight.data = torch.randn(2, LLEMMA["hidden_size"]).repeat(size // 2, 1)
    card = {"tokenizer": str(tokenizer_folder)} | (card or {})
    write_checkpoint(
        folder, LLEMMA | {"vocab_size": size}, model.state_dict(), tokenizer, {"bos_token": "<s>"}, card
    )
    tokenizer_folder.mkdir(exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).rename(tokenizer_folder / name)
    pickled(folder, shards=3)
    return model


@torch.inference_mode()
def by_hand(model, tokenizer_folder, trace, j):
    tokenizer = Tokenizer.from_file(str(tokenizer_folder / "tokenizer.json"))
    text = f"# Question\n\n{trace.problem}\n\n# Solution\n\n" + "".join(f"{step}\n\n" for step in trace.substeps)
    ids = tokenizer.encode(text).ids
    line_break = tokenizer.token_to_id("<0x0A>")
    firsts = [place for place in range(len(ids) - 1) if ids[place] == ids[place + 1] == line_break]
    # Behind the headings' and the problem's.
    places = firsts[3 : 4 + j]
    rewards = model(torch.tensor([ids])).logits[0].double().mean(-1)[places]
    return ids, places, of_two(torch.sigmoid(rewards).float().numpy())


def test_every_mode_equals_the_mean_of_all_logits(tmp_path):
    model = write(tmp_path / NAME, tmp_path / "llemma_7b")
    evaluator = load_evaluator(tmp_path / NAME)
    assert (evaluator.name, evaluator.format, evaluator.outputs) == (NAME, "llemma-prm", Outputs.VALIDITY)
    for trace in TRACES:
        ids, places, _ = by_hand(model, tmp_path / "llemma_7b", trace, 99)
        encoded = evaluator.encode(trace)
        assert encoded.reads.tolist() == places
        assert encoded.ids.tolist() == ids[: places[-1] + 1]
    check_modes(evaluator, lambda trace, j: by_hand(model, tmp_path / "llemma_7b", trace, j)[2], TRACES)


def test_only_the_head_s_mean_is_kept(tmp_path):
    model = write(tmp_path / NAME, tmp_path / "llemma_7b")
    head = load_evaluator(tmp_path / NAME).model.score.weight
    torch.testing.assert_close(head[2], model.lm_head.weight[:2].mean(0))
    assert not head[:2].any()


def test_a_tokenizer_that_is_not_there_is_asked_for(tmp_path):
    write(tmp_path / NAME, tmp_path / "llemma_7b", {"tokenizer": "no/such/place"})
    with refused():
        load_evaluator(tmp_path / NAME)
    (tmp_path / "empty").mkdir()
    (tmp_path / NAME / "stepsight.json").write_text(json.dumps({"tokenizer": str(tmp_path / "empty")}))
    with refused():
        load_evaluator(tmp_path / NAME)


def test_the_tokenizer_s_place_is_known_by_the_repository_s_name(tmp_path, monkeypatch):
    import huggingface_hub

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    write(tmp_path / NAME, tmp_path / "llemma_7b")
    (tmp_path / NAME / "stepsight.json").unlink()
    with refused():
        load_evaluator(tmp_path / NAME)


def test_any_other_language_model_is_refused(tmp_path):
    write_language_model(tmp_path / NAME, LLEMMA, sentencepiece(), {"bos_token": "<s>"})
    with refused():
        load_evaluator(tmp_path / NAME)
