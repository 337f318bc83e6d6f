"""Runs that train adapters, and the folders that they make."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from torch.distributed.checkpoint.filesystem import FileSystemReader
from transformers import AutoModelForSequenceClassification

from stepsight.app.commands.cli import main
from stepsight.core.evaluators.loading import load_evaluator, write_merged
from stepsight.core.models.weights import CheckpointWeights
from stepsight.core.scoring.scorer import Scorer
from stepsight.training.train import lora, run
from stepsight.training.train.config import Lora
from tests.checkpoints import (
    GEMMA3,
    LLAMA3,
    QWEN2,
    tiny_tokenizer,
    write_backbone,
    write_evaluator,
    write_language_model,
    write_llada,
)
from tests.core.formats.by_hand import EXACT, TRACES, check_modes, softmax
from tests.messages import refused
from tests.training.small_runs import CONFIG, TRACE, forked_pair, synthetic, write_config

# PEFT asks a Transformers model by an old name whether it computes activations again.
pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated:FutureWarning")

KINDS = {"llama": LLAMA3, "qwen2": QWEN2, "gemma3": GEMMA3}
# Three steps of 8 traces, a checkpoint after each.
RUN = replace(
    CONFIG,
    backbone=None,
    init="base",
    attention="causal",
    lora=Lora(rank=4),
    data=synthetic(24),
    truncation="as-labelled",
    epochs=1,
    learning_rate=1e-2,
    warmup_steps=0,
    save_steps=1,
    saved_dtype="float32",
)


@pytest.fixture(autouse=True)
def cache(monkeypatch, tmp_path_factory):
    """A folder of caches of the test's own."""
    folder = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("STEPSIGHT_CACHE", str(folder))
    return folder


def write_base(folder, kind="llama", **changes):
    return write_language_model(folder, KINDS[kind] | {"max_position_embeddings": 1024} | changes, tiny_tokenizer())


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a base and the adapter of a whole run on it; not to be changed."""
    folder = tmp_path_factory.mktemp("lora")
    write_base(folder / "base")
    run.train(RUN, folder / "adapter", folder)
    return folder


def copied(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "copy")


def offline(folder):
    return [judged.offline.probs for judged in Scorer(load_evaluator(folder)).score([*TRACES, TRACE])]


def assert_same_scores(ours, theirs, atol=EXACT):
    for left, right in zip(offline(ours), offline(theirs), strict=True):
        np.testing.assert_allclose(left, right, rtol=0, atol=atol)


def by_peft(base, adapter, evaluator):
    """What `check_modes` compares with: PEFT's own model, with base and adapter side by side."""
    whole = AutoModelForSequenceClassification.from_pretrained(base, num_labels=3)
    whole.config.is_causal = evaluator.attention == "causal"
    model = PeftModel.from_pretrained(whole, adapter).eval().base_model.model

    @torch.inference_mode()
    def rows(trace, j):
        encoded = evaluator.encode(trace)
        ids = torch.tensor(encoded.ids[None, : encoded.reads[j] + 1])
        hidden = model.model(input_ids=ids)[0][0, encoded.reads[: j + 1]]
        return softmax(model.score(hidden).numpy())

    return rows


@pytest.mark.parametrize(
    ("kind", "attention"),
    [("llama", "bidirectional"), ("qwen2", "causal"), ("gemma3", "causal")],
)
def test_an_adapter_gives_the_scores_that_peft_gives(tmp_path, kind, attention):
    write_base(tmp_path / "base", kind)
    config = replace(RUN, attention=attention, lora=Lora(rank=3, alpha=4.0, dropout=0.1))
    output = run.train(config, tmp_path / "adapter", tmp_path)
    tensors = load_file(output / "adapter_model.safetensors")
    layers = KINDS[kind]["num_hidden_layers"]
    # All seven linear layers of each block, and the head; nothing of the base.
    assert len(tensors) == layers * 7 * 2 + 1
    assert all(tensor.abs().max() > 0 for tensor in tensors.values())
    evaluator = load_evaluator(output)
    assert (evaluator.format, evaluator.attention) == ("stepsight", attention)
    check_modes(evaluator, by_peft(tmp_path / "base", output, evaluator))


def test_the_folder_is_peft_s_with_ours_beside_it(trained):
    names = {path.name for path in (trained / "adapter").iterdir()}
    ours = {"config.json", "tokenizer.json", "stepsight.json", "log_history.json", "training.html"}
    assert {"adapter_config.json", "adapter_model.safetensors"} | ours <= names
    assert "model.safetensors" not in names
    config = json.loads((trained / "adapter" / "adapter_config.json").read_text())
    assert (config["peft_type"], config["r"], config["lora_alpha"], config["bias"]) == ("LORA", 4, 8, "none")
    assert config["base_model_name_or_path"] == "../base"
    assert config["modules_to_save"] == ["score"]
    targets = ["down_proj", "gate_proj", "k_proj", "o_proj", "q_proj", "up_proj", "v_proj"]
    assert sorted(config["target_modules"]) == targets
    card = json.loads((trained / "adapter" / "stepsight.json").read_text())
    assert card["base_sha256"] == CheckpointWeights.of(trained / "base").sha256
    assert card["template"]["separator"] == "\n"
    provenance = card["provenance"]
    # Two layers: 24 to 24 twice, 24 to 12 twice, 24 to 40 twice and 40 to 24, each with rank 4; and 3 rows of 24.
    adapters = 2 * 4 * (2 * 48 + 2 * 36 + 3 * 64)
    assert provenance["trained_parameters"] == adapters + 72
    assert str(trained) not in (trained / "adapter" / "stepsight.json").read_text()


