"""LoRA adapters against PEFT's arithmetic: the base's output plus the adapter's, layer by layer."""

import json
import math

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.models.checkpoint_resolver import open_checkpoint
from stepsight.core.models.location import can_load
from stepsight.core.models.pretrained import load_backbone
from stepsight.core.scores import Outputs
from tests.cases import each
from tests.checkpoints import (
    QWEN2,
    pickled,
    tiny_tokenizer,
    write_adapter,
    write_backbone,
    write_language_model,
    write_shards,
    write_token_classifier,
)
from tests.core.formats.by_hand import check_modes, of_two, softmax
from tests.core.formats.cases import CASES, TWO_TOKEN, tokenizer_of
from tests.messages import refused
from tests.vocabularies import byte_level


def unmerged(model, adapter, scale):
    """The model with each adapter's layers run beside its own, as PEFT does; `scale` by the module's name."""
    modules = dict(model.named_modules())
    for key, first in adapter.items():
        if ".lora_A" not in key:
            continue
        name = key.removeprefix("base_model.model.").partition(".lora_A")[0]
        second = adapter[key.replace("lora_A", "lora_B")]
        factor = scale(name)

        def beside(module, inputs, output, first=first, second=second, factor=factor):
            return output + functional.linear(functional.linear(inputs[0], first), second) * factor

        modules[name].register_forward_hook(beside)
    return model


def write(tmp_path, *, where="Math-psa", **changes):
    """Math-psa's layout: an adapter in a folder below, on a language model; returns it unmerged, and the base."""
    base = tmp_path / "Qwen2.5-Math-7B-Instruct"
    model = write_language_model(base, QWEN2, tokenizer_of(QWEN2))
    tensors = load_file(base / "model.safetensors")
    folder = tmp_path / where / "checkpoint-2127"
    adapter = write_adapter(folder, str(base), tensors, **changes)
    (tmp_path / where / "stepsight.json").write_text(json.dumps({"base": str(base)}))
    return model, adapter, base


def check(tmp_path, model, where="Math-psa"):
    evaluator = load_evaluator(tmp_path / where, dtype="float32")
    (tmp_path / where / "tokenizer.json").write_bytes(
        (tmp_path / "Qwen2.5-Math-7B-Instruct" / "tokenizer.json").read_bytes()
    )
    made = model, [tokenizer_of(QWEN2).encode(text).ids[-1] for text in TWO_TOKEN["Math-psa"][3:]]
    check_modes(evaluator, lambda trace, j: CASES["Math-psa"].rows(tmp_path / where, made, trace, j))
    return evaluator


def test_a_merged_adapter_gives_the_scores_of_an_unmerged_one(tmp_path):
    model, adapter, base = write(tmp_path)
    assert can_load(base)
    evaluator = check(tmp_path, unmerged(model, adapter, lambda name: 32 / 4))
    assert (evaluator.name, evaluator.format) == ("Math-psa", "two-token")
    plain = tmp_path / "plain" / "Math-psa"
    write_language_model(plain, QWEN2, tokenizer_of(QWEN2))
    assert load_evaluator(plain).fingerprint != evaluator.fingerprint


def test_scales_of_rslora_and_of_single_modules(tmp_path):
    model, adapter, _ = write(
        tmp_path,
        targets=("q_proj", "down_proj"),
        use_rslora=True,
        alpha_pattern={"layers.1.self_attn.q_proj": 3, "down_proj": 5},
    )

    def scale(name):
        alpha = 5 if name.endswith("down_proj") else 3 if "layers.1." in name else 32
        return alpha / math.sqrt(4)

    check(tmp_path, unmerged(model, adapter, scale))


def test_ranks_of_single_modules(tmp_path):
    model, adapter, _ = write(tmp_path, targets=("k_proj",), rank_pattern={"self_attn.k_proj": 4}, r=16)
    check(tmp_path, unmerged(model, adapter, lambda name: 32 / 4))


@pytest.mark.parametrize("layout", ["shards", "pickles", "pickled adapter"])
def test_base_and_adapter_in_every_layout(tmp_path, layout):
    model, adapter, base = write(tmp_path)
    folder = tmp_path / "Math-psa" / "checkpoint-2127"
    expected = load_evaluator(tmp_path / "Math-psa").fingerprint
    if layout == "shards":
        write_shards(base, load_file(base / "model.safetensors"))
        (base / "model.safetensors").unlink()
    elif layout == "pickles":
        pickled(base)
    else:
        torch.save(adapter, folder / "adapter_model.bin")
        (folder / "adapter_model.safetensors").unlink()
    assert load_evaluator(tmp_path / "Math-psa").fingerprint == expected
    check(tmp_path, unmerged(model, adapter, lambda name: 32 / 4))


