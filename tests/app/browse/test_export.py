import csv
import io
import json

import pyarrow.parquet
import pytest

from stepsight.app.browse.export import PATH
from stepsight.app.web.access import COOKIE
from stepsight.storage.importers import find_kind, parse_row
from stepsight.storage.judgments.evaluators import find_by_name
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role
from tests.app.client import PAGE, asking
from tests.storage.labelling.labelled_sums import labelled
from tests.storage.people.samples import user
from tests.storage.samples import SAMPLES, add, evaluator, judge


@pytest.fixture
def stored(sqlite_store):
    """Four traces, all judged by one evaluator and the first two by another."""
    traces = add(sqlite_store)
    for name, judged in (("mini", traces), ("other", traces[:2])):
        row = evaluator(sqlite_store, name)
        save_judgments(sqlite_store, row.id, [judge(trace, "offline") for trace in judged])
    return traces


def read_csv(answer):
    return list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"), newline="")))


def logged_in(store, person):
    return {"cookie": f"{COOKIE}={open_login(store, person)}"}


def test_judgments_of_what_the_conditions_select_are_a_table_in_three_formats(client, stored):
    query = {"dataset": "sums", "gold": "error"}
    answer = client.get(PATH, params=query)
    assert answer.headers["content-disposition"] == 'attachment; filename="sums-judgments-2-of-4.csv"'
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    rows = read_csv(answer)
    # "error" has 3 sub-steps and two evaluators, "first" has 4 and one.
    assert [(row["trace"], row["evaluator"]) for row in rows] == (
        [("error", "mini")] * 3 + [("error", "other")] * 3 + [("first", "mini")] * 4
    )
    lines = client.get(PATH, params=query | {"format": "jsonl"})
    assert lines.headers["content-disposition"] == 'attachment; filename="sums-judgments-2-of-4.jsonl"'
    found = [json.loads(line) for line in lines.text.splitlines()]
    assert [str(row["validity"]) for row in found] == [row["validity"] for row in rows]
    table = client.get(PATH, params=query | {"format": "parquet"})
    read = pyarrow.parquet.read_table(io.BytesIO(table.content)).to_pylist()
    # In Parquet numbers are as they are stored, elsewhere to six digits.
    assert read == [pytest.approx(row, abs=1e-6) for row in found]


def test_outcomes_are_a_table_of_a_row_per_trace(client, stored):
    query = {"dataset": "sums", "content": "outcomes", "sort": "-position"}
    rows = read_csv(client.get(PATH, params=query))
    listed = client.get("/api/v1/datasets/sums/traces", params={"evaluator": "mini", "sort": "-position"}).json()
    assert [(row["trace"], row["outcome.mini"]) for row in rows] == [
        (one["id"], one["mistake"]) for one in listed["traces"]
    ]
    # The other evaluator judged the first two alone.
    assert [row["outcome.other"] == "" for row in rows] == [True, True, False, False]
    assert [row["first_error"] for row in rows][-1] == "2"
    (alone, *_) = read_csv(client.get(PATH, params=query | {"by": "mini"}))
    assert list(alone) == ["trace", "steps", "first_error", "redundant_steps", "outcome.mini"]


def test_the_command_writes_the_outcomes_of_the_page_in_the_mode_that_it_is_given(
    client, stored, sqlite_store, command, tmp_path
):
    row = find_by_name(sqlite_store, "mini")
    save_judgments(sqlite_store, row.id, [judge(trace, "online", seed=3) for trace in stored])
    for mode in ("offline", "online"):
        file = tmp_path / f"{mode}.csv"
        line = ["export", "outcomes", "sums", file, "--format", "csv", "--mode", mode, "--db", sqlite_store.name]
        assert command(*line) == (0, f"{file}: 4 traces.\n", "")
        query = {"dataset": "sums", "content": "outcomes", "mode": mode}
        assert file.read_bytes() == client.get(PATH, params=query).content
    assert (tmp_path / "offline.csv").read_bytes() != (tmp_path / "online.csv").read_bytes()


