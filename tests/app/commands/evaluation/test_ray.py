"""`stepsight score` and `stepsight evaluate` with workers on Ray, one of which is killed."""

import json
import os
import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from sqlalchemy import delete, func, select

from stepsight.core.models.placement import Placement
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import JudgmentRow
from stepsight.storage.database.store import open_store
from stepsight.storage.judgments.evaluators import list_evaluators
from stepsight.storage.judgments.judgments import read_many
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.training.runs.ray_scoring import load_for_workers
from tests.checkpoints import write_evaluator
from tests.messages import refused
from tests.ray_workers import needs_ray, with_a_death
from tests.storage.samples import add

pytestmark = pytest.mark.slow

COUNT = 70
TRACES = [
    Trace.of(
        f"What is {i} + 3?",
        [*[f"{i} + 3 = {i + 3}."] * (1 + i % 4), "So that."],
        [*["pos"] * (1 + i % 4), "neg" if i % 3 else "pos"],
        id=f"t{i}",
    )
    for i in range(COUNT)
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """It reads at most 256 tokens."""
    return write_evaluator(tmp_path_factory.mktemp("evaluators") / "tiny")


@pytest.fixture
def file(tmp_path):
    """With a trace that is too long for the evaluator, so that no window begins where its number says."""
    rows = [
        {"id": one.id, "problem": one.problem, "steps": [list(step.substeps) for step in one.steps]}
        for one in TRACES
    ]
    rows.insert(5, {"id": "long", "problem": "What?", "steps": ["1 + 1 = 2. " * 200]})
    path = tmp_path / "traces.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def judged(store):
    """What is stored of each trace, each of which has one judgment."""
    traces = list(iterate_traces(store, find_dataset(store, "sums").id))
    assert len(list_evaluators(store)) == 1
    return {judgment.trace.id: judgment.result.probs for (judgment,) in read_many(store, traces)}


@pytest.fixture(autouse=True)
def on_one_thread():
    """As the processes that it is compared with: other batches have another last bit."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@needs_ray
def test_a_file_is_that_of_one_process_where_a_worker_dies(command, tmp_path, tiny, file):
    score = ["score", "--input", file, "--evaluator", tiny, "--mode", "hindsight", "--skip-too-long"]
    code, _, alone = command(*score, "--output", tmp_path / "alone.jsonl")
    assert code == 0
    done = with_a_death(tmp_path / "notes", 2, *score, "--output", tmp_path / "out.jsonl")
    assert done.stdout == ""
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == COUNT
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "alone.jsonl").read_bytes()
    # What is left out is told once.
    assert [line for line in done.stderr.splitlines() if "left out" in line] == alone.splitlines()


@needs_ray
def test_judgments_are_those_of_one_process_and_a_run_goes_on(command, tmp_path, tiny, store):
    add(store, TRACES)
    db, alone = store.name, str(tmp_path / "alone.db")
    with open_store(alone) as other:
        add(other, TRACES)
    score = ["score", "--dataset", "sums", "--evaluator", tiny]
    assert command(*score, "--db", alone)[0] == 0
    with open_store(alone) as other:
        whole = judged(other)
    done = with_a_death(tmp_path / "notes", 1, *score, "--db", db)
    assert f"sums: {COUNT} traces judged by tiny (offline), 0 were judged before." in done.stderr
    found = judged(store)
    assert found.keys() == whole.keys()
    assert all((found[name] == whole[name]).all() for name in whole)
    # As if it had been interrupted: only what is missing is judged, by the other command too.
    with store.write() as session:
        session.execute(delete(JudgmentRow).where(JudgmentRow.trace_id % 2 == 0))
    options = ["--mode", "offline", "--force", "--draws", 20, "--json", "--db", db]
    again = with_a_death(tmp_path / "again", 1, "evaluate", "--dataset", "sums", "--evaluator", tiny, *options)
    rows = [row for row in json.loads(again.stdout)["rows"] if row["evaluator"] == "tiny"]
    assert [row["n_traces"] for row in rows] == [COUNT] * len(rows) != []
    parts = {line.split()[1] for line in (tmp_path / "again" / "calls").read_text().splitlines()}
    assert len(parts) == 3
    for name, probs in judged(store).items():
        np.testing.assert_allclose(probs, whole[name], atol=1e-5)


MANY = (os.cpu_count() or 1) + 1


@needs_ray
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--workers", 2], "--workers goes with --engine ray."),
        (["--engine", "ray", "--workers", 0], "--workers is 0, expected 1 or more."),
        (["--engine", "ray", "--workers", MANY], f"CPUs, and --workers {MANY} needs {MANY}. Give fewer."),
        (["--engine", "ray", "--evaluator", "vllm:http://localhost:1/v1#m"], "is behind a server"),
        (["--engine", "ray", "--evaluator", "critic:http://localhost:1/v1#m"], "is behind a server"),
        (["--engine", "ray", "--evaluator", "nobody"], "there is no evaluator 'nobody'."),
        (["--engine", "ray", "--device-map", '{"": "cpu"}'], "a worker of --engine ray has one device."),
    ],
)
@pytest.mark.parametrize("subcommand", ["score", "evaluate", "file"])
def test_refusals(command, tmp_path, tiny, file, sqlite_store, subcommand, options, message):
    add(sqlite_store, TRACES[:3])
    heads = {
        "score": ["score", "--dataset", "sums", "--db", sqlite_store.name],
        "evaluate": ["evaluate", "--dataset", "sums", "--db", sqlite_store.name],
        "file": ["score", "--input", file, "--skip-too-long", "--output", tmp_path / "out.jsonl"],
    }
    given = [] if "--evaluator" in options else ["--evaluator", tiny]
    code, out, err = command(*heads[subcommand], *given, *options)
    assert (code, out) == (2, "")
    assert message in err
    assert len([line for line in err.splitlines() if "left out" not in line]) == 1
    assert not (tmp_path / "out.jsonl").exists()
    with sqlite_store.read() as session:
        assert session.scalar(select(func.count()).select_from(JudgmentRow)) == 0


def test_without_ray_its_extra_is_named(command, file, tmp_path, tiny, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    output = tmp_path / "out.jsonl"
    code, out, err = command("score", "--input", file, "--evaluator", tiny, "--engine", "ray", "--output", output)
    assert (code, out) == (2, "")
    assert "--engine ray needs Ray. Run: pip install 'stepsight[ray]'" in err
    assert not output.exists()


@needs_ray
def test_several_processes_do_not_each_start_workers(command, sqlite_store, tiny, monkeypatch):
    add(sqlite_store, TRACES[:3])
    for name, value in (("WORLD_SIZE", "2"), ("RANK", "0"), ("LOCAL_RANK", "0")):
        monkeypatch.setenv(name, value)
    code, _, err = command("score", "--dataset", "sums", "--engine", "ray", "--db", sqlite_store.name)
    assert code == 2
    assert "--engine ray goes with one process, and several were launched." in err


@needs_ray
def test_an_evaluator_missing_or_changed_on_a_worker_is_refused(tmp_path, tiny):
    _, theirs = load_for_workers(str(tiny), Placement())
    with refused():
        replace(theirs, fingerprint="0" * 64).load()
    with refused():
        replace(theirs, spec=str(tmp_path / "nowhere")).load()
