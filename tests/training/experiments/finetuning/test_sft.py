"""Fine-tuning runs: whole, shared among processes, refused. A killed one goes on as a training does."""

import json
import shutil
from dataclasses import asdict, replace

import pytest
import torch
import yaml
from filelock import FileLock
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from stepsight.core.models.placement import Placement
from stepsight.core.validation import update
from stepsight.training.experiments.finetuning import sft
from stepsight.training.experiments.finetuning.recipe import read_pairs, read_recipe
from stepsight.training.experiments.finetuning.sft import (
    estimate_fine_tuning,
    fine_tune,
    load_model,
    load_text_tokenizer,
    model_folder,
    prompt_ids,
    write_scratch_model,
)
from tests.checkpoints import write_evaluator
from tests.conftest import ROOT
from tests.messages import refused
from tests.training.experiments.finetuning.small import BACKBONE, RECIPE, ROWS, write_subset
from tests.training.small_runs import forked_pair

CONFIGS = ROOT / "training" / "configs"


def tune(start, subset, output, **changes):
    fine_tune(replace(RECIPE, init=str(start), data=str(subset), **changes), subset.parent, output)
    return output


@pytest.fixture(scope="module")
def whole(start, tmp_path_factory):
    """The folder of an uninterrupted run, beside its subset; not to be changed."""
    folder = tmp_path_factory.mktemp("runs")
    return tune(start, write_subset(folder / "red.jsonl"), folder / "whole")


def history(output):
    return json.loads((output / "log_history.json").read_text())


def weights(output):
    return load_file(output / "model.safetensors")


