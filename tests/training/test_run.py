"""Real runs, small enough to take a second."""

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import asdict, replace

import pytest
import torch
import yaml
from safetensors.torch import load_file

from core.errors import UserError
from core.jsonl import format_trace
from core.loading import load_evaluator
from core.scorer import Scorer
from core.trace import Trace
from tests.checkpoints import write_evaluator
from tests.conftest import ROOT
from training import run
from training.config import Backbone, Data, TrainConfig
from training.synth.corpus import generate

# 240 traces in batches of 8: 30 steps an epoch, 60 in all, checkpoints at 10, 20, …
CONFIG = TrainConfig(
    attention="bidirectional",
    data=Data(synthetic=240, seed=3),
    backbone=Backbone(hidden=32, layers=2, heads=2, mlp=48, context=1024),
    vocabulary=400,
    epochs=2,
    batch_size=8,
    learning_rate=1e-3,
    warmup_steps=5,
    save_steps=10,
)
# Three steps so small that the weights stay as they were drawn.
FROZEN = replace(CONFIG, data=Data(synthetic=24), epochs=1, learning_rate=1e-30, warmup_steps=0)
TRACE = Trace.of("A pen costs $3. How much are 4 pens?", ["4 * 3 = 12.", "So 13.", "Check: 12 is not 13."])


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Sums split between threads may round differently, and small ones are quicker on one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of an uninterrupted run; not to be changed."""
    return run.train(CONFIG, tmp_path_factory.mktemp("runs") / "whole")


def final_weights(output):
    """The last checkpoint's weights: float32, where the evaluator itself keeps float16."""
    return load_file(output / "checkpoints" / "checkpoint-60" / "model.safetensors")


def assert_same_run(ours, theirs):
    left, right = final_weights(ours), final_weights(theirs)
    assert left.keys() == right.keys()
    for name, tensor in left.items():
        assert torch.equal(tensor, right[name]), name
    for file in ("model.safetensors", "tokenizer.json", "config.json"):
        assert (ours / file).read_bytes() == (theirs / file).read_bytes(), file


def test_a_run_gives_an_evaluator_that_loads_and_scores(whole):
    evaluator = load_evaluator(whole)
    assert (evaluator.name, evaluator.attention, evaluator.context) == ("whole", "bidirectional", 1024)
    assert evaluator.model.config.vocab_size == 400
    assert evaluator.model.score.weight.dtype == torch.float32
    judgment = Scorer(evaluator).score_one(TRACE)
    assert len(judgment.hindsight) == 3
    torch.testing.assert_close(torch.from_numpy(judgment.offline.probs.sum(1)), torch.ones(3))


def test_the_loss_falls(whole):
    history = json.loads((whole / "log_history.json").read_text())
    losses = [row["loss"] for row in history if "loss" in row]
    assert len(losses) == 60 // 20
    # It starts near ln 3 = 1.099, where all three labels are alike.
    assert losses[-1] < losses[0] < 1.2
    assert losses[-1] < 0.9 * losses[0]


def test_an_evaluator_says_how_it_was_made(whole):
    provenance = load_evaluator(whole).provenance
    config = json.loads(json.dumps(asdict(CONFIG)))
    assert provenance["config"] == {key: value for key, value in config.items() if key != "notes"}
    assert provenance["examples"] == 240
    assert provenance["versions"]["torch"] == torch.__version__


def test_the_same_command_again_changes_nothing(whole, tmp_path):
    copy = shutil.copytree(whole, tmp_path / "whole")
    run.train(replace(CONFIG, notes="Notes are no part of a run."), copy)
    assert_same_run(copy, whole)


