import csv
import io
import tempfile

import pytest

from stepsight.app.access.rights import COOKIE
from stepsight.app.annotate.export import LabelsAddress
from stepsight.storage.labelling.files.export_labels import FORMAT_NAMES, export_labels
from stepsight.storage.people.logins import open_login
from stepsight.storage.people.users import Role
from tests.app.client import PAGE, asking
from tests.cases import each
from tests.storage.labelling.labelled_sums import labelled
from tests.storage.people.samples import user

PATH = LabelsAddress.PATH


@pytest.fixture
def made(sqlite_store):
    return labelled(sqlite_store, name="All of “sums”")


@pytest.fixture
def client(sqlite_store, evaluators):
    with asking(sqlite_store, evaluators) as client:
        yield client


@each("format", FORMAT_NAMES)
def test_every_format_of_the_command_comes_from_the_page_byte_for_byte(
    client, made, sqlite_store, tmp_path, format
):
    answer = client.get(PATH, params={"campaign": made.id, "format": format})
    ending = {"csv": "csv", "label-studio": "json", "argilla": "json"}.get(format, "jsonl")
    name = f'attachment; filename="All-of-sums-labels-{format}.{ending}"'
    assert (answer.status_code, answer.headers["content-disposition"]) == (200, name)
    export_labels(sqlite_store, made.name, tmp_path / format, format)
    assert answer.content == (tmp_path / format).read_bytes()


def test_each_ones_labels_come_where_they_are_asked_for_and_nothing_is_left_behind(
    client, made, tmp_path, monkeypatch
):
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    answer = client.get(PATH, params={"campaign": made.id, "format": "csv", "each": "1"})
    assert answer.headers["content-disposition"] == 'attachment; filename="All-of-sums-labels-csv-by-person.csv"'
    rows = list(csv.DictReader(io.StringIO(answer.content.decode("utf-8-sig"), newline="")))
    assert {row["annotator"] for row in rows} == {"annotator 1", "annotator 2", "annotator 3"}
    # What would be a formula is none.
    assert "'=1+1 begins like a formula, “quoted”" in {row["comment"] for row in rows}
    assert list(folder.iterdir()) == []


def test_a_campaign_that_is_not_there_and_a_format_that_is_none_are_told(client, made):
    assert client.get(PATH, params={"campaign": 99}).status_code == 404
    assert client.get(PATH, params={"campaign": made.id, "format": "xlsx"}).status_code == 422


def test_downloading_labels_of_an_open_campaign_is_an_exposure(sqlite_store, evaluators, made):
    boss = user(sqlite_store, "head", Role.ADMIN)
    login = {"cookie": f"{COOKIE}={open_login(sqlite_store, boss)}"}
    with asking(sqlite_store, evaluators) as client:
        page = client.get("/annotate/campaign", params={"campaign": made.id}, headers=PAGE | login).text
        assert "Download the labels" in page
        assert client.get(PATH, params={"campaign": made.id}, headers=login).status_code == 200