def test_the_base_stays_as_it_is_and_checkpoints_hold_what_is_trained(trained):
    checkpoints = sorted((trained / "adapter" / "checkpoints").iterdir())
    assert [path.name for path in checkpoints] == ["checkpoint-2", "checkpoint-3"]
    for path in checkpoints:
        state = torch.load(path / "state.pt", weights_only=True)
        assert len(state["model"]) == len(state["optimizer"]["state"]) == 2 * 7 * 2 + 1


def test_merged_and_unmerged_give_the_same_scores(trained, tmp_path, capsys):
    assert main(["evaluators", "merge", str(trained / "adapter"), "--output", str(tmp_path / "merged")]) == 0
    assert capsys.readouterr().out.strip() == str(tmp_path / "merged")
    assert {path.name for path in (tmp_path / "merged").iterdir()} == {
        "config.json", "model.safetensors", "stepsight.json", "tokenizer.json",
    }  # fmt: skip
    assert_same_scores(tmp_path / "merged", trained / "adapter")
    merged = load_evaluator(tmp_path / "merged")
    assert merged.provenance == load_evaluator(trained / "adapter").provenance
    check_modes(merged, by_peft(trained / "base", trained / "adapter", merged))


def test_a_run_goes_on_from_its_checkpoint_as_if_nothing_had_happened(trained, tmp_path):
    folder = copied(trained, tmp_path)
    for name in ("stepsight.json", "adapter_model.safetensors"):
        (folder / "adapter" / name).unlink()
    shutil.rmtree(folder / "adapter" / "checkpoints" / "checkpoint-3")
    run.train(RUN, folder / "adapter", folder)
    for name in ("adapter_model.safetensors", "adapter_config.json", "config.json"):
        assert (folder / "adapter" / name).read_bytes() == (trained / "adapter" / name).read_bytes(), name


@pytest.mark.parametrize(("fsdp", "bf16", "atol"), [(False, False, EXACT), (True, False, EXACT), (True, True, 0.1)])
@pytest.mark.slow
def test_two_processes_give_the_scores_of_one(trained, tmp_path, fsdp, bf16, atol):
    shutil.copytree(trained / "base", tmp_path / "base")
    config = replace(RUN, fsdp=fsdp, bf16=bf16, accumulation=2, activation_checkpointing=not fsdp)
    path = write_config(tmp_path / "config.yaml", config)
    first, second = forked_pair("train", path, "--output", tmp_path / "adapter")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert load_evaluator(tmp_path / "adapter").provenance["devices"] == "2 x cpu"
    assert_same_scores(tmp_path / "adapter", trained / "adapter", atol)
    if fsdp:
        # Each process has written its part of what is trained, and none of what is not.
        checkpoint = tmp_path / "adapter" / "checkpoints" / "checkpoint-3"
        assert len(list(checkpoint.glob("*.distcp"))) == 2
        kept = [
            name for name in FileSystemReader(checkpoint).read_metadata().state_dict_metadata if "model." in name
        ]
        assert kept
        assert all("lora_" in name or "score" in name for name in kept)
        shutil.rmtree(tmp_path / "adapter" / "checkpoints" / "checkpoint-3")
        for name in ("stepsight.json", "adapter_model.safetensors", "log_history.json"):
            (tmp_path / "adapter" / name).unlink()
        first, second = forked_pair("train", path, "--output", tmp_path / "adapter")
        assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
        assert "going on from step 2" in first.stderr
        assert_same_scores(tmp_path / "adapter", trained / "adapter", atol)


def test_frozen_weights_are_held_in_bfloat16_where_that_is_computed_in(trained, tmp_path):
    shutil.copytree(trained / "base", tmp_path / "base")
    output = run.train(replace(RUN, bf16=True), tmp_path / "adapter", tmp_path)
    assert {tensor.dtype for tensor in load_file(output / "adapter_model.safetensors").values()} == {torch.float32}
    assert_same_scores(output, trained / "adapter", atol=0.1)


def test_an_evaluator_as_the_base_keeps_its_head_and_template(tmp_path):
    write_evaluator(tmp_path / "base", max_position_embeddings=1024)
    source = load_evaluator(tmp_path / "base")
    # Steps so small that nothing changes but by rounding; and another mask than the base has.
    config = replace(RUN, learning_rate=1e-30)
    evaluator = load_evaluator(run.train(config, tmp_path / "adapter", tmp_path))
    assert (evaluator.attention, evaluator.encoder.template) == ("causal", source.encoder.template)
    for name, weight in source.model.state_dict().items():
        torch.testing.assert_close(evaluator.model.state_dict()[name], weight, rtol=0, atol=1e-6)