def test_the_file_has_the_order_of_the_list_and_one_evaluators_judgments_alone_where_asked(client, stored):
    rows = read_csv(client.get(PATH, params={"dataset": "sums", "sort": "-position", "by": "other"}))
    assert list(dict.fromkeys(row["trace"] for row in rows)) == ["clean", "error"]
    assert {row["evaluator"] for row in rows} == {"other"}


def test_traces_can_be_imported_again(client, stored):
    answer = client.get(PATH, params={"dataset": "sums", "content": "traces"})
    assert answer.headers["content-disposition"] == 'attachment; filename="sums-traces.jsonl"'
    kind = find_kind("jsonl")
    again = [parse_row(kind, json.loads(line), "row") for line in answer.text.splitlines()]
    assert [trace.digest for trace in again] == [trace.digest for trace in SAMPLES]


def test_the_command_writes_the_same_bytes(client, stored, sqlite_store, command, tmp_path):
    wanted = {
        "judgments": (["--format", "csv", "--by", "mini"], {"by": "mini"}),
        "traces": ([], {"content": "traces"}),
    }
    for what, (options, query) in wanted.items():
        file = tmp_path / what
        code, out, err = command(
            "export", what, "sums", file, "--gold", "error", *options, "--db", sqlite_store.name
        )
        assert (code, err) == (0, "")
        assert out == f"{file}: {'7 rows of ' if what == 'judgments' else ''}2 traces.\n"
        assert file.read_bytes() == client.get(PATH, params={"dataset": "sums", "gold": "error"} | query).content


@pytest.mark.parametrize(
    ("query", "status", "message"),
    [
        ({}, 422, "is empty"),
        ({"dataset": "nothing"}, 404, "There is no dataset 'nothing'"),
        ({"dataset": "sums", "format": "xlsx"}, 422, "format is 'xlsx'"),
        ({"dataset": "sums", "content": "all"}, 422, "content is 'all'"),
        ({"dataset": "sums", "by": "nobody"}, 404, "No evaluator 'nobody'"),
        ({"dataset": "sums", "evaluator": "nobody", "verdict": "valid"}, 404, "No evaluator 'nobody'"),
        ({"dataset": "sums", "verdict": "valid", "evaluator": "tiny"}, 422, "tiny has not judged any trace"),
    ],
)
def test_an_impossible_selection_is_refused_without_a_file(client, stored, query, status, message):
    answer = client.get(PATH, params=query)
    assert answer.status_code == status
    assert message in answer.json()["error"]
    assert "content-disposition" not in answer.headers


def test_the_list_offers_what_it_shows(client, stored):
    page = client.get("/browse", params={"dataset": "sums", "gold": "error"}, headers=PAGE).text
    assert "Download these 2 traces" in page
    assert '<input type="hidden" name="gold" value="error">' in page
    assert '<option value="annotations">' in page
    assert "Download" not in client.get("/browse", params={"dataset": "sums", "q": "nowhere"}, headers=PAGE).text


def test_labels_of_people_are_for_who_runs_campaigns(sqlite_store, evaluators):
    labelled(sqlite_store)
    boss, reader = user(sqlite_store, "head", Role.ADMIN), user(sqlite_store, "eva", Role.ADJUDICATOR)
    query = {"dataset": "sums", "q": "1 + 1"}
    with asking(sqlite_store, evaluators) as client:
        for content in ("labels", "annotations"):
            asked = query | {"content": content}
            assert client.get(PATH, params=asked, headers=logged_in(sqlite_store, reader)).status_code == 403
            answer = client.get(PATH, params=asked, headers=logged_in(sqlite_store, boss))
            assert answer.headers["content-disposition"] == f'attachment; filename="sums-{content}-1-of-3.csv"'
            rows = read_csv(answer)
            assert {row["id"] for row in rows} == {"two"}
            # Of all together, or of each of three; two steps.
            assert len(rows) == {"labels": 2, "annotations": 6}[content]
        shown = [
            client.get("/browse", params=query, headers=PAGE | logged_in(sqlite_store, one)).text
            for one in (boss, reader)
        ]
    assert [("Labels of each person" in page) for page in shown] == [True, False]
