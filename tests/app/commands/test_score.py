"""`stepsight score` and `stepsight stress`, with evaluators of this machine."""

import gzip
import io
import json
import os
import shutil
import subprocess
import sys

import pytest

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.files.jsonl import parse_trace
from stepsight.core.paths import asset
from stepsight.core.scoring.scorer import Scorer
from stepsight.core.trace import Trace
from stepsight.storage.judgments.evaluators import list_evaluators
from stepsight.storage.judgments.judgments import read_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.training.evaluate.strength import concluded_record
from tests.app.client import assert_alike
from tests.app.commands.test_data import ROWS
from tests.cases import each
from tests.conftest import ROOT
from tests.storage.samples import add, plain_row, write_lines

TOO_LONG = {"id": "long", "problem": "q", "steps": ["x", "7" * 20_000]}


@pytest.fixture
def file(tmp_path):
    return write_lines(tmp_path / "traces.jsonl", ROWS)


@pytest.fixture
def score(typed, tiny, file):
    """Scores a file with the tiny evaluator."""
    return lambda line="", *more: typed.run(f"score --input traces.jsonl {line} --evaluator", tiny, *more)


@pytest.mark.parametrize("mode", [None, "offline", "online", "hindsight"])
def test_a_file_is_scored_in_each_mode(score, tiny, mode):
    outcome = score(f"--mode {mode}" if mode else "")
    assert (outcome.code, outcome.err) == (0, "")
    assert [row["id"] for row in outcome.rows] == ["a", "7", "ü三"]
    scorer = Scorer(load_evaluator(tiny))
    for row, source in zip(outcome.rows, ROWS, strict=True):
        judgment = scorer.score_one(parse_trace(source, "here"), mode or "offline")
        assert_alike(row, concluded_record(judgment, scorer.evaluator).model_dump(mode="json"), 2e-5)


def test_thresholds_of_the_command_line_decide(score):
    lax, strict = score("--validity 0 --redundancy 1").rows, score("--validity 1 --redundancy 0").rows
    for rows, verdict in ((lax, (True, False)), (strict, (False, True))):
        solutions = [row["offline"]["solution"] for row in rows]
        assert {(solution["valid"], solution["redundant"]) for solution in solutions} == {verdict}


def test_the_type_of_the_weights_is_told_beside_the_scores(score):
    validities = []
    for dtype, name in (("float32", "tiny"), ("bfloat16", "tiny (bfloat16)")):
        rows = score(f"--dtype {dtype}").rows
        assert {row["evaluator"] for row in rows} == {name}
        validities.append([step["validity"] for row in rows for step in row["offline"]["steps"]])
    assert validities[0] != validities[1]
    assert validities[0] == pytest.approx(validities[1], abs=0.15)


@each(
    "options",
    [
        "--device auto",
        "--device-map auto",
        "--device-map cpu",
        """--device-map '{"": "cpu"}'""",
        "--dtype float32 --device cpu",
    ],
)
def test_where_it_computes_makes_no_difference(score, options):
    """On a machine with a GPU, none that six digits show."""
    plain, placed = score(), score(options)
    assert placed.code == 0
    for ours, theirs in zip(placed.rows, plain.rows, strict=True):
        assert ours["evaluator"] == theirs["evaluator"]
        assert_alike(ours["offline"], theirs["offline"], 1e-5)


def test_standard_input_compressed_a_file_and_a_pipe_give_the_same(score, tiny, typed, file, tmp_path):
    printed = score()
    stdin = io.TextIOWrapper(io.BytesIO(gzip.compress(file.read_bytes())))
    piped = typed.run("score --input - --evaluator", tiny, stdin=stdin)
    assert (piped.code, piped.out) == (0, printed.out)
    written = score("--output out.jsonl")
    assert (written.code, written.out) == (0, "")
    assert (tmp_path / "out.jsonl").read_text(encoding="utf-8") == printed.out
    # A pipe is written to, and not replaced.
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert score("--output pipe").code == 0
        assert os.read(reader, 100_000).decode() == printed.out
    finally:
        os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_traces_over_the_context_are_named_and_left_out_on_request(score, tmp_path):
    write_lines(tmp_path / "traces.jsonl", [ROWS[0], TOO_LONG, ROWS[2]])
    outcome = score("--skip-too-long")
    assert (outcome.code, [row["id"] for row in outcome.rows]) == (0, ["a", "ü三"])
    first, last = outcome.err.splitlines()
    assert first.startswith("left out: trace 'long' has 20,0")
    assert last == "1 trace left out."


