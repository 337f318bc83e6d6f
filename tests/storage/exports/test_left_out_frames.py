"""Scores without a step as frames and files, and files that are read back."""

import pandas as pd
import pytest

import stepsight
from stepsight.app.commands.cli import main
from stepsight.core.trace import Step, Trace
from stepsight.storage.exports.judgment_folders import write_judgments
from stepsight.storage.exports.left_out_frames import COLUMNS
from stepsight.storage.judgments.judgments import trace_records
from stepsight.storage.judgments.left_outs import find_left_out
from stepsight.storage.judgments.score_files import import_scores
from tests.messages import refused
from tests.storage.samples import add, write_lines

# The second step has two sub-steps.
TRACE = Trace("t", "q", (Step(("x",)), Step(("y", "z"))))
ROWS = [
    {"id": "t", "left_out": 1, "whole": [0.9, 0.8, 0.7], "scores": [0.2, 0.6]},
    {"id": "t", "left_out": 3, "whole": [0.9, 0.8, 0.7], "scores": [0.9, 0.8]},
]


@pytest.fixture
def trace(sqlite_store, tmp_path):
    (trace,) = add(sqlite_store, [TRACE])
    import_scores(sqlite_store, "sums", write_lines(tmp_path / "one.jsonl", ROWS), "prm")
    return trace


def test_a_frame_has_a_row_for_each_other_sub_step(sqlite_store, trace):
    found = stepsight.left_out_frame(sqlite_store, "sums")
    assert tuple(found.columns) == COLUMNS
    rows = found[["missing_step", "missing_substep", "step", "substep", "validity", "change"]].round(6)
    assert [tuple(row) for row in rows.to_numpy()] == [
        (1, 1, 2, 1, pytest.approx(0.2), pytest.approx(-0.6)),
        (1, 1, 2, 2, pytest.approx(0.6), pytest.approx(-0.1)),
        (2, 2, 1, 1, pytest.approx(0.9), pytest.approx(0.0)),
        (2, 2, 2, 1, pytest.approx(0.8), pytest.approx(0.0)),
    ]
    assert found.neg.isna().all()
    assert set(found.evaluator) == {"prm"}
    with refused():
        stepsight.left_out_frame(sqlite_store, "sums", "nobody")


def test_files_have_the_rows_of_the_frame(sqlite_store, trace, tmp_path):
    expected = stepsight.left_out_frame(sqlite_store, "sums", ["prm"])
    for form, read in (("csv", pd.read_csv), ("parquet", pd.read_parquet)):
        path = tmp_path / f"out.{form}"
        line = ["export", "left-out", "sums", str(path), "--format", form, "--by", "prm", "--db", sqlite_store.name]
        assert main(line) == 0
        found = read(path)
        assert tuple(found.columns) == COLUMNS
        assert found.change.tolist() == pytest.approx(expected.change.tolist(), abs=1e-6)
        assert found.step.tolist() == expected.step.tolist()
    rows = write_judgments(sqlite_store, tmp_path / "folder", "sums", [trace.trace_id])
    assert rows == {"judgments": 3, "left_out": 4, "traces": 1}


def test_records_are_read_back_in_another_store(sqlite_store, trace, tmp_path):
    (record,) = trace_records(sqlite_store, trace, left_out=True)
    path = tmp_path / "records.jsonl"
    path.write_text(record.model_dump_json() + "\n")
    import_scores(sqlite_store, "sums", path, "again")
    before, after = (find_left_out(sqlite_store, f"imported:{name}", trace) for name in ("prm", "again"))
    assert before is not None
    assert after is not None
    assert after.known == before.known == (0, 2)
    assert abs(after.validity - before.validity)[0, 1:].max() < 1e-6
