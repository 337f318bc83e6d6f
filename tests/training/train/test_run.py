"""Real runs, small enough to take a second."""

import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import signal
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.files.jsonl import format_trace
from stepsight.core.prompts.encoding import Encoder
from stepsight.core.prompts.template import PromptTemplate
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.training.data.sources_config import Data, Source
from stepsight.training.runs import loop
from stepsight.training.synth.corpus import generate
from stepsight.training.train import run
from tests.checkpoints import tiny_tokenizer, write_backbone, write_evaluator
from tests.conftest import ROOT
from tests.forked import Forked
from tests.messages import refused
from tests.training.small_runs import CONFIG, TRACE, forked, synthetic, write_config

# Three steps so small that the weights stay as they were drawn.
FROZEN = replace(CONFIG, data=synthetic(24), epochs=1, learning_rate=1e-30, warmup_steps=0)


def final_weights(output):
    """The last checkpoint's weights: float32, where the evaluator itself keeps float16."""
    return torch.load(output / "checkpoints" / "checkpoint-60" / "state.pt", weights_only=True)["model"]


def assert_same_run(ours, theirs):
    left, right = final_weights(ours), final_weights(theirs)
    assert left.keys() == right.keys()
    for name, tensor in left.items():
        assert torch.equal(tensor, right[name]), name
    for file in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (ours / file).read_bytes() == (theirs / file).read_bytes(), file
    assert history(ours) == history(theirs)


def test_a_run_gives_an_evaluator_that_loads_and_scores(whole):
    evaluator = load_evaluator(whole)
    assert (evaluator.name, evaluator.attention, evaluator.context) == ("whole", "bidirectional", 1024)
    assert evaluator.model.config.vocab_size == 400
    assert evaluator.model.score.weight.dtype == torch.float32
    judgment = Scorer(evaluator).score_one(TRACE)
    assert len(judgment.hindsight) == 3
    torch.testing.assert_close(torch.from_numpy(judgment.offline.probs.sum(1)), torch.ones(3))


def history(output):
    """What was logged, but for the time it took."""
    rows = json.loads((output / "log_history.json").read_text())
    return [{key: value for key, value in row.items() if key != "seconds"} for row in rows]


def test_the_loss_falls_and_every_step_of_a_short_run_is_logged(whole):
    rows = history(whole)
    assert [row["step"] for row in rows] == list(range(1, 61))
    losses = [row["loss"] for row in rows]
    # It starts near ln 3 = 1.099, where all three labels are alike.
    assert 0.5 < np.mean(losses[:5]) < 1.5
    assert np.mean(losses[-20:]) < 0.9 * np.mean(losses[:20])
    assert set(rows[0]) == {"step", "epoch", "loss", "grad_norm", "learning_rate"}
    assert (whole / "training.html").stat().st_size > 1_000_000


def test_an_evaluator_says_how_it_was_made(whole):
    provenance = load_evaluator(whole).provenance
    config = json.loads(json.dumps(asdict(CONFIG)))
    assert provenance["config"] == {key: value for key, value in config.items() if key not in ("notes", "plan")}
    assert (provenance["examples"], provenance["steps"], provenance["init"]) == (240, 60, None)
    assert provenance["versions"]["torch"] == importlib.metadata.version("torch")
    # 400 x 32 tokens, two layers of 4 x 32 x 32 and 3 x 32 x 48, five norms of 32, three labels.
    assert provenance["parameters"] == 12_800 + 2 * (4_096 + 4_608) + 160 + 96
    assert provenance["final_loss"] == pytest.approx(
        np.mean([row["loss"] for row in history(whole)[-10:]]), abs=1e-6
    )
    assert provenance["data"]["traces"] == 240
    assert 240 * 2 * 20 < provenance["tokens"] < 240 * 2 * 1024
    assert 0 < provenance["seconds"] < 300


def test_nothing_in_it_tells_of_the_machine(tmp_path):
    start = write_evaluator(tmp_path / "start", max_position_embeddings=2048)
    output = run.train(replace(FROZEN, backbone=None, init=str(start)), tmp_path / "out")
    text = (output / "stepsight.json").read_text()
    init = json.loads(text)["provenance"]["init"]
    assert init["name"] == json.loads(text)["provenance"]["config"]["init"] == "start"
    assert len(init["fingerprint"]) == 64
    for place in (str(tmp_path), str(ROOT), platform.node()):
        assert f'"{place}' not in text
        assert f"{place}/" not in text


