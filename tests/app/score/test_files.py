import csv
import io
import json

import pytest
from fastapi.testclient import TestClient

from stepsight.app.score.entered import Entered
from stepsight.app.score.files import CSV_PATH, JSON_PATH, score_files
from stepsight.core.scores import Thresholds
from stepsight.core.trace import Trace
from stepsight.storage.database.store import open_store
from stepsight.training.evaluate.strength import concluded_record
from tests.app.client import let_in
from tests.app.entries import typed
from tests.cases import each

TRACE = Trace.of("What is 2 + 3?", ["=2 + 3", ["So, 5.", '+1 "quoted"\nline']])
FORM = Entered.of(TRACE, ["tiny", "tiny-causal"], Thresholds(0.4, 0.2))


@pytest.fixture(scope="module")
def client(tmp_path_factory, evaluators):
    with open_store(str(tmp_path_factory.mktemp("files") / "store.db")) as store:
        yield TestClient(let_in(score_files(store, evaluators)))


def test_the_json_file_holds_what_the_command_writes(client, evaluators):
    answer = client.get(JSON_PATH, params={"s": FORM.token()})
    assert answer.headers["content-disposition"] == 'attachment; filename="stepsight.json"'
    records = [
        concluded_record(evaluators.judge(name, TRACE), evaluators.about(name), Thresholds(0.4, 0.2), name=name)
        for name in FORM.evaluators
    ]
    assert json.loads(answer.text) == {
        "id": None,
        "problem": TRACE.problem,
        "steps": ["=2 + 3", ["So, 5.", '+1 "quoted"\nline']],
        "judgments": [record.model_dump(mode="json") for record in records],
    }


def test_the_csv_file_has_a_row_per_evaluator_and_sub_step(client, evaluators):
    answer = client.get(CSV_PATH, params={"s": FORM.token()})
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"), newline="")))
    assert [(row["evaluator"], row["step"], row["substep"]) for row in rows] == [
        (name, *place) for name in FORM.evaluators for place in (("1", "1"), ("2", "1"), ("2", "2"))
    ]
    # What a spreadsheet would calculate is text; a number below 0 is still a number.
    assert [row["text"] for row in rows[:3]] == ["'=2 + 3", "So, 5.", '\'+1 "quoted"\nline']
    hindsight = evaluators.judge("tiny", TRACE).hindsight
    for i, row in enumerate(rows[:3]):
        assert float(row["online_validity"]) == pytest.approx(hindsight.online.validity[i], abs=1e-6)
        assert float(row["offline_neu"]) == pytest.approx(hindsight.offline.neu[i], abs=1e-6)
        assert float(row["change"]) == pytest.approx(hindsight.retroactive[i], abs=2e-6)
        assert row["online_valid"] == str(float(hindsight.online.validity[i]) >= 0.4)


def test_thresholds_of_the_address_decide(client):
    query = {"s": FORM.token(), "valid": "0", "redundant": "1"}
    found = client.get(JSON_PATH, params=query).json()
    assert found["judgments"][0]["thresholds"] == {"validity": 0, "redundancy": 1}
    assert {record["offline"]["solution"]["valid"] for record in found["judgments"]} == {True}
    strict = client.get(JSON_PATH, params=query | {"valid": "1"}).json()
    assert {record["offline"]["solution"]["valid"] for record in strict["judgments"]} == {False}


@each(
    "query, message",
    [
        ({}, "This link was cut or changed."),
        ({"s": FORM.token()[:40]}, "This link was cut or changed."),
        ({"s": FORM.token(), "valid": "2"}, "valid is '2', expected a number from 0 to 1."),
        ({"s": FORM.token(), "redundant": "nan"}, "redundant is 'nan', expected a number from 0 to 1."),
        ({"s": typed("", "a", ("tiny",)).token()}, "The problem is empty."),
        ({"s": typed("q", "a", ("gone",)).token()}, "There is no evaluator 'gone'."),
        ({"s": typed("q", "7" * 20_000, ("tiny",)).token()}, "tiny reads at most 1,024."),
    ],
)
@each("path", [JSON_PATH, CSV_PATH])
def test_a_file_for_a_bad_link_is_refused_with_the_reason(client, path, query, message):
    answer = client.get(path, params=query)
    assert answer.status_code == (404 if "gone" in message else 422)
    assert message in answer.json()["error"]
    assert answer.json()["hint"]
