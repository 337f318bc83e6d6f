import gc
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, processors
from transformers import AutoModelForCausalLM, GPTNeoConfig, LlamaConfig, LlamaModel, MistralConfig, Qwen2Config

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.model import StepModel
from stepsight.core.models.pretrained import load_backbone
from stepsight.training.data.mixture import Mixture
from stepsight.training.experiments.grid.design import read_design
from stepsight.training.synth.corpus import generate
from stepsight.training.train.config import Backbone, Expected, read_config
from stepsight.training.train.estimate import network_of
from stepsight.training.train.init import (
    PAD,
    SEPARATOR,
    init_folder,
    initial_model,
    initialise,
    llama_config,
    train_tokenizer,
)
from tests.checkpoints import (
    llada_tensors,
    tiny_tokenizer,
    write_backbone,
    write_evaluator,
    write_llada,
    write_token_classifier,
)
from tests.conftest import ROOT
from tests.messages import refused
from tests.training.small_runs import CONFIG, TRACE

SMALL = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4}


def begin(init=None, root=Path(), **changes):
    """The encoder and the model that a run starts from."""
    backbone = CONFIG.backbone if init is None else None
    config = replace(CONFIG, backbone=backbone, init=init and str(init), **changes)
    return initial_model(config, Mixture(config.data, Path(), config.truncation, config.seed), root)[:2]


def plain_tokenizer(bos=None):
    """One that knows nothing of steps, and begins every input with `bos`."""
    tokenizer = Tokenizer.from_str(tiny_tokenizer().to_str().replace(SEPARATOR, "<unused>"))
    if bos is not None:
        tokenizer.add_special_tokens([bos])
        ids = [(bos, tokenizer.token_to_id(bos))]
        tokenizer.post_processor = processors.TemplateProcessing(f"{bos} $A", special_tokens=ids)
    return tokenizer


def write_start(folder, config, tokenizer):
    """A plain Hugging Face folder with a language-modelling head, in the library's own hand."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(config)
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    return model


def causal_lm(kind, tokenizer, **values):
    return kind(vocab_size=tokenizer.get_vocab_size(), bos_token_id=None, eos_token_id=None, **(SMALL | values))


def looks_ahead(encoder, model):
    """Whether the first step's scores depend on the last step."""
    encoded = encoder.encode(TRACE)
    ids = torch.from_numpy(encoded.ids)[None]
    other = ids.clone()
    other[0, -2] = (other[0, -2] + 1) % 20
    ends = torch.from_numpy(encoded.ends)[None]
    mask = torch.ones_like(ids)
    with torch.no_grad():
        first, second = (model(tokens, mask, ends)[0, 0] for tokens in (ids, other))
    return not torch.equal(first, second)


def test_from_scratch_everything_is_drawn_from_the_seed():
    encoder, model = begin()
    assert model.config.vocab_size == encoder.tokenizer.get_vocab_size() == 400
    again = begin()[1].state_dict()
    assert all(torch.equal(tensor, again[name]) for name, tensor in model.state_dict().items())
    other = begin(seed=14)[1].state_dict()
    assert not torch.equal(model.score.weight, other["score.weight"])


@pytest.mark.parametrize("attention", ["bidirectional", "causal"])
@pytest.mark.parametrize("own", [False, True])
def test_an_evaluator_keeps_its_head_and_template(tmp_path, attention, own):
    source = load_evaluator(write_evaluator(tmp_path / "start", is_causal=own))
    encoder, model = begin(tmp_path / "start", attention=attention)
    assert encoder.template == source.encoder.template
    state = source.model.state_dict()
    assert all(torch.equal(tensor, state[name]) for name, tensor in model.state_dict().items())
    assert looks_ahead(encoder, model) == (attention == "bidirectional")


def test_the_weights_of_an_evaluator_are_held_once(tmp_path, monkeypatch):
    def models():
        return sum(type(thing) is StepModel for thing in gc.get_objects())

    def load(checkpoint):
        assert models() == before
        return load_backbone(checkpoint)

    write_evaluator(tmp_path / "start")
    gc.collect()
    before = models()
    monkeypatch.setattr("stepsight.training.train.init.load_backbone", load)
    begin(tmp_path / "start")


def test_a_shipped_name_or_a_folder_beside_the_configuration_will_do(tmp_path):
    assert init_folder("mini-bidir", tmp_path).name == "mini-bidir"
    write_evaluator(tmp_path / "mine")
    assert init_folder("mine", tmp_path) == tmp_path / "mine"
    with refused():
        init_folder("none", tmp_path)


KINDS = {
    "llama": (LlamaConfig, {}),
    "mistral": (MistralConfig, {"num_key_value_heads": 2, "sliding_window": 4}),
    "qwen2": (Qwen2Config, {"num_key_value_heads": 2, "tie_word_embeddings": True}),
}