def test_the_same_command_again_changes_nothing(whole, tmp_path, capsys):
    copy = shutil.copytree(whole, tmp_path / "whole")
    before = {path: path.stat().st_mtime_ns for path in copy.rglob("*")}
    run.train(replace(CONFIG, notes="Notes are no part of a run."), copy)
    assert {path: path.stat().st_mtime_ns for path in copy.rglob("*")} == before
    assert "whole is already trained" in capsys.readouterr().err


def test_a_run_stopped_after_its_last_step_is_written_without_another(whole, tmp_path):
    copy = shutil.copytree(whole, tmp_path / "whole")
    for file in ("stepsight.json", "model.safetensors", "log_history.json"):
        (copy / file).unlink()
    run.train(CONFIG, copy)
    assert_same_run(copy, whole)


KILLED = """
import os, signal, sys
from pathlib import Path
from stepsight.training.runs import loop
from stepsight.training.train import run
from stepsight.training.train.config import read_config

class Die(loop.RunProgress):
    def move(self, done):
        if done == 45:
            os.kill(os.getpid(), signal.SIGKILL)

loop.RunProgress = Die
run.train(read_config(sys.argv[1]), Path(sys.argv[2]))
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_as_if_nothing_had_happened(whole, tmp_path):
    config, output = write_config(tmp_path / "config.yaml"), tmp_path / "whole"
    killed = forked(KILLED, config, output)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not (output / "model.safetensors").exists()
    assert sorted(path.name for path in (output / "checkpoints").iterdir()) == ["checkpoint-30", "checkpoint-40"]
    run.train(CONFIG, output)
    assert_same_run(output, whole)


def stop_at(monkeypatch, step, config, output, root=Path()):
    """A run that is interrupted before the step after `step`."""

    class Stop(loop.RunProgress):
        def move(self, done):
            if done == step:
                raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(loop, "RunProgress", Stop)
        with pytest.raises(KeyboardInterrupt):
            run.train(config, output, root)


@pytest.mark.slow
def test_a_stopped_run_goes_on_from_an_end_of_an_epoch(whole, tmp_path, monkeypatch):
    stop_at(monkeypatch, 33, CONFIG, tmp_path / "whole")
    # The checkpoint at step 30 ends the first epoch.
    assert (tmp_path / "whole" / "checkpoints" / "checkpoint-30").exists()
    run.train(CONFIG, tmp_path / "whole")
    assert_same_run(tmp_path / "whole", whole)


@pytest.mark.slow
def test_a_run_goes_on_with_less_memory(whole, tmp_path, monkeypatch):
    stop_at(monkeypatch, 35, CONFIG, tmp_path / "whole")
    run.train(replace(CONFIG, accumulation=4, activation_checkpointing=True), tmp_path / "whole")
    ours, theirs = history(tmp_path / "whole"), history(whole)
    assert ours[:30] == theirs[:30]
    losses = [[row["loss"] for row in rows] for rows in (ours, theirs)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-4)
    left, right = final_weights(tmp_path / "whole"), final_weights(whole)
    for name, tensor in left.items():
        torch.testing.assert_close(tensor, right[name], rtol=0, atol=1e-4, msg=name)


@pytest.mark.slow
def test_an_interrupt_ends_it_and_says_how_to_go_on(tmp_path):
    output = tmp_path / "out"
    command = ["train", write_config(tmp_path / "config.yaml"), "--output", output]
    process = Forked(None, command, {**os.environ, "OMP_NUM_THREADS": "1"})
    for line in process.stderr:
        if line.startswith("22 of 60 steps"):
            process.send_signal(signal.SIGINT)
            break
    out, rest = process.communicate(timeout=120)
    assert process.returncode == 130
    told = rest.splitlines()
    step = int(told[-3].removeprefix("The same command resumes from step ").removesuffix(" of 60."))
    assert step in (20, 30, 40, 50)
    assert told[-1] == "stepsight train: stopped."
    assert (out, "Traceback" in rest) == ("", False)
    assert sorted(path.name for path in output.iterdir()) == ["checkpoints", "config.used.json"]


def test_a_checkpoint_cut_short_is_passed_over(whole, tmp_path):
    copy = shutil.copytree(whole, tmp_path / "whole")
    (copy / "stepsight.json").unlink()
    path = copy / "checkpoints" / "checkpoint-60" / "state.pt"
    path.write_bytes(path.read_bytes()[:-100])
    run.train(CONFIG, copy)
    assert_same_run(copy, whole)


def test_a_folder_with_another_configuration_is_refused(whole):
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*")}
    with refused():
        run.train(replace(CONFIG, seed=14), whole)
    assert {path: path.stat().st_mtime_ns for path in whole.rglob("*")} == before


def test_the_pair_starts_from_the_same_weights_and_differs_in_the_mask_alone(tmp_path):
    bidirectional = run.train(FROZEN, tmp_path / "bidirectional")
    causal = run.train(replace(FROZEN, attention="causal"), tmp_path / "causal")
    for file in ("model.safetensors", "tokenizer.json"):
        assert (bidirectional / file).read_bytes() == (causal / file).read_bytes(), file
    ours, theirs = (json.loads((folder / "config.json").read_text()) for folder in (bidirectional, causal))
    assert {key for key in ours | theirs if ours.get(key) != theirs.get(key)} == {"is_causal"}
    assert [load_evaluator(folder).attention for folder in (bidirectional, causal)] == ["bidirectional", "causal"]
    # The mask changes what is computed: a later step moves the first verdict, or it does not.
    moved = [
        abs(Scorer(load_evaluator(folder)).score_one(TRACE).hindsight.retroactive).max()
        for folder in (bidirectional, causal)
    ]
    assert moved[0] > 0
    assert moved[1] == 0
    other = run.train(replace(FROZEN, seed=14), tmp_path / "other")
    assert (other / "model.safetensors").read_bytes() != (causal / "model.safetensors").read_bytes()


def write_traces(path, traces):
    path.write_text("".join(json.dumps(format_trace(trace)) + "\n" for trace in traces), encoding="utf-8")
    return path.name


def test_a_file_of_labelled_traces_is_learnt_from(tmp_path):
    labelled = list(generate(0, 10))
    unlabelled = Trace.of("q", ["x", "y"], id="unlabelled")
    # Every digit is a token, so these are more than the context of 1,024.
    longer = Trace.of("q", ["7" * 1024], ["pos"], id="longer")
    file = write_traces(tmp_path / "traces.jsonl", [*labelled, unlabelled, longer])
    data = Data((Source("synthetic", size=6), Source("jsonl", path=file, weight=2.0)))
    output = run.train(replace(FROZEN, data=data, truncation="as-labelled"), tmp_path / "out", tmp_path)
    provenance = load_evaluator(output).provenance
    assert provenance["examples"] == 6 + 2 * 10
    read = provenance["data"]["sources"][1]
    assert (read["read"], read["unlabelled"], read["kept"], read["copies"]) == (12, 1, 11, 22)
    sha256 = hashlib.sha256((tmp_path / file).read_bytes()).hexdigest()
    assert read["files"] == [{"path": file, "sha256": sha256, "rows": 12, "bad": []}]


def test_an_evaluator_is_trained_further_under_either_mask(tmp_path):
    start = write_evaluator(tmp_path / "start", max_position_embeddings=2048)
    config = replace(FROZEN, backbone=None, init=str(start), attention="causal")
    trained = load_evaluator(run.train(config, tmp_path / "out"))
    assert trained.attention == "causal"
    source = load_evaluator(start)
    for name, tensor in source.model.state_dict().items():
        torch.testing.assert_close(trained.model.state_dict()[name], tensor, rtol=1e-3, atol=1e-3, msg=name)
    assert trained.encoder.template == source.encoder.template
    # Bidirectional as it was, and not as it would be with the mask of this run.
    assert trained.provenance["init"] == {"name": "start", "fingerprint": source.fingerprint}


def test_positions_that_padding_takes_are_no_room_for_a_trace(tmp_path):
    encoder = Encoder(tiny_tokenizer(), PromptTemplate())
    fits, longer = (Trace.of("q", ["1 + 1 = 2", "So 2" + end], ["pos", "pos"], id=end or "-") for end in ("", " 7"))
    length = len(encoder.encode(fits))
    assert len(encoder.encode(longer)) in (length + 1, length + 2)
    assert length % 32
    # RoBERTa's table has two more rows than its inputs have tokens.
    write_backbone(tmp_path / "plain", "roberta", max_position_embeddings=length + 2)
    data = Data((Source("jsonl", path=write_traces(tmp_path / "traces.jsonl", [fits, longer])),))
    config = replace(FROZEN, data=data, truncation="as-labelled", backbone=None, init="plain")
    trained = load_evaluator(run.train(config, tmp_path / "out", tmp_path))
    assert (trained.provenance["examples"], trained.provenance["left_out"]) == (1, 1)
    assert trained.context == length
    assert len(Scorer(trained).score_one(fits).offline) == 2


def test_a_backbone_that_does_not_say_how_long_an_input_may_be_is_refused(tmp_path):
    # RecurrentGemma has no positions to run out of.
    small = {"hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4}
    write_backbone(tmp_path / "endless", "recurrent_gemma", **small, num_key_value_heads=1, lru_width=24)
    config = replace(FROZEN, attention="causal", backbone=None, init="endless")
    with refused():
        run.train(config, tmp_path / "out", tmp_path)


def test_a_run_does_not_go_on_with_a_file_that_has_changed(tmp_path, monkeypatch):
    traces = list(generate(0, 40))
    config = replace(CONFIG, data=Data((Source("jsonl", path="traces.jsonl"),)))
    write_traces(tmp_path / "traces.jsonl", traces)
    stop_at(monkeypatch, 7, config, tmp_path / "out", tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
    write_traces(tmp_path / "traces.jsonl", [*traces[1:], traces[0]])
    with refused():
        run.train(config, tmp_path / "out", tmp_path)
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before


def test_a_longer_trace_than_allowed_is_left_out_and_counted(tmp_path, capsys):
    config = replace(FROZEN, truncation="as-labelled")
    lengths = [len(load_evaluator(run.train(config, tmp_path / "all")).encode(trace)) for trace in generate(0, 24)]
    limit = sorted(lengths)[15]
    provenance = load_evaluator(run.train(replace(config, max_length=limit), tmp_path / "some")).provenance
    kept = [length for length in lengths if length <= limit]
    assert 16 <= len(kept) < 24
    assert (provenance["examples"], provenance["left_out"]) == (len(kept), 24 - len(kept))
    # An input ends with its last separator, so that nothing was cut.
    assert provenance["tokens"] == sum(kept)
    assert f"{24 - len(kept)} traces left out: over {limit:,} tokens" in capsys.readouterr().err


def test_an_evaluator_is_written_in_the_type_that_is_asked_for(tmp_path):
    output = run.train(replace(FROZEN, saved_dtype="bfloat16"), tmp_path / "out")
    assert {tensor.dtype for tensor in load_file(output / "model.safetensors").values()} == {torch.bfloat16}
    assert json.loads((output / "config.json").read_text())["dtype"] == "bfloat16"


def test_weights_beyond_the_type_are_written_in_float32(tmp_path, capsys):
    start = write_evaluator(tmp_path / "start", max_position_embeddings=2048)
    weights = load_file(start / "model.safetensors")
    # The largest float16 is 65,504.
    weights["score.weight"][0, 0] = 1e5
    save_file(weights, start / "model.safetensors", metadata={"format": "pt"})
    output = run.train(replace(FROZEN, backbone=None, init=str(start)), tmp_path / "out")
    assert load_file(output / "model.safetensors")["score.weight"][0, 0] == 1e5
    assert "saved in float32: float16 cannot hold 100000." in capsys.readouterr().err


@pytest.mark.slow
def test_mixed_precision_keeps_the_weights_in_float32(tmp_path):
    config = replace(CONFIG, epochs=1, data=synthetic(80, seed=3))
    exact = run.train(config, tmp_path / "exact")
    mixed = run.train(replace(config, bf16=True), tmp_path / "mixed")
    weights = torch.load(mixed / "checkpoints" / "checkpoint-10" / "state.pt", weights_only=True)["model"]
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
    losses = [[row["loss"] for row in history(folder)] for folder in (exact, mixed)]
    assert losses[0] != losses[1]
    assert losses[0] == pytest.approx(losses[1], abs=0.05)


@pytest.mark.parametrize(
    "lines",
    [
        ['{"id": 1, "problem": "P", "steps": ["a"], "labels": ["pos"]}', "{"],
        ['{"id": 1, "problem": "P", "steps": ["a"], "labels": []}'],
        ['{"id": 1, "problem": "P", "steps": ["a"]}'],
    ],
)
def test_bad_data_is_named_and_nothing_is_begun(tmp_path, lines):
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join(lines))
    with refused():
        run.train(replace(FROZEN, data=Data((Source("jsonl", path=path.name),))), tmp_path / "out", tmp_path)
    # The folder would be claimed for a configuration that has to be changed.
    assert not (tmp_path / "out").exists()


def test_an_output_that_cannot_be_a_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for output in (tmp_path / "file", tmp_path / "file" / "below"):
        with refused():
            run.train(FROZEN, output)
