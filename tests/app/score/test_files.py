import csv
import io
import json

import pytest
from fastapi.testclient import TestClient

from stepsight.app.score.files import CSV_PATH, JSON_PATH, score_files
from stepsight.app.score.form import ScoreForm
from stepsight.core.judgment import judgment_record
from stepsight.core.scores import Thresholds
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from tests.app.client import let_in

TRACE = Trace.of("What is 2 + 3?", ["=2 + 3", ["So, 5.", '+1 "quoted"\nline']])
FORM = ScoreForm.of(TRACE, ["tiny", "tiny-causal"], Thresholds(0.4, 0.2))


@pytest.fixture(scope="module")
def client(tmp_path_factory, evaluators):
    with open_store(str(tmp_path_factory.mktemp("files") / "store.db")) as store:
        yield TestClient(let_in(score_files(store, evaluators)))


def test_the_json_file_holds_what_the_command_writes(client, evaluators):
    answer = client.get(JSON_PATH, params={"s": FORM.token()})
    assert answer.headers["content-disposition"] == 'attachment; filename="stepsight.json"'
    found = json.loads(answer.text)
    assert found == {
        "problem": TRACE.problem,
        "steps": ["=2 + 3", ["So, 5.", '+1 "quoted"\nline']],
        "thresholds": {"validity": 0.4, "redundancy": 0.2},
        "judgments": [
            judgment_record(evaluators.judge(name, TRACE), name, Thresholds(0.4, 0.2)) for name in FORM.evaluators
        ],
    }


def test_the_csv_file_has_a_row_per_evaluator_and_sub_step(client, evaluators):
    answer = client.get(CSV_PATH, params={"s": FORM.token()})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text, newline="")))
    assert [(row["evaluator"], row["step"]) for row in rows] == [
        (name, step) for name in FORM.evaluators for step in ("1", "2.1", "2.2")
    ]
    # What a spreadsheet would calculate is text; a number below 0 is still a number.
    assert [row["text"] for row in rows[:3]] == ["'=2 + 3", "So, 5.", '\'+1 "quoted"\nline']
    hindsight = evaluators.judge("tiny", TRACE).hindsight
    for i, row in enumerate(rows[:3]):
        assert float(row["online_validity"]) == pytest.approx(hindsight.online.validity[i], abs=1e-6)
        assert float(row["offline_neu"]) == pytest.approx(hindsight.offline.neu[i], abs=1e-6)
        assert float(row["retroactive_change"]) == pytest.approx(hindsight.retroactive[i], abs=1e-6)
        assert row["online_valid"] == str(float(hindsight.online.validity[i]) >= 0.4)


def test_thresholds_of_the_address_decide(client):
    query = {"s": FORM.token(), "valid": "0", "redundant": "1"}
    found = client.get(JSON_PATH, params=query).json()
    assert found["thresholds"] == {"validity": 0, "redundancy": 1}
    assert {record["solution"]["valid"] for record in found["judgments"]} == {True}
    strict = client.get(JSON_PATH, params=query | {"valid": "1"}).json()
    assert {record["solution"]["valid"] for record in strict["judgments"]} == {False}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({}, "This link was cut or changed."),
        ({"s": FORM.token()[:40]}, "This link was cut or changed."),
        ({"s": FORM.token(), "valid": "2"}, "valid is '2', expected a number from 0 to 1."),
        ({"s": FORM.token(), "redundant": "nan"}, "redundant is 'nan', expected a number from 0 to 1."),
        ({"s": ScoreForm("", "a", ("tiny",)).token()}, "The problem is empty."),
        ({"s": ScoreForm("q", "a", ("gone",)).token()}, "There is no evaluator 'gone'."),
        ({"s": ScoreForm("q", "7" * 20_000, ("tiny",)).token()}, "tiny reads at most 1,024."),
    ],
)
@pytest.mark.parametrize("path", [JSON_PATH, CSV_PATH])
def test_what_makes_no_sense_is_refused_with_the_reason(client, path, query, message):
    answer = client.get(path, params=query)
    assert answer.status_code == (404 if "gone" in message else 422)
    assert message in answer.json()["error"]
    assert answer.json()["hint"]


def test_of_one_that_gives_validity_only_the_rest_is_left_out(sqlite_store, mixed):
    client = TestClient(let_in(score_files(sqlite_store, mixed)))
    query = {"s": ScoreForm.of(TRACE, ["math-shepherd", "tiny"], Thresholds(0.5, 0.0)).token()}
    theirs, ours = json.loads(client.get(JSON_PATH, params=query).text)["judgments"]
    assert [list(step) for step in theirs["steps"]] == [["validity"]] * 3
    assert list(theirs["online"]["solution"]) == ["validity", "valid"]
    assert "neu" in ours["steps"][0]
    rows = list(csv.DictReader(io.StringIO(client.get(CSV_PATH, params=query).text, newline="")))
    unsaid = [f"{mode}_{name}" for mode in ("online", "offline")
              for name in ("neg", "neu", "pos", "redundancy", "redundant")]  # fmt: skip
    validity = mixed.judge("math-shepherd", TRACE).hindsight.offline.validity
    for i, line in enumerate(rows[:3]):
        assert {line[name] for name in unsaid} == {""}
        assert float(line["offline_validity"]) == pytest.approx(float(validity[i]), abs=1e-5)
        assert line["offline_valid"] == str(bool(validity[i] >= 0.5))
    assert "" not in {line[name] for line in rows[3:] for name in unsaid}
