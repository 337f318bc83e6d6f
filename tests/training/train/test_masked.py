"""Pretraining by masked-token diffusion, against what its definition says."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.files.jsonl import format_trace
from stepsight.core.models.model import IGNORED
from stepsight.core.trace import Trace
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.training.data.examples import Example, build_examples
from stepsight.training.data.mixture import Mixture
from stepsight.training.data.sources_config import Data, Source
from stepsight.training.runs.checkpoints import Checkpoints
from stepsight.training.train import run
from stepsight.training.train.init import initial_model, mask_token
from stepsight.training.train.masked import MaskedExamples, MaskedTokenModel, MaskedTrainer, collate_masked
from stepsight.training.train.trainer import arguments_of
from tests.checkpoints import write_evaluator
from tests.storage.samples import write_lines
from tests.training.small_runs import CONFIG, forked_pair, synthetic, write_config

MASKED = replace(CONFIG, objective="masked-tokens", truncation="as-labelled", learning_rate=3e-3)
SHOWN = np.arange(10, 210)
ONE = Example(SHOWN, np.array([199]), np.array([IGNORED]))


def make(config, folder):
    """A trainer as a run makes it."""
    mixture = Mixture(config.data, Path(), config.truncation, config.seed, labelled=False)
    encoder, model, *_ = initial_model(config, mixture, Path())
    examples, _ = build_examples(mixture, encoder, config.truncation, config.seed, 1024, labelled=False)
    checkpoints = Checkpoints(folder / "checkpoints")
    arguments = arguments_of(config, checkpoints.folder)
    mask = mask_token(encoder.tokenizer)
    return MaskedTrainer(mask, config, MaskedTokenModel(model), examples, arguments, checkpoints)


def test_tokens_are_hidden_at_a_rate_that_is_drawn_for_each_example():
    masked = MaskedExamples([ONE] * 2000, mask=7, seed=3)
    assert len(masked) == 2001
    shares = []
    for example in (masked[place] for place in range(2000)):
        hidden = example.ids == 7
        np.testing.assert_array_equal(example.ids[~hidden], SHOWN[~hidden])
        np.testing.assert_array_equal(example.labels, SHOWN)
        np.testing.assert_array_equal(example.weights > 0, hidden)
        # The loss is divided by the rate, which is the same for the whole example.
        assert len(set(example.weights[hidden])) <= 1
        if hidden.sum() > 20:
            assert 1 / example.weights.max() == pytest.approx(hidden.mean(), abs=0.18)
        shares.append(hidden.mean())
    # Rates are uniform between 0 and 1.
    assert np.histogram(shares, bins=4, range=(0, 1))[0] == pytest.approx([500] * 4, abs=75)
    assert np.mean([masked[place].weights.mean() for place in range(2000)]) == pytest.approx(1, abs=0.05)


def test_hidden_tokens_depend_on_seed_epoch_and_place_alone():
    def shown(seed, epoch, place):
        examples = MaskedExamples([ONE] * 3, mask=7, seed=seed)
        examples.set_epoch(epoch)
        return tuple(examples[place].ids)

    assert shown(1, 0, 2) == shown(1, 0, 2)
    assert len({shown(1, 0, 2), shown(2, 0, 2), shown(1, 1, 2), shown(1, 0, 1)}) == 4


def test_the_example_for_an_empty_part_has_nothing_to_learn():
    empty = MaskedExamples([ONE], mask=7, seed=3)[1]
    assert (empty.labels == IGNORED).all()
    assert (empty.weights == 0).all()


def test_the_loss_is_the_weighted_cross_entropy_of_the_hidden_tokens_over_all_tokens(tmp_path):
    trainer = make(replace(MASKED, data=synthetic(8)), tmp_path)
    model, masked = trainer.model, trainer.train_dataset
    batch = collate_masked([masked[place] for place in range(5)])
    with torch.no_grad():
        loss = float(model(**batch)["loss"])
        share = float(model(**batch, num_items_in_batch=torch.tensor(1000))["loss"])
    total, tokens = 0.0, 0
    for place in range(5):
        example = masked[place]
        with torch.no_grad():
            ids = torch.from_numpy(example.ids)[None]
            hidden = model.model(input_ids=ids, attention_mask=torch.ones_like(ids))[0][0]
            logits = hidden @ model.model.embed_tokens.weight.T
        losses = functional.cross_entropy(logits, torch.from_numpy(example.labels), reduction="none").numpy()
        asked = example.ids != example.labels
        rate = 1 / example.weights.max()
        total += losses[asked].sum() / rate
        tokens += len(example.ids)
    assert loss == pytest.approx(total / tokens, rel=1e-4)
    assert share == pytest.approx(total / 1000, rel=1e-4)


def test_a_step_in_parts_is_the_step_at_once(tmp_path):
    losses = []
    for accumulation in (1, 4):
        trainer = make(replace(MASKED, data=synthetic(27), accumulation=accumulation), tmp_path / str(accumulation))
        trainer.finish()
        losses.append([row["loss"] for row in trainer.state.log_history])
    assert len(losses[0]) == 8
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)


@pytest.fixture(scope="module", params=["bidirectional", pytest.param("causal", marks=pytest.mark.slow)])
def pretrained(request, tmp_path_factory):
    config = replace(MASKED, attention=request.param, data=synthetic(400, seed=3))
    return run.train(config, tmp_path_factory.mktemp("masked") / "pretrained")


@pytest.mark.slow
def test_the_loss_falls_from_that_of_guessing(pretrained):
    losses = [row["loss"] for row in json.loads((pretrained / "log_history.json").read_text())]
    assert losses[0] == pytest.approx(np.log(401), rel=0.2)
    assert np.mean(losses[-20:]) < np.mean(losses[:5]) - 0.5


@pytest.mark.slow
def test_a_run_learns_to_name_what_is_hidden(tmp_path):
    traces = [
        Trace.of("Count.", ["one two three four five six seven eight"], id="1"),
        Trace.of("Spell.", ["a b c d e f g h"], id="2"),
    ]
    write_lines(tmp_path / "two.jsonl", map(format_trace, traces))
    data = Data((Source("jsonl", path=str(tmp_path / "two.jsonl"), weight=400.0),))
    evaluator = load_evaluator(run.train(replace(MASKED, data=data, epochs=4), tmp_path / "out"))
    mask = mask_token(evaluator.encoder.tokenizer)
    tokens, named = [], []
    for trace in traces:
        ids = torch.from_numpy(evaluator.encoder.encode(trace).ids)
        tokens += ids.tolist()
        # One token hidden at a time.
        shown = ids.repeat(len(ids), 1).fill_diagonal_(mask)
        with torch.no_grad():
            hidden = evaluator.model.model(input_ids=shown, attention_mask=torch.ones_like(shown))[0].diagonal().T
            named += ((hidden @ evaluator.model.model.embed_tokens.weight.T).argmax(1) == ids).tolist()
    assert np.mean(named) > 2 * Counter(tokens).most_common(1)[0][1] / len(tokens)


def test_the_steps_are_learnt_from_there(pretrained, tmp_path):
    config = replace(CONFIG, backbone=None, init=str(pretrained), data=synthetic(80), epochs=1)
    config = replace(config, attention=load_evaluator(pretrained).attention)
    output = run.train(config, tmp_path / "steps")
    assert load_evaluator(output).provenance["init"]["name"] == "pretrained"
    assert load_evaluator(output).model.config.vocab_size == 401


def test_the_head_of_the_steps_is_left_as_it_was_drawn(pretrained):
    config = replace(MASKED, data=synthetic(400, seed=3))
    _, model, *_ = initial_model(config, Mixture(config.data, Path(), "as-labelled", 13), Path())
    drawn = model.score.weight.detach().half().float()
    torch.testing.assert_close(load_evaluator(pretrained).model.score.weight.detach(), drawn, rtol=0, atol=0)


def test_an_evaluator_can_be_pretrained_further_and_gets_a_token_for_what_is_hidden(tmp_path):
    start = write_evaluator(tmp_path / "start", max_position_embeddings=2048)
    before = load_evaluator(start)
    assert mask_token(before.encoder.tokenizer) is None
    config = replace(MASKED, backbone=None, init=str(start), data=synthetic(16), epochs=1)
    after = load_evaluator(run.train(config, tmp_path / "out"))
    assert mask_token(after.encoder.tokenizer) is not None
    assert after.model.config.vocab_size >= after.encoder.tokenizer.get_vocab_size()


def test_traces_without_labels_are_learnt_from(tmp_path):
    rows = [{"q": f"What is {i} + 1?", "a": f"We add.\n{i} + 1 = {i + 1}."} for i in range(40)]
    pool = write_lines(tmp_path / "pool.jsonl", rows)
    source = Source("columns", path=str(pool), columns=ColumnMap("q", "a"))
    output = run.train(replace(MASKED, data=Data((source,)), epochs=1), tmp_path / "out")
    assert load_evaluator(output).provenance["examples"] == 40


@pytest.mark.slow
def test_two_processes_learn_what_one_does(tmp_path):
    config = write_config(tmp_path / "config.yaml", replace(MASKED, data=synthetic(24), epochs=1))
    alone = run.train(replace(MASKED, data=synthetic(24), epochs=1), tmp_path / "alone")
    for process in forked_pair("train", config, "--output", tmp_path / "pair"):
        assert process.returncode == 0, process.stderr
    losses = [
        [row["loss"] for row in json.loads((folder / "log_history.json").read_text())]
        for folder in (alone, tmp_path / "pair")
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
