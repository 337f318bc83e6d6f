"""Scoring with an evaluator behind a server, as it is typed: files, datasets, going on after a server died."""

import json

import numpy as np
import pytest

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.files.jsonl import parse_trace
from stepsight.core.inference_servers import server as requests
from stepsight.core.models.model import VALIDITY
from stepsight.core.scoring.scorer import Scorer
from stepsight.storage.judgments.evaluators import list_evaluators
from stepsight.storage.judgments.judgments import read_judgments
from stepsight.storage.traces.imports import import_file
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from tests.checkpoints import write_qwen_prm
from tests.vllm_server import Classifier, Day, VllmServer, token_id

pytestmark = pytest.mark.slow

ROWS = [
    {
        "id": f"t{number}",
        "problem": f"What is {number} + 3?",
        "steps": [f"{number} + 3 = 5.", "So the answer is 5."],
        "labels": ["pos", "neg" if number % 2 else "pos"],
    }
    for number in range(40)
]

TRIES = 2
"""The requests that try what a server does when it is opened."""


@pytest.fixture
def served(tmp_path, monkeypatch):
    monkeypatch.setattr(requests, "_FIRST_PAUSE", 0.001)
    folder = tmp_path / "prm"
    write_qwen_prm(folder)
    return VllmServer(Classifier(folder, VALIDITY), folder, step_tag=token_id(folder, "<extra_0>"))


@pytest.fixture
def traces(tmp_path):
    path = tmp_path / "traces.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path


def expected(folder, mode):
    judged = Scorer(load_evaluator(folder)).score([parse_trace(row, "") for row in ROWS], mode)
    return {judgment.trace.id: judgment.result for judgment in judged}


def test_a_server_that_dies_leaves_no_half_of_a_file(command, served, traces, tmp_path):
    output = tmp_path / "scores.jsonl"
    with served.running() as url:
        address = served.address(url, requests=4)
        served.day = Day(spares=TRIES, dies_after=12)
        code, _, err = command("score", "--input", traces, "--evaluator", address, "--output", output)
    assert code == 2
    assert err.splitlines()[-1].startswith("stepsight score: http://127.0.0.1")
    assert "Traceback" not in err
    assert not output.exists()


def judged_in(store, mode="offline"):
    dataset = find_dataset(store, "sums")
    found = {}
    for trace in iterate_traces(store, dataset.id):
        for judgment in read_judgments(store, trace):
            found[trace.id] = judgment
    return found


def test_a_dataset_goes_on_where_the_server_died(command, served, traces, store):
    import_file(store, "plain", traces, "sums")
    with served.running() as url:
        served.day = Day(spares=TRIES, dies_after=15)
        code, _, err = command(
            "score", "--dataset", "sums", "--evaluator", served.address(url, requests=4), "--db", store.name
        )
    assert code == 2
    assert "the server broke the connection" in err
    assert "start again to continue" in err
    before = judged_in(store)
    # Four were under way; none is there twice, wrong or halved.
    assert 11 <= len(before) <= 15
    served.day = Day(fails_every=3)
    with served.running() as url:
        code, _, err = command(
            "score", "--dataset", "sums", "--evaluator", served.address(url, requests=4), "--db", store.name
        )
    assert code == 0, err
    assert f"{len(before)} were judged before" in err
    after = judged_in(store)
    by_hand = expected(served.folder, "offline")
    assert after.keys() == by_hand.keys()
    for name, judgment in after.items():
        np.testing.assert_allclose(judgment.result.probs, by_hand[name].probs, atol=1e-5)
    (evaluator,) = list_evaluators(store)
    assert (evaluator.name, evaluator.format, evaluator.dtype) == ("prm (vllm)", "qwen-prm", "served")
    # Each trace once, beside the 500s and what tries the server.
    assert served.day.asks - served.day.asks // 3 == 40 - len(before) + TRIES


def test_a_trace_that_is_too_long_for_the_server_is_left_out(command, served, traces, store):
    served.context = 60
    rows = [*ROWS[:3], {"id": "long", "problem": "q", "steps": ["7" * 300]}]
    traces.write_text("".join(json.dumps(row) + "\n" for row in rows))
    import_file(store, "plain", traces, "sums")
    with served.running() as url:
        argv = ["score", "--dataset", "sums", "--evaluator", served.address(url), "--db", store.name]
        code, _, err = command(*argv)
        assert code == 2
        assert "raise vLLM's --max-model-len" in err
        code, _, err = command(*argv, "--skip-too-long")
    assert code == 0, err
    assert "1 trace left out" in err
    assert sorted(judged_in(store)) == ["t0", "t1", "t2"]