@pytest.mark.parametrize("attention", ["bidirectional", "causal"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_plain_backbone_gets_a_head_and_a_token_that_closes_steps(tmp_path, kind, attention):
    tokenizer = plain_tokenizer("<s>")
    before = tokenizer.get_vocab_size()
    source = write_start(tmp_path / "plain", causal_lm(KINDS[kind][0], tokenizer, **KINDS[kind][1]), tokenizer)
    encoder, model = begin(tmp_path / "plain", attention=attention)
    assert (encoder.template.separator, encoder.template.bos) == (SEPARATOR, "<s>")
    assert encoder.encode(TRACE).ids[0] == before - 1
    # The new token is the one after the tokenizer's last, and begins as the mean of all.
    assert encoder.separator == before
    embedding = model.model.get_input_embeddings().weight
    theirs = source.get_input_embeddings().weight
    assert torch.equal(embedding[:before], theirs)
    torch.testing.assert_close(embedding[before], theirs.mean(0))
    assert model.config.vocab_size == before + 1
    own = model.model.layers[1].mlp.up_proj.weight
    assert torch.equal(own, source.model.layers[1].mlp.up_proj.weight)
    # Not a parameter more than backbone, new row and head have: no language-modelling head.
    body = sum(p.numel() for p in source.model.parameters())
    assert sum(p.numel() for p in model.parameters()) == body + 24 + 3 * 24
    assert looks_ahead(encoder, model) == (attention == "bidirectional")


def test_llada_has_rows_to_spare(tmp_path):
    tensors = write_llada(tmp_path / "llada", with_head=False)
    vocabulary = tensors["model.transformer.wte.weight"].shape[0]
    plain_tokenizer().save(str(tmp_path / "llada" / "tokenizer.json"))
    spare = llada_tensors(vocabulary + 7)
    for file in (tmp_path / "llada").glob("*.safetensors"):
        save_file({name: spare[name] for name in load_file(file)}, file, metadata={"format": "pt"})
    config = json.loads((tmp_path / "llada" / "config.json").read_text())
    (tmp_path / "llada" / "config.json").write_text(json.dumps(config | {"embedding_size": vocabulary + 7}))
    encoder, model = begin(tmp_path / "llada")
    assert encoder.separator == vocabulary
    assert torch.equal(model.model.embed_tokens.weight, spare["model.transformer.wte.weight"])
    assert looks_ahead(encoder, model)


def test_a_backbone_s_own_template_is_kept(tmp_path):
    # What a run that trains a backbone alone leaves: a template, weights and a tokenizer, and no head.
    tokenizer = tiny_tokenizer()
    write_start(tmp_path / "own", causal_lm(LlamaConfig, tokenizer), tokenizer)
    template = {"prompt": "{problem}\n", "separator": SEPARATOR, "bos": None}
    (tmp_path / "own" / "stepsight.json").write_text(json.dumps({"template": template}))
    encoder, model = begin(tmp_path / "own")
    assert encoder.template.to_dict() == template
    assert model.config.vocab_size == tokenizer.get_vocab_size()


def test_the_new_head_is_drawn_from_the_seed(tmp_path):
    tokenizer = plain_tokenizer()
    write_start(tmp_path / "plain", causal_lm(LlamaConfig, tokenizer), tokenizer)
    heads = [begin(tmp_path / "plain", seed=seed)[1].score.weight for seed in (1, 1, 2)]
    assert torch.equal(heads[0], heads[1])
    assert not torch.equal(heads[0], heads[2])


def test_an_invalid_start_is_refused(tmp_path):
    tokenizer = plain_tokenizer()
    config = GPTNeoConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=24,
        num_layers=2,
        num_heads=4,
        attention_types=[[["global"], 2]],
        bos_token_id=None,
        eos_token_id=None,
    )
    write_start(tmp_path / "neo", config, tokenizer)
    with refused():
        begin(tmp_path / "neo")
    write_start(tmp_path / "plain", causal_lm(LlamaConfig, tokenizer), tokenizer)
    write_token_classifier(tmp_path / "two", "qwen2", num_labels=2, id2label={0: "bad", 1: "good"})
    with refused():
        begin(tmp_path / "two")
    (tmp_path / "plain" / "tokenizer.json").unlink()
    with refused():
        begin(tmp_path / "plain")


def test_a_backbone_that_does_not_heed_its_mask_is_refused(tmp_path, monkeypatch):
    forward = LlamaModel.forward

    def deaf(self, *args, **options):
        asked, self.config.is_causal = self.config.is_causal, True
        try:
            return forward(self, *args, **options)
        finally:
            self.config.is_causal = asked

    monkeypatch.setattr(LlamaModel, "forward", deaf)
    write_evaluator(tmp_path / "start")
    with refused():
        begin(tmp_path / "start")
    assert begin(tmp_path / "start", attention="causal")


def test_a_tokenizer_that_is_given_is_used_and_may_leave_rows_to_spare(tmp_path):
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    plain_tokenizer().save(str(folder / "tokenizer.json"))
    encoder, model = begin(tokenizer="tokenizer", root=tmp_path)
    assert encoder.tokenizer.get_vocab_size() <= model.config.vocab_size == 400
    # It knew of no token that closes a step, and has one now.
    assert encoder.template.separator == SEPARATOR
    assert model.model.embed_tokens.weight.shape[0] == 400
    encoder.encode(TRACE)


def test_a_tokenizer_with_more_tokens_than_rows_is_refused(tmp_path):
    folder = tmp_path / "tokenizer"
    folder.mkdir()
    plain_tokenizer().save(str(folder / "tokenizer.json"))
    with refused():
        begin(tokenizer="tokenizer", root=tmp_path, vocabulary=10)
    with refused():
        begin(tokenizer="nowhere", root=tmp_path)


def test_mitchells_weights_are_the_same_under_both_masks():
    models = [
        begin(initialisation="mitchell", attention=mask)[1].state_dict() for mask in ("bidirectional", "causal")
    ]
    assert all(torch.equal(tensor, models[1][name]) for name, tensor in models[0].items())
    # The library's deviation is 0.02; Mitchell's is 1 / sqrt(32) = 0.177, less what is cut off.
    assert 0.16 < float(models[0]["model.embed_tokens.weight"].std()) < 0.19


def test_the_rotation_and_the_heads_of_keys_are_the_backbones():
    config = llama_config(replace(CONFIG.backbone, kv_heads=1, rope_theta=5e5), 100, "causal")
    assert config.rope_parameters["rope_theta"] == 5e5
    assert (config.num_attention_heads, config.num_key_value_heads) == (2, 1)
    assert llama_config(CONFIG.backbone, 100, "causal").num_key_value_heads == 2


BACKBONE = Backbone(hidden=256, layers=3, heads=4, mlp=512)


def weights(seed=0):
    torch.manual_seed(seed)
    model = StepModel.from_config(llama_config(BACKBONE, 1000, "causal"))
    initialise(model.model)
    return dict(model.model.named_parameters())


# A normal distribution cut off at three standard deviations has 0.9866 of the deviation of the whole one.
CUT = 0.9866


@pytest.mark.parametrize(
    ("name", "variance"),
    [
        ("embed_tokens.weight", 1 / 256),
        ("layers.0.self_attn.q_proj.weight", 1 / 256),
        ("layers.2.self_attn.v_proj.weight", 1 / 256),
        ("layers.2.mlp.gate_proj.weight", 1 / 256),
        ("layers.2.mlp.up_proj.weight", 1 / 256),
        # Layers count from 1: 2 * 1 * 256, and 2 * 3 * 512, since this one reads the feed-forward layer.
        ("layers.0.self_attn.o_proj.weight", 1 / 512),
        ("layers.0.mlp.down_proj.weight", 1 / 1024),
        ("layers.2.self_attn.o_proj.weight", 1 / 1536),
        ("layers.2.mlp.down_proj.weight", 1 / 3072),
    ],
)
def test_each_matrix_has_its_deviation_and_nothing_beyond_three(name, variance):
    weight, std = weights()[name].detach(), math.sqrt(variance)
    # 65,536 draws or more: the deviation is known to about 0.3 %.
    assert float(weight.std()) == pytest.approx(CUT * std, rel=0.015)
    assert float(weight.abs().max()) <= 3 * std
    assert float(weight.abs().max()) > 2.9 * std


def test_norms_stay_ones_and_the_draw_follows_the_generator():
    first, again, other = weights(), weights(), weights(1)
    assert torch.equal(first["norm.weight"], torch.ones(256))
    assert all(torch.equal(tensor, again[name]) for name, tensor in first.items())
    assert not torch.equal(first["embed_tokens.weight"], other["embed_tokens.weight"])


CONFIGS = ROOT / "training" / "configs"


def by_hand(hidden, layers, mlp, vocabulary, keys=None):
    """Embedding, layers of four square matrices (keys and values may be narrower), three of the feed-forward layer
    and two norms, the last norm and a head of three rows."""
    narrow = keys or hidden
    layer = 2 * hidden * hidden + 2 * hidden * narrow + 3 * hidden * mlp + 2 * hidden
    return vocabulary * hidden + layers * layer + hidden + 3 * hidden


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        # The paper's table of dimensions, with 126,464 tokens.
        ("1B", by_hand(2048, 16, 5504, 126_464)),
        ("2B", by_hand(2560, 24, 6912, 126_464)),
        ("3B", by_hand(2816, 26, 7168, 126_464)),
    ],
)
def test_the_sizes_of_the_papers_grid(size, expected):
    design = read_design(CONFIGS / "grid.yaml")
    run = next(run for run in design.runs() if run.size == size)
    assert network_of(design.config(run), CONFIGS).parameters == expected
    assert round(expected / 1e9, 1) == {"1B": 1.1, "2B": 2.2, "3B": 2.8}[size]


