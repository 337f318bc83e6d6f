"""Configurations of real runs that take a second or two, and what their tests share."""

import json
import os
import socket
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import yaml

from stepsight.core.trace import Trace
from stepsight.training.data.examples import build_examples
from stepsight.training.data.mixture import Mixture
from stepsight.training.data.sources_config import Data, Source
from stepsight.training.runs.loop import Loop, connect
from stepsight.training.train.config import Backbone, TrainConfig
from stepsight.training.train.init import initial_model
from stepsight.training.train.run import step_objective
from tests.conftest import ROOT
from tests.forked import Forked


def synthetic(size, seed=0):
    return Data((Source("synthetic", size=size, seed=seed),))


# 240 traces in batches of 8: 30 steps an epoch, 60 in all, checkpoints at 10, 20, …
CONFIG = TrainConfig(
    attention="bidirectional",
    data=synthetic(240, seed=3),
    backbone=Backbone(hidden=32, layers=2, heads=2, mlp=48, context=1024),
    vocabulary=400,
    epochs=2,
    batch_size=8,
    learning_rate=1e-3,
    warmup_steps=5,
    save_steps=10,
)
# One step, not clipped.
ONE = replace(CONFIG, data=synthetic(8), epochs=1, warmup_steps=0, clip=1e9)
TRACE = Trace.of("A pen costs $3. How much are 4 pens?", ["4 * 3 = 12.", "So 13.", "Check: 12 is not 13."])


def make_loop(config, folder):
    """The loop of a run of all weights, as the run makes it."""
    mixture = Mixture(config.data, Path(), config.truncation, config.seed)
    encoder, model, *_ = initial_model(config, mixture, Path())
    examples, _ = build_examples(mixture, encoder, config.truncation, config.seed, config.max_length or 1024)
    objective = step_objective(config, model, model, examples)
    return Loop(connect(config, "train"), config, objective, folder / "checkpoints")


def losses(folder):
    return [row["loss"] for row in json.loads((folder / "log_history.json").read_text())]


def write_config(path, config=CONFIG):
    path.write_text(yaml.safe_dump(json.loads(json.dumps(asdict(config)))))
    return path


def forked(source, *arguments):
    """Run a source with arguments, or without one `stepsight`, on one thread and without loading anything anew;
    returns the finished process with its output."""
    process = Forked(source, arguments, {**os.environ, "OMP_NUM_THREADS": "1"})
    out, err = process.communicate()
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def forked_pair(*arguments, source=None):
    """A source with arguments, or without one `stepsight`, in two processes that know of each other, as torchrun
    starts them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"WORLD_SIZE": 2, "LOCAL_WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    pair = []
    for rank in range(2):
        values = shared | {"RANK": rank, "LOCAL_RANK": rank, "OMP_NUM_THREADS": 1}
        pair.append(Forked(source, arguments, os.environ | {name: str(value) for name, value in values.items()}))
    texts = [process.communicate() for process in pair]
    return [
        subprocess.CompletedProcess(arguments, process.returncode, *text)
        for process, text in zip(pair, texts, strict=True)
    ]


def python(*arguments, **options):
    """Run Python on this checkout, on one thread; returns the finished process with its output."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, **options)


def train_command(config, output, *launcher):
    """`stepsight train` in a process of its own, or in several of a launcher's."""
    return python(*launcher, "-m", "stepsight", "train", config, "--output", output)