@pytest.mark.parametrize("bad", [{"id": 1, "problem": "q", "steps": ["x", ""]}, TOO_LONG, '{"id": 1'])
def test_a_bad_row_is_named_and_leaves_the_output_as_it_was(typed, tiny, tmp_path, bad):
    shutil.copytree(tiny, tmp_path / "tiny")
    write_lines(tmp_path / "bad.jsonl", [ROWS[0], bad, ROWS[2]])
    for before in (None, "of an earlier run"):
        if before is not None:
            (tmp_path / "out.jsonl").write_text(before)
        typed("score --input bad.jsonl --evaluator ./tiny --output out.jsonl")
        names = {path.name for path in tmp_path.iterdir()}
        assert names == {"bad.jsonl", "tiny"} | ({"out.jsonl"} if before else set())
    assert (tmp_path / "out.jsonl").read_text() == "of an earlier run"


def test_no_trace_at_all_is_an_error(typed):
    typed("score --input -", stdin="\n \n")


def test_stopping_by_hand_says_so_and_leaves_nothing(typed, tiny, tmp_path):
    class Stopped:
        @property
        def buffer(self):
            yield json.dumps(ROWS[0]).encode()
            raise KeyboardInterrupt

    outcome = typed.run("score --input - --output out.jsonl --evaluator", tiny, stdin=Stopped())
    assert (outcome.code, outcome.err.strip()) == (130, "stepsight score: stopped.")
    assert list(tmp_path.iterdir()) == []


def test_a_reader_that_goes_away_is_no_error():
    command = f"{sys.executable} -m stepsight synth --size 3000 | head -n 1; exit ${{PIPESTATUS[0]}}"
    ended = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert json.loads(ended.stdout)["id"] == "synth-0-0"


def test_a_dataset_is_scored_once_and_an_interrupted_run_goes_on(typed, tiny, sqlite_store, tmp_path):
    """A window of 64 traces is scored, then the trace that is too long ends the run."""

    def judged():
        traces = iterate_traces(sqlite_store, find_dataset(sqlite_store, "many").id)
        return [len(read_judgments(sqlite_store, trace)) for trace in traces]

    shutil.copytree(tiny, tmp_path / "tiny")
    rows = [plain_row(i) for i in range(70)]
    rows[66] = TOO_LONG
    write_lines(tmp_path / "many.jsonl", rows)
    typed("import jsonl many.jsonl --dataset many")
    typed("score --dataset many --evaluator ./tiny")
    assert judged() == [1] * 64 + [0] * 6
    typed("score --dataset many --evaluator ./tiny --mode hindsight --skip-too-long")
    # Hindsight holds the offline result.
    typed("score --dataset many --evaluator ./tiny --skip-too-long")
    assert judged() == [1] * 66 + [0] + [1] * 3


STEPS = Trace.of("1 + 1?", ["It is 2.", "Check: 2 - 1 = 1.", "Done."], ["pos", "neg", None], id="a")


def test_a_file_is_scored_by_a_second_reading(typed, tiny_causal, tmp_path):
    write_lines(tmp_path / "a.jsonl", [{"id": "a", "problem": STEPS.problem, "steps": list(STEPS.substeps)}])
    outcome = typed.run("score --input a.jsonl --reading both-orders --mode hindsight --evaluator", tiny_causal)
    assert (outcome.code, outcome.err) == (0, "tiny-causal was not trained to be read in both orders.\n")
    (record,) = outcome.rows
    name = "tiny-causal, read in both orders"
    evaluator = load_evaluator(f"{tiny_causal}, read in both orders")
    assert (record["evaluator"], record["fingerprint"]) == (name, evaluator.fingerprint)
    expected = Scorer(evaluator).score_one(STEPS).hindsight
    assert [row[0][0] for row in record["hindsight"]] == pytest.approx(
        [float(row[0, 0]) for row in expected.rows], abs=1e-5
    )