def test_weights_of_a_bfloat16_base_are_merged_in_float32(tmp_path):
    model, adapter, base = write(tmp_path)
    rounded = {name: tensor.bfloat16() for name, tensor in load_file(base / "model.safetensors").items()}
    save_file(rounded, base / "model.safetensors", {"format": "pt"})
    model.load_state_dict({name: tensor.bfloat16().float() for name, tensor in model.state_dict().items()})
    check(tmp_path, unmerged(model, adapter, lambda name: 32 / 4))
    rough = load_evaluator(tmp_path / "Math-psa", dtype="bfloat16")
    assert {weight.dtype for weight in rough.model.parameters()} == {torch.bfloat16}


def test_a_score_head_that_was_trained_whole(tmp_path):
    """A PRM that TRL trained by LoRA: the base is a language model, the head is in the adapter."""
    base = tmp_path / "base"
    tokenizer = byte_level(learnt=("\n",))
    write_language_model(base, QWEN2, tokenizer)
    model = write_token_classifier(tmp_path / "whole", "qwen2", tokenizer=tokenizer)
    language = load_file(base / "model.safetensors")
    model.load_state_dict({**model.state_dict(), **{k: t for k, t in language.items() if k != "lm_head.weight"}})
    head = {"score.weight": model.score.weight.data.clone(), "score.bias": model.score.bias.data.clone()}
    adapter = write_adapter(tmp_path / "prm", str(base), language, whole=head, task_type="TOKEN_CLS")
    (tmp_path / "prm" / "stepsight.json").write_text('{"template": {"separator": "\\n"}}')
    unmerged(model, adapter, lambda name: 32 / 4)
    evaluator = load_evaluator(tmp_path / "prm")
    assert (evaluator.format, evaluator.outputs) == ("token-classification", Outputs.VALIDITY)

    @torch.inference_mode()
    def rows(trace, j):
        ids = tokenizer.encode(trace.problem, add_special_tokens=False).ids
        places = []
        for step in trace.substeps[: j + 1]:
            ids = [*ids, *(one for text in (step, "\n") for one in tokenizer.encode(text).ids)]
            places.append(len(ids) - 1)
        return of_two(softmax(model(torch.tensor([ids])).logits[0, places].numpy())[:, 1])

    check_modes(evaluator, rows)


def test_an_adapter_of_our_own_format_with_more_tokens_than_its_base(tmp_path):
    """A network without a head as the base, the head and the larger embedding trained whole."""
    tokenizer, backbone = tiny_tokenizer(), write_backbone(tmp_path / "base", "llama")
    rows = len(backbone.embed_tokens.weight)
    whole = {
        "embed_tokens.weight": torch.cat([backbone.embed_tokens.weight.data, torch.randn(3, 24)]),
        "score.weight": torch.randn(3, 24),
    }
    adapter = write_adapter(tmp_path / "ours", str(tmp_path / "base"), backbone.state_dict(), whole=whole)
    tokenizer.add_special_tokens(["<a>", "<b>", "<s>"])
    tokenizer.save(str(tmp_path / "ours" / "tokenizer.json"))
    card = {"format": "stepsight", "attention": "causal", "template": {"prompt": "{problem}", "separator": "<s>"}}
    (tmp_path / "ours" / "stepsight.json").write_text(json.dumps(card))
    evaluator = load_evaluator(tmp_path / "ours")
    assert (evaluator.format, evaluator.outputs) == ("stepsight", Outputs.THREE_WAY)
    assert len(evaluator.model.model.embed_tokens.weight) == rows + 3
    backbone.embed_tokens.weight.data = whole["embed_tokens.weight"]
    unmerged(backbone, adapter, lambda name: 32 / 4)

    @torch.inference_mode()
    def rows_of(trace, j):
        encoded = evaluator.encode(trace)
        hidden = backbone(torch.tensor(encoded.ids[None]))[0][0, encoded.reads[: j + 1]]
        return softmax((hidden @ whole["score.weight"].T).numpy())

    check_modes(evaluator, rows_of)


def test_a_change_of_the_adapter_makes_another_evaluator(tmp_path):
    write(tmp_path)
    first = load_evaluator(tmp_path / "Math-psa").fingerprint
    assert load_evaluator(tmp_path / "Math-psa").fingerprint == first
    path = tmp_path / "Math-psa" / "checkpoint-2127" / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"lora_alpha": 16}))
    assert load_evaluator(tmp_path / "Math-psa").fingerprint != first