def test_the_8b_evaluators_are_told_by_their_recipes_where_they_are_not_here():
    llada = network_of(read_config(CONFIGS / "llada-prm-8b.yaml"), CONFIGS)
    # LLaDA-8B has 8.02 billion weights, of which 126,464 x 4,096 are the language-modelling head that is dropped.
    assert llada.parameters == by_hand(4096, 32, 12288, 126_464) == 7_497_596_928
    assert (llada.embedding, llada.layers, llada.hidden, llada.mlp) == (126_464 * 4096, 32, 4096, 12288)
    # Mistral's 8 heads of keys and values of 128.
    wizard = network_of(read_config(CONFIGS / "wizardmath-control.yaml"), CONFIGS)
    assert wizard.parameters == by_hand(4096, 32, 14336, 32_001, keys=1024)


def test_a_folder_that_is_here_tells_its_own_dimensions(tmp_path):
    folder = write_evaluator(tmp_path / "start")
    values = json.loads((folder / "config.json").read_text())
    weights = load_file(folder / "model.safetensors")
    found = network_of(replace(CONFIG, backbone=None, init="start"), tmp_path)
    assert (found.hidden, found.mlp) == (values["hidden_size"], values["intermediate_size"])
    assert found.context == values["max_position_embeddings"] != 4096
    assert found.parameters == sum(tensor.numel() for tensor in weights.values())