def test_a_long_solution_is_scored_in_windows(typed, tiny, tiny_causal, tmp_path):
    write_lines(tmp_path / "long.jsonl", [{"id": "a", "problem": "q", "steps": ["1 + 1 = 2."] * 200}])
    windows = "read in windows of 512 tokens"
    both = "tiny-causal, read in both orders, in windows of 512 tokens"
    for spec, options, name in (
        (tiny, "", f"tiny, {windows}"),
        (f"{tiny}, {windows}", "", f"tiny, {windows}"),
        (tiny_causal, "--reading both-orders", both),
        (f"{tiny_causal}, read in both orders", "", both),
        (f"{tiny_causal}, {windows}", "--reading both-orders", both),
    ):
        outcome = typed.run(f"score --input long.jsonl --window 512 {options} --evaluator", str(spec))
        assert (outcome.code, "windows of at most 512 tokens" in outcome.err) == (0, True)
        (record,) = outcome.rows
        assert (record["evaluator"], len(record["offline"]["steps"])) == (name, 200)
    outcome = typed.run("score --input long.jsonl --evaluator", tiny)
    assert (outcome.code, outcome.out, "--window 1024" in outcome.err) == (2, "", True)


def test_readings_are_measured_side_by_side(typed, sqlite_store, tiny_causal):
    add(sqlite_store, [STEPS])
    line = "evaluate --dataset sums --json --draws 10"
    for options in ("", "--reading both-orders"):
        assert typed.run(f"{line} {options} --evaluator", tiny_causal).code == 0
    names = ["tiny-causal", "tiny-causal, read in both orders"]
    assert [row.name for row in list_evaluators(sqlite_store)] == names
    # Without a name all that have judged the dataset are measured; none is loaded again.
    outcome = typed.run(line)
    assert {row["evaluator"] for row in json.loads(outcome.out)["rows"]} >= set(names)


SUMS = [
    Trace.of("Add 2, 3 and 4.", ["2 + 3 = 5.", "5 + 4 = 9.", "The answer is 9."], id=f"sum-{n}") for n in range(4)
]


def test_variants_are_judged_written_and_measured_beside_baselines(typed, sqlite_store, tmp_path):
    add(sqlite_store, SUMS)
    typed("stress --dataset sums --evaluator equations --traces 3 --output stress.jsonl")
    head, *rows = [json.loads(line) for line in (tmp_path / "stress.jsonl").read_text().splitlines()]
    assert (head["source"], head["traces"]) == ("sums", 3)
    assert {row["id"] for row in rows} < {trace.id for trace in SUMS}
    first = next(row for row in rows if row["transform"] == "number-replaced")
    (target,) = first["targets"]
    assert (first["before"][target], first["after"][target]) == (1, 0)
    report = "report --dataset sums --draws 9 --output report --stress stress.jsonl"
    assert typed.run(report).code == 0
    # The tables have the figures that the command prints.
    table = (tmp_path / "report" / "tables" / "sums-stress-change.md").read_text()
    assert [cell.strip() for cell in table.splitlines()[4].split("|")[1:3]] == ["number-replaced", "equations"]
    assert "100.0 [100.0, 100.0]" in table
    assert "Stress test on sums" in (tmp_path / "report" / "report.html").read_text()


def test_evaluators_that_are_the_same_are_measured_once(typed, sqlite_store, tmp_path):
    add(sqlite_store, SUMS)
    shutil.copytree(asset("evaluators", "mini-causal"), tmp_path / "mine")
    outcome = typed.run("stress --dataset sums --transform filler --evaluator mini-causal --evaluator ./mine")
    assert outcome.err == "./mine has the fingerprint of mini-causal, and is measured once.\n"
    names = [line.split()[1] for line in outcome.out.splitlines()[2:5]]
    assert names == ["mini-causal", "baseline:constant", "baseline:length"]


def test_one_transform_of_a_file(typed, tmp_path):
    write_lines(tmp_path / "a.jsonl", [{"id": "a", "problem": "Add.", "steps": ["2 + 3 = 5.", "So it is 5."]}])
    typed("stress --input a.jsonl --evaluator equations --transform sign-turned")