@each(
    "changes",
    [
        {"peft_type": "IA3"},
        {"use_dora": True},
        {"init_lora_weights": "pissa_niter_16"},
        {"r": 8},
        {"lora_alpha": None},
        {"rank_pattern": {"(a+)+": 4}},
        {"alpha_pattern": {".*q_proj": 4}},
        {"alpha_pattern": {"q" * 201: 4}},
    ],
)
def test_an_adapter_other_than_plain_lora_is_refused(tmp_path, changes):
    write(tmp_path, **changes)
    with refused():
        load_evaluator(tmp_path / "Math-psa")


@each(
    "targets, changes",
    [
        (("q_proj", "v_proj"), {"hidden_size": 32}),
        (("q_proj", "v_proj"), {"num_hidden_layers": 1}),
        # The other way round.
        (
            ("up_proj",),
            {"hidden_size": QWEN2["intermediate_size"], "intermediate_size": QWEN2["hidden_size"]},
        ),
    ],
)
def test_a_base_of_another_shape_or_kind_is_refused(tmp_path, targets, changes):
    _, _, base = write(tmp_path, targets=targets)
    write_language_model(base, QWEN2 | changes, tokenizer_of(QWEN2))
    with refused():
        load_evaluator(tmp_path / "Math-psa")


def test_a_network_with_a_merged_adapter_can_be_trained(tmp_path):
    write(tmp_path)
    checkpoint = open_checkpoint(tmp_path / "Math-psa")
    assert all(weight.requires_grad for weight in load_backbone(checkpoint).parameters())


def test_a_base_that_is_missing_or_itself_is_named(tmp_path):
    folder = tmp_path / "prm"
    write_adapter(folder, "../models/Qwen2.5-Math-7B-Instruct/", {})
    with refused():
        load_evaluator(folder)
    for base in (folder, tmp_path / "other"):
        write_adapter(folder, str(base), {})
        write_adapter(tmp_path / "other", str(folder), {})
        with refused():
            load_evaluator(folder)
    write_adapter(folder, "", {})
    with refused():
        load_evaluator(folder)


@pytest.mark.parametrize("content", [None, b"\x10{not whole"])
def test_missing_and_damaged_adapter_weights_are_named(tmp_path, content):
    write(tmp_path)
    path = tmp_path / "Math-psa" / "checkpoint-2127" / "adapter_model.safetensors"
    path.unlink()
    if content:
        path.write_bytes(content)
    with refused():
        load_evaluator(tmp_path / "Math-psa")


def test_a_folder_that_was_merged_already_is_read_as_it_is(tmp_path):
    _, _, base = write(tmp_path)
    folder = tmp_path / "Math-psa" / "checkpoint-2127"
    for file in base.iterdir():
        (tmp_path / "Math-psa" / file.name).write_bytes(file.read_bytes())
        (folder / file.name).write_bytes(file.read_bytes())
    write_language_model(tmp_path / "plain" / "Math-psa", QWEN2, tokenizer_of(QWEN2))
    expected = load_evaluator(tmp_path / "plain" / "Math-psa").fingerprint
    assert load_evaluator(tmp_path / "Math-psa").fingerprint == expected


def test_an_adapted_embedding_is_the_other_way_round(tmp_path):
    write(tmp_path, targets=("q_proj",))
    path = tmp_path / "Math-psa" / "checkpoint-2127" / "adapter_model.safetensors"
    base = load_file(tmp_path / "Qwen2.5-Math-7B-Instruct" / "model.safetensors")["model.embed_tokens.weight"]
    first, second = 0.2 * torch.randn(4, len(base)), torch.randn(base.shape[1], 4)
    matrices = {"A": first, "B": second}
    named = {f"base_model.model.model.embed_tokens.lora_embedding_{side}": one for side, one in matrices.items()}
    save_file(load_file(path) | named, path, {"format": "pt"})
    weights = open_checkpoint(tmp_path / "Math-psa").weights
    changed = base + 8 * (first.T @ second.T)
    torch.testing.assert_close(weights.read("model.embed_tokens.weight"), changed)
    torch.testing.assert_close(weights.rows("model.embed_tokens.weight", [7, 2]), changed[[7, 2]])


def test_square_matrices_of_networks_that_store_them_turned(tmp_path):
    """GPT-2 stores the matrices of its layers the other way round, which the adapter's config says."""
    _, adapter, base = write(tmp_path, targets=("q_proj",), fan_in_fan_out=True)
    name = "model.layers.0.self_attn.q_proj"
    first, second = (adapter[f"base_model.model.{name}.lora_{side}.weight"] for side in "AB")
    stored = load_file(base / "model.safetensors")[f"{name}.weight"]
    changed = open_checkpoint(tmp_path / "Math-psa").weights.read(f"{name}.weight")
    torch.testing.assert_close(changed, stored + 8 * (second @ first).T)
