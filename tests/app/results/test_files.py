import csv
import io

import pytest
from fastapi.testclient import TestClient

from stepsight.app.results.measurements import Measurements
from stepsight.app.results.page import PLOTLY, ResultsPage
from stepsight.storage.traces.queries import list_datasets
from tests.app.client import let_in
from tests.app.results.measured import measured
from tests.training.judged import NAME, fill


@pytest.fixture
def client(sqlite_store, evaluators):
    fill(sqlite_store)
    results = Measurements(sqlite_store)
    for dataset in list_datasets(sqlite_store):
        measured(sqlite_store, dataset.name, results)
    return TestClient(let_in(ResultsPage(sqlite_store, evaluators, results).files()))


def test_a_table_of_a_dataset_in_each_format(client):
    asked = {"dataset": NAME, "mode": "online", "errors": "invalid", "table": "three-way-invalid-online"}
    answers = {kind: client.get("/results/table", params=asked | {"format": kind}) for kind in ("csv", "tex", "md")}
    assert {answer.status_code for answer in answers.values()} == {200}
    rows = list(csv.DictReader(io.StringIO(answers["csv"].text.removeprefix("\ufeff"))))
    assert [row["evaluator"] for row in rows][:2] == ["one_mind", "baseline:constant"]
    assert answers["csv"].headers["content-disposition"] == 'attachment; filename="three-way-invalid-online.csv"'
    assert r"\begin{tabular}" in answers["tex"].text
    assert "| one\\_mind" in answers["md"].text


def test_the_overview_with_its_differences(client):
    rows = []
    # The differences may still be on their way.
    for _ in range(50):
        answer = client.get("/results/table", params={"figure": "sol_f1", "against": "baseline:length"})
        if answer.status_code == 200:
            rows = list(csv.DictReader(io.StringIO(answer.text.removeprefix("\ufeff"))))
            break
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
    assert rows[0]["evaluator"] == "one_mind"
    assert float(rows[0]["three-way-invalid-minus"]) == pytest.approx(
        float(rows[0]["three-way-invalid"])
        - float(next(row for row in rows if row["evaluator"] == "baseline:length")["three-way-invalid"])
    )


def test_the_classes_of_the_evaluator_asked_for(client):
    asked = {"dataset": NAME, "table": "three-way-confusion", "evaluator": "one_mind"}
    assert client.get("/results/table", params=asked).text.count("one_mind") == 3


def test_mcnemars_tests_against_the_evaluator_asked_for(client):
    tests = {"dataset": NAME, "mode": "offline", "table": "three-way-mcnemar-words", "against": "words"}
    assert client.get("/results/table", params=tests).text.count("one_mind") == 2


def test_the_report_is_a_file_that_no_browser_shows_here(client):
    answer = client.get("/results/report", params={"dataset": NAME})
    assert answer.headers["content-disposition"] == 'attachment; filename="three-way-report.html"'
    assert answer.headers["content-type"] == "application/octet-stream"
    assert "one_mind" in answer.text


def test_plotly_is_the_package_s_own(client):
    answer = client.get(PLOTLY)
    assert answer.headers["content-type"].startswith("text/javascript")
    assert "immutable" in answer.headers["cache-control"]
    assert "plotly.js v" in answer.text[:200]


@pytest.mark.parametrize(
    ("path", "query", "message"),
    [
        ("/results/table", {"dataset": NAME, "table": "nothing"}, "There is no table 'nothing' of three_way"),
        ("/results/table", {"dataset": NAME, "format": "exe"}, "The format is 'exe', expected csv, tex, md"),
        ("/results/table", {"mode": "x"}, "mode is 'x'"),
        ("/results/report", {"dataset": "nowhere"}, "There is no dataset 'nowhere'"),
        ("/results/report", {}, "the name of the dataset is empty"),
    ],
)
def test_a_missing_table_or_report_is_refused(client, path, query, message):
    assert message in client.get(path, params=query).json()["error"]