KILLED = """
import os, signal, sys
from pathlib import Path
import torch
from training import run
from training.config import read_config

class Die(run.StopOnNan):
    def on_step_begin(self, args, state, control, **_):
        if state.global_step == 45:
            os.kill(os.getpid(), signal.SIGKILL)

torch.set_num_threads(1)
run.StopOnNan = Die
run.train(read_config(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_killed_run_goes_on_as_if_nothing_had_happened(whole, tmp_path):
    config, output = tmp_path / "config.yaml", tmp_path / "whole"
    values = json.loads(json.dumps(asdict(CONFIG)))
    config.write_text(yaml.safe_dump(values))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    killed = subprocess.run([sys.executable, "-c", KILLED, config, output], cwd=tmp_path, env=environment)
    assert killed.returncode == -signal.SIGKILL
    assert not (output / "model.safetensors").exists()
    assert sorted(path.name for path in (output / "checkpoints").iterdir()) == ["checkpoint-30", "checkpoint-40"]
    run.train(CONFIG, output)
    assert_same_run(output, whole)


@pytest.mark.parametrize("step", [7, 33])
def test_a_stopped_run_goes_on_from_the_start_or_from_an_end_of_an_epoch(whole, tmp_path, monkeypatch, step):
    class Stop(run.StopOnNan):
        def on_step_begin(self, args, state, control, **_):
            if state.global_step == step:
                raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(run, "StopOnNan", Stop)
        with pytest.raises(KeyboardInterrupt):
            run.train(CONFIG, tmp_path / "whole")
    # No checkpoint before step 10; the one at step 30 ends the first epoch.
    assert (tmp_path / "whole" / "checkpoints" / "checkpoint-30").exists() == (step == 33)
    run.train(CONFIG, tmp_path / "whole")
    assert_same_run(tmp_path / "whole", whole)


@pytest.mark.parametrize("cut", ["missing", "half"])
def test_a_checkpoint_cut_short_is_passed_over(whole, tmp_path, cut):
    copy = shutil.copytree(whole, tmp_path / "whole")
    last = copy / "checkpoints" / "checkpoint-60"
    state = (last / "trainer_state.json").read_text()
    (last / "optimizer.pt").write_bytes(b"")
    (last / "trainer_state.json").unlink()
    if cut == "half":
        (last / "trainer_state.json").write_text(state[: len(state) // 2])
    run.train(CONFIG, copy)
    assert_same_run(copy, whole)


def test_a_folder_with_another_configuration_is_refused(whole):
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("*")}
    with pytest.raises(UserError, match=r"whole holds a run with another configuration\. Choose another --output"):
        run.train(replace(CONFIG, seed=14), whole)
    assert {path: path.stat().st_mtime_ns for path in whole.rglob("*")} == before


@pytest.mark.parametrize(("traces", "step"), [(200, 20), (48, 6)], ids=["at a log", "before the first log"])
def test_a_loss_that_is_no_number_stops_the_run_and_names_the_step(tmp_path, traces, step):
    diverging = replace(CONFIG, data=Data(synthetic=traces), epochs=1, learning_rate=1e30, warmup_steps=0)
    with pytest.raises(UserError, match=rf"the loss became nan by step {step}\. Lower learning_rate"):
        run.train(diverging, tmp_path / "out")
    assert not (tmp_path / "out" / "model.safetensors").exists()


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
    return str(path)


def test_a_file_of_labelled_traces_is_learnt_from(tmp_path):
    labelled = list(generate(0, 10))
    unlabelled = Trace.of("q", ["x", "y"], id="unlabelled")
    # Every digit is a token, so these are more than the context of 1,024.
    longer = Trace.of("q", ["7" * 1024], ["pos"], id="longer")
    file = write_traces(tmp_path / "traces.jsonl", [*labelled, unlabelled, longer])
    data = Data(synthetic=6, files=(file, file))
    output = run.train(replace(FROZEN, data=data, truncation="as-labelled"), tmp_path / "out")
    assert load_evaluator(output).provenance["examples"] == 6 + 2 * 10


def test_an_evaluator_is_trained_further_under_either_mask(tmp_path):
    start = write_evaluator(tmp_path / "start", max_position_embeddings=2048)
    config = replace(FROZEN, backbone=None, init=str(start), attention="causal")
    trained = load_evaluator(run.train(config, tmp_path / "out"))
    assert trained.attention == "causal"
    source = load_evaluator(start)
    for name, tensor in source.model.state_dict().items():
        torch.testing.assert_close(trained.model.state_dict()[name], tensor, rtol=1e-3, atol=1e-3, msg=name)
    assert trained.encoder.template == source.encoder.template


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['{"id": 1, "problem": "P", "steps": ["a"], "labels": ["pos"]}', "{"], r"traces\.jsonl line 2: not JSON"),
        (['{"id": 1, "problem": "P", "steps": ["a"], "labels": []}'], r"line 1: 0 labels for 1 steps"),
        (['{"id": 1, "problem": "P", "steps": ["a"]}'], "no trace has a label to learn from"),
    ],
)
def test_bad_data_is_named_and_nothing_is_begun(tmp_path, lines, message):
    path = tmp_path / "traces.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(UserError, match=message):
        run.train(replace(FROZEN, data=Data(files=(str(path),))), tmp_path / "out")
    # The folder would be claimed for a configuration that has to be changed.
    assert not (tmp_path / "out").exists()


def test_an_output_that_cannot_be_a_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    for output in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UserError, match=r"file.*: cannot be written .*Choose another --output"):
            run.train(FROZEN, output)
