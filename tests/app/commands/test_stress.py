"""`stepsight stress`: variants of a file's and of a dataset's traces, and what is printed of them."""

import json
import shutil

from stepsight.core.paths import asset
from stepsight.core.trace import Trace
from tests.storage.samples import add

TRACES = [
    Trace.of("Add 2, 3 and 4.", ["2 + 3 = 5.", "5 + 4 = 9.", "The answer is 9."], id=f"sum-{n}") for n in range(4)
]


def test_variants_are_judged_written_and_measured_beside_baselines(command, sqlite_store, tmp_path):
    add(sqlite_store, TRACES)
    out = tmp_path / "stress.jsonl"
    asked = ("--dataset", "sums", "--db", sqlite_store.name, "--evaluator", "equations", "--traces", 3)
    code, told, err = command("stress", *asked, "--output", out)
    assert (code, err) == (0, "")
    lines = [line.split() for line in told.splitlines()]
    assert ["number-replaced", "equations", "100.0", "[100.0,", "100.0]", "+100.0", "[+100.0,", "+100.0]"] in [
        line[:8] for line in lines
    ]
    assert ["number-replaced", "baseline:constant", "0.0", "[0.0,", "0.0]"] in [line[:5] for line in lines]
    assert ["filler", "equations", "100.0", "[100.0,", "100.0]"] in [line[:5] for line in lines]
    head, *rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert (head["source"], head["traces"]) == ("sums", 3)
    assert {row["id"] for row in rows} < {trace.id for trace in TRACES}
    (first, *_) = [row for row in rows if row["transform"] == "number-replaced"]
    (target,) = first["targets"]
    assert (first["before"][target], first["after"][target]) == (1, 0)
    assert command("stress", *asked) == (0, told, "")
    folder = tmp_path / "report"
    reported = ("report", "--dataset", "sums", "--db", sqlite_store.name, "--draws", 9, "--output", folder)
    assert command(*reported, "--stress", out)[0] == 0
    # The tables have the figures that the command prints.
    table = (folder / "tables" / "sums-stress-change.md").read_text()
    assert [cell.strip() for cell in table.splitlines()[4].split("|")[1:3]] == ["answer-changed", "equations"]
    assert "100.0 [100.0, 100.0]" in table
    assert "Stress test on sums" in (folder / "report.html").read_text()
    out.write_text("{}\n")
    assert "is no result of a stress test" in command(*reported, "--stress", out)[2]


def test_evaluators_that_are_the_same_and_those_that_cannot_judge_a_variant_are_named(
    command, sqlite_store, tmp_path
):
    add(sqlite_store, TRACES)
    folder = shutil.copytree(asset("evaluators", "mini-causal"), tmp_path / "mine")
    asked = ("stress", "--dataset", "sums", "--db", sqlite_store.name, "--transform", "filler", "--evaluator")
    code, told, err = command(*asked, "mini-causal", "--evaluator", folder)
    assert (code, err) == (0, f"{folder} has the fingerprint of mini-causal, and is measured once.\n")
    assert [line.split()[1] for line in told.splitlines()[2:5]] == [
        "mini-causal",
        "baseline:constant",
        "baseline:length",
    ]


def test_one_transform_of_a_file(command, tmp_path):
    file = tmp_path / "traces.jsonl"
    file.write_text(json.dumps({"id": "a", "problem": "Add.", "steps": ["2 + 3 = 5.", "So it is 5."]}) + "\n")
    code, told, _ = command("stress", "--input", file, "--evaluator", "equations", "--transform", "sign-turned")
    assert code == 0
    assert {line.split()[0] for line in told.splitlines()[2:-1]} == {"sign-turned"}