def test_llada_as_the_base(tmp_path):
    write_llada(tmp_path / "base", with_head=False, max_sequence_length=1024)
    output = run.train(replace(RUN, attention="bidirectional"), tmp_path / "adapter", tmp_path)
    merged = write_merged(str(output), tmp_path / "merged")
    assert_same_scores(merged, output)
    base = load_file(tmp_path / "base" / "model-00001-of-00002.safetensors")
    base |= load_file(tmp_path / "base" / "model-00002-of-00002.safetensors")
    adapter = load_file(output / "adapter_model.safetensors")
    name = "base_model.model.model.layers.1.mlp.gate_proj.lora_{}.weight"
    expected = base["model.transformer.blocks.1.ff_proj.weight"] + 2 * (
        adapter[name.format("B")] @ adapter[name.format("A")]
    )
    found = load_file(merged / "model.safetensors")["model.layers.1.mlp.gate_proj.weight"]
    torch.testing.assert_close(found, expected)


def test_bert_s_layers_are_told_by_more_than_their_last_name(tmp_path):
    backbone = write_backbone(tmp_path / "base", "bert")
    # The pooler, in no block, has a layer called dense as well.
    expected = ["query", "key", "value", "output.dense", "intermediate.dense"]
    assert lora.trained_targets(Lora(), backbone) == expected
    assert len(lora.adapted_layers(Lora(), backbone)) == 2 * 6


BAD = [
    {"lora": Lora(targets=("q_prj",))},
    {"lora": Lora(targets=("q_proj", "xyz"))},
    {"lora": Lora(targets=("lm_head",))},
]


@pytest.mark.parametrize("changes", BAD)
def test_options_that_do_not_fit_the_base_are_refused_before_training(trained, tmp_path, changes):
    with refused():
        run.train(replace(RUN, **changes), tmp_path / "out", trained)
    assert not (tmp_path / "out").exists()


def test_without_peft_a_run_says_how_to_get_it(trained, tmp_path, monkeypatch):
    monkeypatch.setattr(lora, "find_spec", lambda name: None)
    with refused():
        run.train(RUN, tmp_path / "out", trained)
    assert not (tmp_path / "out").exists()


def test_an_adapter_on_an_adapter_is_refused(trained, tmp_path):
    with refused():
        run.train(replace(RUN, init="adapter"), tmp_path / "out", trained)


def test_everything_can_be_trained_further_from_an_adapter(trained, tmp_path):
    config = replace(RUN, init="adapter", lora=None, learning_rate=1e-30)
    assert_same_scores(run.train(config, tmp_path / "out", trained), trained / "adapter")


def test_a_base_that_is_another_is_told_by_its_hash(trained, tmp_path, capsys):
    folder = copied(trained, tmp_path)
    tensors = load_file(folder / "base" / "model.safetensors")
    tensors["model.layers.0.self_attn.q_proj.weight"][0, 0] += 1e-3
    save_file(tensors, folder / "base" / "model.safetensors", {"format": "pt"})
    with refused():
        load_evaluator(folder / "adapter")
    assert main(["evaluators", "merge", str(folder / "adapter"), "--output", str(tmp_path / "merged")]) == 2
    assert "the weights differ" in capsys.readouterr().err
    assert not (tmp_path / "merged").exists()
    # The right one, named in the card.
    card = json.loads((folder / "adapter" / "stepsight.json").read_text())
    (folder / "adapter" / "stepsight.json").write_text(json.dumps(card | {"base": str(trained / "base")}))
    assert_same_scores(folder / "adapter", trained / "adapter")


def test_a_base_that_is_missing_is_named(trained, tmp_path, monkeypatch):
    # There may be a folder of that name beside the one that tests run in.
    monkeypatch.chdir(tmp_path)
    folder = copied(trained, tmp_path)
    shutil.rmtree(folder / "base")
    with refused():
        load_evaluator(folder / "adapter")


def test_an_adapter_that_is_cut_off_or_of_another_shape_is_named(trained, tmp_path):
    folder = copied(trained, tmp_path)
    path = folder / "adapter" / "adapter_model.safetensors"
    content, tensors = path.read_bytes(), load_file(path)
    path.write_bytes(content[:-50])
    with refused():
        load_evaluator(folder / "adapter")
    name = "base_model.model.model.layers.1.mlp.up_proj.lora_A.weight"
    save_file(tensors | {name: torch.zeros(4, 30)}, path, {"format": "pt"})
    with refused():
        load_evaluator(folder / "adapter")


@pytest.mark.parametrize("folder", ["base", "nowhere"])
def test_a_merge_that_cannot_be_made_is_refused(trained, tmp_path, monkeypatch, folder):
    monkeypatch.chdir(trained)
    with refused():
        write_merged(folder, tmp_path / "merged")
    assert not (tmp_path / "merged").exists()


def test_a_folder_that_holds_something_is_not_written_over(trained, tmp_path):
    (tmp_path / "kept").write_text("")
    with refused():
        write_merged(str(trained / "adapter"), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
