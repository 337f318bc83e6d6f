import csv
import io
import json

import numpy as np
import pytest
from fastapi.testclient import TestClient

from stepsight.app.browse.address import Address
from stepsight.app.browse.page import CSV_PATH, JSON_PATH, file_address, trace_files
from stepsight.core.files.jsonl import parse_trace
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.label import Label
from stepsight.core.scores import Outputs, StepScores
from stepsight.core.trace import Step, Trace
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from tests.app.client import let_in
from tests.storage.samples import add

TRACE = Trace(
    "=1+1", "What is 1 + 1?", (Step(("a",), valid=True), Step(("=b", "c"), Label.NEG), Step(("d",))), {"by": "hand"}
)  # fmt: skip
SAID = {
    "percent": (Outputs.VALIDITY, [[0.4, 0, 0.6], [0.75, 0, 0.25], [0, 0, 1], [0, 0, 0]], None),
    "words": (Outputs.VERDICT, [[0, 0, 1], [1, 0, 0], [1, 0, 0], [0, 0, 0]], 0.0),
    "number": (Outputs.SOLUTION, [[0, 0, 0]] * 4, 0.25),
}
WHY = {"words": "Step 2."}


@pytest.fixture
def trace(sqlite_store):
    (trace,) = add(sqlite_store, [TRACE])
    for name, (outputs, rows, solution) in SAID.items():
        row = register_evaluator(
            sqlite_store,
            name=name,
            fingerprint=f"imported:{name}",
            format="imported",
            attention="unknown",
            info={"outputs": outputs.value},
        )
        scores = StepScores(np.array(rows, np.float32))
        save_judgments(sqlite_store, row.id, [Judgment(trace, Mode.OFFLINE, scores, solution, WHY.get(name, ""))])
    return trace


@pytest.fixture
def client(sqlite_store, evaluators):
    return TestClient(let_in(trace_files(sqlite_store, evaluators)))


def test_the_json_file_holds_trace_gold_and_judgments(client, trace, evaluators):
    query = {"trace": trace.trace_id, "beside": ["tiny", *SAID]}
    answer = client.get(JSON_PATH, params=query)
    assert answer.headers["content-disposition"] == f'attachment; filename="trace-{trace.trace_id}.json"'
    record = answer.json()
    assert record["valid"] == [True, False, None]
    assert (record["first_error"], record["labels"], record["by"]) == (2, [None, "neg", None], "hand")
    tiny, percent, words, number = record["judgments"]
    judged = evaluators.judge("tiny", trace)
    assert tiny["hindsight"][3][1][0] == pytest.approx(float(judged.hindsight.offline.probs[1, 0]), abs=1e-6)
    assert (tiny["created"] is None, percent["created"] is None) == (True, False)
    assert [step["validity"] for step in percent["offline"]["steps"]] == [0.6, 0.25, 1.0, None]
    assert [step["valid"] for step in words["offline"]["steps"]] == [True, False, False, None]
    assert (words["solution_score"], words["rationale"]) == (0.0, "Step 2.")
    assert (number["offline"], number["solution_score"], number["rationale"]) == (None, 0.25, None)


def test_the_json_file_can_be_imported_again(client, trace):
    record = client.get(JSON_PATH, params={"trace": trace.trace_id}).json()
    again = parse_trace(record, "file")
    assert (again.id, again.problem, again.substeps) == (trace.id, trace.problem, trace.substeps)
    assert again.labels == trace.labels


def test_the_csv_file_has_a_row_per_substep_evaluator_and_mode(client, trace):
    answer = client.get(CSV_PATH, params={"trace": trace.trace_id, "beside": ["tiny", *SAID]})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"), newline="")))
    # tiny has two modes, two others one each, of 4 sub-steps; one number for the solution has a row of its own.
    assert len(rows) == (2 + 1 + 1) * 4 + 1
    assert (rows[-1]["step"], rows[-1]["solution_score"]) == ("", "0.25")
    assert [(row["step"], row["substep"], row["gold"]) for row in rows[:4]] == [
        ("1", "1", "valid"), ("2", "1", "neg"), ("2", "2", "neg"), ("3", "1", ""),
    ]  # fmt: skip
    percent = [row for row in rows if row["evaluator"] == "percent"]
    assert [(row["neg"], row["validity"]) for row in percent] == [("", "0.6"), ("", "0.25"), ("", "1.0"), ("", "")]
    words = [row for row in rows if row["evaluator"] == "words"]
    assert [(row["neg"], row["validity"], row["valid"]) for row in words] == [
        ("", "", "True"), ("", "", "False"), ("", "", "False"), ("", "", ""),
    ]  # fmt: skip
    # What would be a formula is none.
    assert {row["text"] for row in rows[:-1]} == {"a", "'=b", "c", "d"}


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ({}, 422, "No trace is named."),
        ({"trace": "x"}, 422, "trace is 'x', expected a whole number."),
        ({"trace": "999"}, 404, "There is no trace 999."),
        ({"trace": "1", "beside": "nobody"}, 404, "No evaluator 'nobody'"),
    ],
)
def test_a_file_of_a_missing_trace_is_refused(client, trace, query, status, message):
    for path in (JSON_PATH, CSV_PATH):
        answer = client.get(path, params=query)
        assert answer.status_code == status
        assert message in json.loads(answer.text)["error"]


def test_the_address_of_a_file_keeps_what_is_shown():
    address = Address(dataset="sums", trace=3, gold="error", q="x", evaluator="a", beside=("a", "b"))
    assert file_address(CSV_PATH, address) == "/browse/trace.csv?trace=3&amp;evaluator=a&amp;beside=a&amp;beside=b"