def stamps(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_a_run_writes_a_language_model(whole, start):
    before, after = weights(start), weights(whole)
    assert before.keys() == after.keys()
    assert not any(torch.equal(before[name], after[name]) for name in ("lm_head.weight", "model.norm.weight"))
    assert load_text_tokenizer(whole).eos_token == "<end>"
    assert [row["step"] for row in history(whole)] == [1, 2, 3, 4, 5, 6]
    assert history(whole)[-1]["loss"] < history(whole)[0]["loss"]
    assert not (whole / "checkpoints").exists()
    card = json.loads((whole / "sft.json").read_text())
    assert (card["examples"], card["left_out"], card["steps"], card["seed"]) == (24, 0, 6, 42)
    assert (card["data"]["name"], card["data"]["rows"], card["init"]["name"]) == ("red", 24, "start")
    assert str(start.parent) not in (whole / "sft.json").read_text()


@pytest.mark.parametrize(("loss", "accumulation"), [("response", 1), ("response", 3), ("all", 1)])
def test_the_first_loss_is_the_mean_over_the_tokens_to_learn(start, subset, tmp_path, loss, accumulation):
    # One step of all rows but one from the same weights: no order, no dropout.
    rows = [*ROWS, ("2?", "4. " * 60)]
    write_subset(subset, rows)
    output = tune(start, subset, tmp_path / "out", batch_size=24, epochs=1, loss=loss, accumulation=accumulation)
    tokenizer, model = load_text_tokenizer(start), AutoModelForCausalLM.from_pretrained(start)
    total = count = 0
    for query, response in ROWS:
        prompt = tokenizer(f"Question:\n{query}\nAnswer:\n")["input_ids"]
        ids = torch.tensor(prompt + tokenizer(f"{response}<end>")["input_ids"])
        first = len(prompt) if loss == "response" else 1
        with torch.inference_mode():
            logits = model(input_ids=ids[None]).logits[0, first - 1 : -1]
        total += float(torch.nn.functional.cross_entropy(logits, ids[first:], reduction="sum"))
        count += len(ids) - first
    assert history(output)[0]["loss"] == pytest.approx(total / count, abs=1e-4)
    assert json.loads((output / "sft.json").read_text())["left_out"] == 1


def test_a_query_may_hold_braces(start):
    tokenizer = load_text_tokenizer(start)
    example = sft._encode(tokenizer, replace(RECIPE, prompt="Q: {query}\nA: "), r"\frac{1}{2} {query}", "4.")
    assert tokenizer.decode(example.ids) == "Q: \\frac{1}{2} {query}\nA: 4.<end>"
    before = prompt_ids(tokenizer, "Q: \\frac{1}{2} {query}\nA: ")
    assert example.ids[: len(before)].tolist() == before


def test_a_finished_run_is_left_as_it_is_and_another_is_refused(whole, start, subset, tmp_path, capsys):
    before, red = stamps(whole), whole.parent / "red.jsonl"
    tune(start, red, whole, save_steps=3, accumulation=2, notes="again")
    assert "whole is already fine-tuned" in capsys.readouterr().err
    write_subset(subset, ROWS[1:])
    for model, data, changes in ((start, red, {"seed": 43}), (start, subset, {}), (whole, red, {})):
        with refused():
            tune(model, data, whole, **changes)
    assert stamps(whole) == before
    output = tmp_path / "busy"
    output.mkdir()
    with FileLock(output / "running.lock"), refused():
        tune(start, red, output)


def test_impossible_runs_leave_no_folder(start, subset, tmp_path):
    output = tmp_path / "out"
    for changes in ({"max_length": 5}, {"fsdp": True}, {"init": None}, {"data": None}):
        recipe = replace(RECIPE, **({"init": str(start), "data": str(subset)} | changes))
        with refused():
            fine_tune(recipe, tmp_path, output)
    assert not output.exists()


def assert_same_steps(output, expected):
    """Two runs that computed the same steps in other parts."""
    ours, theirs = history(output), history(expected)
    assert [row["step"] for row in ours] == [row["step"] for row in theirs]
    assert [row["loss"] for row in ours] == pytest.approx([row["loss"] for row in theirs], abs=1e-4)
    for name, weight in weights(output).items():
        torch.testing.assert_close(weight, weights(expected)[name], rtol=0, atol=2e-3, msg=name)


def test_parts_of_a_step_learn_what_it_does(start, subset, tmp_path):
    # 17 rows in batches of 8: the last step's second part has no row.
    write_subset(subset, ROWS[:17])
    expected = tune(start, subset, tmp_path / "one")
    assert_same_steps(tune(start, subset, tmp_path / "two", accumulation=2), expected)


@pytest.mark.slow
@pytest.mark.parametrize("fsdp", [False, True])
def test_two_processes_learn_what_one_does(start, subset, tmp_path, fsdp):
    # 17 rows in batches of 8: the last step has one row, and nothing for the second process.
    write_subset(subset, ROWS[:17])
    whole = tune(start, subset, tmp_path / "whole")
    recipe, output = tmp_path / "recipe.yaml", tmp_path / "two"
    recipe.write_text(yaml.safe_dump(json.loads(json.dumps(asdict(replace(RECIPE, fsdp=fsdp))))))
    pair = forked_pair("sft", recipe, "--init", start, "--data", subset, "--output", output)
    assert [process.returncode for process in pair] == [0, 0], pair[0].stderr + pair[1].stderr
    assert_same_steps(output, whole)
    assert json.loads((output / "sft.json").read_text())["devices"] == "2 x cpu"


def test_a_loss_that_is_not_finite_ends_the_run(start, subset, tmp_path):
    with refused():
        tune(start, subset, tmp_path / "out", learning_rate=1e30, clip=1e30)


def test_the_papers_run_is_7b_on_four_gpus():
    recipe = read_recipe(CONFIGS / "mistral-7b-sft.yaml")
    estimate = estimate_fine_tuning(recipe, CONFIGS, None, None)
    # Mistral-7B-v0.1: 32 layers of 2 x 4096 x 4096 + 2 x 4096 x 1024 + 3 x 4096 x 14336 + 2 x 4096 weights, a last
    # norm of 4096, and 32,000 x 4096 weights in the embedding and once more in the head.
    layer = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336 + 2 * 4096
    assert estimate.network.parameters == 32 * layer + 4096 + 2 * 32000 * 4096 == 7_241_732_096
    # 5,222 rows in batches of 32 are 164 steps, four times.
    assert (estimate.steps, estimate.devices) == (4 * 164, 4)
    estimate.check()


def test_the_rows_of_a_plan_are_counted_where_they_are_here(start, subset):
    recipe = replace(RECIPE, init=str(start), data=str(subset))
    estimate = estimate_fine_tuning(recipe, CONFIGS, None, None)
    assert (estimate.traces, estimate.steps) == (24, 6)


def test_a_model_from_scratch_is_a_whole_folder_and_follows_from_its_seed(start, tmp_path):
    texts = [text for row in ROWS for text in row]
    write_scratch_model(tmp_path / "again", texts, BACKBONE, 320, seed=1)
    write_scratch_model(tmp_path / "other", texts, BACKBONE, 320, seed=2)
    weights = [
        (folder / "model.safetensors").read_bytes() for folder in (start, tmp_path / "again", tmp_path / "other")
    ]
    assert weights[0] == weights[1] != weights[2]
    tokenizer, model = load_text_tokenizer(start), load_model(start, Placement(dtype="float32"))
    assert (tokenizer.eos_token, tokenizer.pad_token) == ("<end>", "<pad>")
    # The tokens that are trained, and one that ends a text.
    assert model.config.vocab_size == len(tokenizer) <= 321
    assert model.dtype == torch.float32
    assert tokenizer.decode(prompt_ids(tokenizer, "2 + 3 = 5.")) == "2 + 3 = 5."


def test_an_evaluator_or_an_encoder_is_no_language_model(start, tmp_path):
    write_evaluator(tmp_path / "evaluator", max_position_embeddings=2048)
    encoder = shutil.copytree(start, tmp_path / "encoder")
    config = json.loads((start / "config.json").read_text())
    (encoder / "config.json").write_text(json.dumps(config | {"architectures": ["BertForMaskedLM"]}))
    for spec in (tmp_path / "evaluator", encoder, "nothing here", tmp_path):
        with refused():
            model_folder(str(spec))


def test_a_missing_head_or_end_token_is_named(start, tmp_path):
    folder = shutil.copytree(start, tmp_path / "headless")
    weights = load_file(folder / "model.safetensors")
    del weights["lm_head.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with refused():
        load_model(folder, Placement(dtype="float32"))
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"eos_token": None}))
    with refused():
        load_text_tokenizer(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"prompt": "Q:"},
        {"loss": "answer"},
        {"epochs": 0},
        {"batch_size": 8, "accumulation": 3},
        {"betas": (0.9, 1.0)},
        {"learning_rate": float("nan")},
        {"seed": -1},
        {"saved_dtype": "int8"},
        {"epoch": 4},
    ],
)
def test_meaningless_recipes_are_refused(changes):
    with refused():
        update(RECIPE, **changes)


@pytest.mark.parametrize("text", ['{"query": "2 + 2?"}\n', '\n{"query": "2?", "response": " "}\n', "\n"])
def test_a_row_without_one_of_its_texts_is_named(tmp_path, text):
    (tmp_path / "rows.jsonl").write_text(text)
    with refused():
        read_pairs(tmp_path / "rows.jsonl", "query", "response")