@pytest.mark.parametrize(("kind", "mlp"), [("bert", 40), ("gpt2", 96)])
def test_a_backbone_of_another_kind_than_llama(tmp_path, kind, mlp):
    """GPT-2 makes its feed-forward layer four times as wide."""
    backbone = write_backbone(tmp_path / "plain", kind)
    found = network_of(replace(CONFIG, backbone=None, init="plain"), tmp_path)
    assert (found.layers, found.hidden, found.mlp) == (2, 24, mlp)
    assert found.embedding == backbone.config.vocab_size * 24
    assert found.parameters == sum(parameter.numel() for parameter in backbone.parameters()) + 3 * 24


def test_one_that_nobody_tells_of_is_refused():
    config = replace(CONFIG, backbone=None, init="nowhere/at-all", plan=Expected())
    with refused():
        network_of(config, Path())


def corpus():
    return [text for trace in generate(0, 60) for text in (trace.problem, *trace.substeps)]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(corpus(), 400)


def tokens(tokenizer, text):
    return tokenizer.encode(text).tokens


def test_special_tokens_come_first_and_the_vocabulary_is_as_large_as_asked(tokenizer):
    assert [tokenizer.token_to_id(token) for token in (PAD, SEPARATOR)] == [0, 1]
    assert tokenizer.get_vocab_size() == 400


def test_every_digit_is_a_token(tokenizer):
    assert tokens(tokenizer, "1024") == ["1", "0", "2", "4"]
    # No token learnt from a corpus full of numbers holds a digit beside anything else.
    merged = [token for token in tokenizer.get_vocab() if len(token) > 1 and any(c.isdigit() for c in token)]
    assert merged == []


def test_words_are_learnt_with_their_space_and_signs_stand_apart(tokenizer):
    # Ġ stands for the space; "the" is in nearly every trace.
    assert tokens(tokenizer, " the the") == ["Ġthe", "Ġthe"]
    assert all("+" not in token or set(token) <= set("Ġ+") for token in tokens(tokenizer, "x+1 = the+y"))


@pytest.mark.parametrize(
    "text", ["2 + 3 = 5.", "", " \n\n\t ", "∑ √2 ≠ 三 🙂", "e\u0301 \u202e \ufeff", "\\frac{1}{2}", "<pad", "½ ٣"]
)
def test_any_text_comes_back(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_the_same_texts_give_the_same_tokenizer(tokenizer):
    assert train_tokenizer(corpus(), 400).to_str() == tokenizer.to_str()


def test_a_tokenizer_of_no_text_still_knows_every_byte():
    empty = train_tokenizer([], 1000)
    # 256 bytes and two special tokens; a UTF-8 byte is one token.
    assert empty.get_vocab_size() == 258
    assert len(empty.encode("a三").ids) == 1 + 3
