"""Every command, with small inputs, in one process that has no network but the machine's own."""

import json
import os
import socket
import subprocess
import sys

import pytest
import yaml

from stepsight.app.commands.cli import COMMANDS
from stepsight.core.paths import asset
from stepsight.storage.database.store import open_store
from stepsight.training.experiments.finetuning.sft import write_scratch_model
from tests.app.commands.test_export import accept
from tests.checkpoints import write_token_classifier
from tests.conftest import ROOT
from tests.hub import Hub
from tests.storage.labelling.labelled_sums import labelled
from tests.training.experiments.finetuning.small import BACKBONE, POOL, PROBLEM, ROWS, STUDY
from tests.training.experiments.grid.toy import write_toy
from tests.training.experiments.reranking.samples import ROWS as CANDIDATES
from tests.training.experiments.reranking.samples import write_rows
from tests.training.small_runs import CONFIG, write_config

# Reaches out once by itself, then runs the commands of a file. `demo` and `app`, which ends the process, are
# asked for a page.
SOURCE = """
import json, os, signal, socket, subprocess, sys, threading, time, urllib.request
from stepsight.app.commands.cli import main

def look(port):
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=60).read()
            break
        except OSError:
            time.sleep(0.1)
    os.kill(os.getpid(), signal.SIGTERM)

subprocess.run([sys.executable, "-c", "import socket; socket.create_connection(('192.0.2.1', 9))"])
for words in json.load(open(sys.argv[1])):
    if "--port" in words:
        threading.Thread(target=look, args=(words[-1],)).start()
    code = main(words)
    if code:
        sys.exit(f"{words} ended with {code}")
"""
RECIPE = {"epochs": 1, "batch_size": 8, "learning_rate": 1e-2, "max_length": 128, "saved_dtype": "float32"}


@pytest.fixture
def hub(tmp_path):
    with Hub().running() as one:
        one.folders["lab/tiny"] = tmp_path / "published"
        write_token_classifier(one.folders["lab/tiny"], "qwen2", max_position_embeddings=1024)
        yield one


def commands(folder):
    """The words of every command, with files that are written to `folder`, which is the current one."""
    db = str(folder / "store.db")
    with open_store(db) as store:
        labelled(store)
        accept(store, "two", 1, "pos")
    write_scratch_model(folder / "start", (text for row in ROWS for text in row), BACKBONE, 320, seed=1)
    (folder / "recipe.yaml").write_text(yaml.safe_dump(RECIPE))
    (folder / "study.yaml").write_text(yaml.safe_dump(STUDY))
    (folder / "pool.jsonl").write_text(POOL)
    (folder / "problems.jsonl").write_text(PROBLEM)
    (folder / "guideline.md").write_text("Label every step.")
    (folder / "scores.jsonl").write_text('{"id": "one", "scores": [0.5]}\n')
    slips = [
        {"id": str(n), "problem": f"Add {n} and 1.", "steps": [f"{n} + 1 = 3."], "labels": ["pos"]} for n in (1, 2)
    ]
    write_rows(folder / "slips.jsonl", slips)
    write_rows(folder / "red.jsonl", [{"query": query, "response": response} for query, response in ROWS])
    write_rows(folder / "candidates.jsonl", CANDIDATES)
    write_config(folder / "train.yaml", CONFIG)
    write_toy(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    lines = f"""
        synth --size 24 --output traces.jsonl
        import jsonl traces.jsonl --dataset made
        datasets
        datasets rename made other
        datasets rename other made
        import-scores sums scores.jsonl --evaluator published
        score --dataset made --evaluator mini-causal
        score --input traces.jsonl --evaluator mini-bidir --output judged.jsonl
        evaluate --dataset made --evaluator equations --mode offline
        calibrate --dataset made --evaluator mini-causal
        import jsonl slips.jsonl --dataset slips
        doubtful --dataset slips
        stress --dataset made --evaluator equations --transform filler
        report --dataset made --output report --force
        report grid {asset("reference", "full-grid-results.json")}
        report filtering {asset("reference", "filter-ablation.json")}
        report paper
        campaign create more made --guideline guideline.md
        campaign rename more less
        campaign delete less --export events.jsonl --yes
        jobs
        agreement first --draws 20
        export labels first labels.jsonl --format jsonl
        export judgments made judgments.csv --format csv
        export outcomes made outcomes.csv --format csv
        export left-out made left-out.csv --format csv
        patch export sums fixes.json
        user list
        evaluators
        evaluators fetch lab/tiny
        rerank candidates.jsonl --evaluator mini-causal --output chosen.jsonl
        filter pool.jsonl --evaluator mini-causal --output subsets --match 2
        train train.yaml --output trained
        grid toy.yaml --output grid --jobs 1
        sft recipe.yaml --init start --data red.jsonl --output tuned
        math500 tuned --problems problems.jsonl --tokens 4 --output measured
        filter-study study.yaml --output study --jobs 1
        work --once
        backup store.backup
        restore store.backup --db other.db
        demo --evaluator mini-causal --port {port}
        app --port {port}
    """
    return [line.split() for line in lines.strip().splitlines()]


@pytest.mark.slow
def test_no_command_reaches_beyond_this_machine_unless_asked_to(tmp_path, monkeypatch, hub):
    monkeypatch.chdir(tmp_path)
    run = commands(tmp_path)
    assert {words[0] for words in run} == set(COMMANDS)
    (tmp_path / "commands.json").write_text(json.dumps(run))
    attempts = tmp_path / "attempts"
    environment = {name: value for name, value in os.environ.items() if "proxy" not in name.lower()} | {
        "PYTHONPATH": os.pathsep.join([str(ROOT / "tests" / "network"), str(ROOT)]),
        "STEPSIGHT_ATTEMPTS": str(attempts),
        "STEPSIGHT_DB": str(tmp_path / "store.db"),
        "STEPSIGHT_CACHE": str(tmp_path / "cache"),
        "HF_HOME": str(tmp_path / "hub"),
        "HF_ENDPOINT": hub.url,
    }
    result = subprocess.run(
        [sys.executable, "-c", SOURCE, "commands.json"],
        env=environment,
        capture_output=True,
        stdin=subprocess.DEVNULL,
    )
    assert result.returncode == 0, result.stderr.decode()[-3000:]
    # That of `SOURCE` alone.
    found = attempts.read_text().splitlines()
    assert [line.split(" from ")[0] for line in found] == ["socket.getaddrinfo 192.0.2.1"], found
    # Nor is the hub told what nobody asked it for.
    assert {path for _, path, *_ in hub.asked if "lab/tiny" not in path} == set()
