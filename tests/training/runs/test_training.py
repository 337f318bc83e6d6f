"""What both trainers share; what they do with it is tested with each."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from playwright.sync_api import sync_playwright
from transformers import TrainingArguments

from stepsight.training.runs.training import (
    Safeguard,
    arguments_for,
    draw_history,
    last_checkpoint,
    logging_steps,
    write_history,
)
from tests.browser import launch
from tests.messages import refused
from tests.training.small_runs import CONFIG


def test_a_history_has_a_hundred_rows_or_a_row_for_twenty_steps():
    steps = {1: 1, 99: 1, 199: 1, 200: 2, 750: 7, 1999: 19, 2000: 20, 12_000: 20}
    assert {of: logging_steps(of) for of in steps} == steps


def test_one_process_is_too_few_to_shard(tmp_path):
    with refused():
        arguments_for(TrainingArguments, replace(CONFIG, fsdp=True), tmp_path, "sft")


@pytest.mark.parametrize("fsdp", [False, True])
def test_activation_checkpointing_is_requested_once(tmp_path, monkeypatch, fsdp):
    """With FSDP it is FSDP's own."""
    monkeypatch.setattr(TrainingArguments, "world_size", 2)
    config = replace(CONFIG, fsdp=fsdp, activation_checkpointing=True)
    made = arguments_for(TrainingArguments, config, tmp_path, "train")
    assert (made.activation_checkpointing, made.fsdp_config["activation_checkpointing"]) == (not fsdp, True)


def write(folder, step):
    checkpoint = folder / f"checkpoint-{step}"
    (checkpoint / "optimizer_0").mkdir(parents=True, exist_ok=True)
    (checkpoint / "model.safetensors").write_bytes(b"1234")
    (checkpoint / "optimizer_0" / "0.distcp").write_bytes(b"12345")
    arguments = SimpleNamespace(should_save=True, output_dir=folder)
    Safeguard().on_save(arguments, SimpleNamespace(global_step=step), None)
    return checkpoint


@pytest.mark.parametrize("file", ["model.safetensors", "optimizer_0/0.distcp", "contents.json"])
@pytest.mark.parametrize("damage", ["shorter", "longer", "missing"])
def test_the_newest_whole_checkpoint_is_the_last(tmp_path, file, damage):
    assert last_checkpoint(tmp_path / "none") == (0, None)
    # 100 comes after 15, though not in the alphabet.
    first, second = write(tmp_path, 15), write(tmp_path, 100)
    (tmp_path / "checkpoint-old").mkdir()
    assert last_checkpoint(tmp_path) == (100, second)
    content = (second / file).read_bytes()
    (second / file).unlink()
    if damage != "missing":
        (second / file).write_bytes(content[:-3] if damage == "shorter" else content + b"!")
    assert last_checkpoint(tmp_path) == (15, first)
    write(tmp_path, 100)
    assert last_checkpoint(tmp_path) == (100, second)


ROWS = [
    {"loss": 1.0 / step, "grad_norm": 10.0 / step, "learning_rate": 1e-3 * step, "step": 20 * step}
    for step in range(1, 13)
]


def test_the_figure_has_loss_norm_and_rate_against_the_step():
    figure = draw_history(ROWS, "mini")
    assert [curve.name for curve in figure.data] == ["Cross-entropy", "Gradient norm", "Learning rate"]
    assert all(list(curve.x) == list(range(20, 241, 20)) for curve in figure.data)
    assert list(figure.data[0].y) == [row["loss"] for row in ROWS]
    assert list(figure.data[1].y) == [row["grad_norm"] for row in ROWS]
    assert list(figure.data[2].y) == [row["learning_rate"] for row in ROWS]
    assert (figure.layout.yaxis.type, figure.layout.yaxis2.type) == (None, "log")
    assert figure.layout.title.text == "mini"


def test_a_run_without_a_row_has_an_empty_figure():
    assert [len(curve.x) for curve in draw_history([], "none").data] == [0, 0, 0]


def test_the_page_needs_no_network(tmp_path):
    write_history(ROWS, "mini", tmp_path)
    asked = []
    with sync_playwright() as playwright:
        browser = launch(playwright)
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto((tmp_path / "training.html").as_uri())
        page.wait_for_selector(".scatterlayer .js-line")
        browser.close()
    assert asked == [(tmp_path / "training.html").as_uri()]
