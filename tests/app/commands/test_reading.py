"""Evaluators with another reading, from the command line: named, noted, kept apart, and refused if need be."""

import json

import pytest

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.storage.judgments.evaluators import list_evaluators
from tests.storage.samples import add

TRACE = Trace.of("1 + 1?", ["It is 2.", "Check: 2 - 1 = 1.", "Done."], ["pos", "neg", None], id="a")


def test_a_file_is_scored_by_a_second_reading(command, tiny_causal, tmp_path):
    file = tmp_path / "traces.jsonl"
    file.write_text(json.dumps({"id": "a", "problem": TRACE.problem, "steps": list(TRACE.substeps)}) + "\n")
    asked = (
        "score",
        "--input",
        file,
        "--evaluator",
        tiny_causal,
        "--reading",
        "both-orders",
        "--mode",
        "hindsight",
    )
    code, out, err = command(*asked)
    assert (code, err) == (0, "tiny-causal was not trained to be read in both orders.\n")
    record = json.loads(out)
    evaluator = load_evaluator(f"{tiny_causal}, read in both orders")
    assert (record["evaluator"], record["fingerprint"]) == (
        "tiny-causal, read in both orders",
        evaluator.fingerprint,
    )
    expected = Scorer(evaluator).score_one(TRACE).hindsight
    assert expected is not None
    assert [row[0][0] for row in record["hindsight"]] == pytest.approx(
        [float(row[0, 0]) for row in expected.rows], abs=1e-5
    )


def test_a_long_solution_is_scored_in_windows(command, tiny, tiny_causal, tmp_path):
    file = tmp_path / "traces.jsonl"
    file.write_text(json.dumps({"id": "a", "problem": "q", "steps": ["1 + 1 = 2."] * 200}) + "\n")
    for spec, options, name in (
        (tiny, (), "tiny, read in windows of 512 tokens"),
        (tiny_causal, ("--reading", "both-orders"), "tiny-causal, read in both orders, in windows of 512 tokens"),
        (f"{tiny_causal}, read in both orders", (), "tiny-causal, read in both orders, in windows of 512 tokens"),
        (f"{tiny}, read in windows of 512 tokens", (), "tiny, read in windows of 512 tokens"),
    ):
        code, out, err = command("score", "--input", file, "--evaluator", spec, "--window", 512, *options)
        assert (code, "windows of at most 512 tokens" in err) == (0, True)
        record = json.loads(out)
        assert (record["evaluator"], len(record["offline"]["steps"])) == (name, 200)
    code, out, err = command("score", "--input", file, "--evaluator", tiny)
    assert (code, out) == (2, "")
    assert "--window 1024" in err


def test_readings_are_measured_side_by_side(command, sqlite_store, tiny_causal):
    add(sqlite_store, [TRACE])
    where = ("--dataset", "sums", "--db", sqlite_store.name, "--json", "--draws", 10)
    for options in ((), ("--reading", "both-orders")):
        assert command("evaluate", "--evaluator", tiny_causal, *options, *where)[0] == 0
    names = ["tiny-causal", "tiny-causal, read in both orders"]
    assert [one.name for one in list_evaluators(sqlite_store)] == names
    # Without a name all that have judged the dataset are measured; none is loaded again.
    code, out, _ = command("evaluate", *where)
    assert code == 0
    assert {row["evaluator"] for row in json.loads(out)["rows"]} >= set(names)
