"""The Data page without a browser: what it shows, and what it does with files."""

import json

import pytest

from stepsight.app.jobs.worker import Worker
from stepsight.app.web.pages import PART
from stepsight.core.trace import Trace
from stepsight.storage.database.jobs_schema import State
from stepsight.storage.jobs.jobs import list_jobs, start_job, take_job, update_job
from stepsight.storage.jobs.uploads import list_uploads
from stepsight.storage.labelling.campaigns import find_campaign
from stepsight.storage.labelling.submissions import iterate_annotations
from stepsight.storage.people.users import local_user
from stepsight.storage.traces.queries import find_dataset, list_datasets
from tests.app.elements import read
from tests.storage.samples import add, plain_row

WILD = "<script>alert(1)</script> ${x} \"'.jsonl"


def send(client, content, name="mine.jsonl"):
    answer = client.post("/data/uploads", params={"name": name}, content=content)
    assert answer.status_code == 201, answer.text
    return answer.json()["upload"]


def page_of(client):
    return read(client.get("/data", headers={PART: "1"}).text)


def fetching(page):
    return [one for one in page.all("button") if "data-fetch" in one.attributes]


def waiting_files(client):
    return page_of(client).all("li", cls="file")


def rows(*bad, good=2):
    lines = [json.dumps(plain_row(number)) for number in range(good)] + list(bad)
    return "\n".join(lines).encode()


def add_files(client, *files):
    return client.post("/data/imports", json={"files": list(files)})


def test_an_empty_store_offers_benchmarks_and_a_place_for_files(client):
    page = page_of(client)
    assert [one.text for one in page.all("h2")] == ["Add files", "In this store", "Public benchmarks"]
    assert len(fetching(page)) == 9
    (first, *_) = fetching(page)
    assert first["data-fetch"] == "mr-math-invalid"
    assert "none stated" in page.text
    assert "Their hash is unknown" in page.text
    assert "open" in page.one("details", data_key="catalogue").attributes


def test_a_file_is_looked_at_added_and_listed(client, sqlite_store):
    upload = send(client, rows(), WILD)
    shown = client.get(f"/data/uploads/{upload}").text
    assert "<script>alert" not in shown
    page = read(shown)
    (row,) = page.all("li", data_upload=str(upload))
    assert (row["data-holds"], "ready" in row["class"]) == ("traces", True)
    assert "2 traces" in row.text
    assert "Problem 0" in row.text
    started = add_files(client, {"upload": upload, "holds": "traces", "dataset": "mine", "kind": "plain"})
    assert started.status_code == 201
    waiting = read(client.get("/data/state").text)
    assert "waiting" in waiting.text
    # What is being added does not wait to be added.
    assert waiting_files(client) == []
    assert Worker(sqlite_store).work_one()
    (job,) = list_jobs(sqlite_store)
    assert (started.json(), job.state, job.dataset) == ({"jobs": [job.id]}, State.DONE, "mine")
    after = read(client.get("/data/state").text)
    assert "mine" in after.text
    assert any(cell.attributes.get("title", "").startswith("SHA-256 ") for cell in after.all("td"))
    assert "Being added" not in after.text
    assert "mine: 2 traces added; 2 in the dataset." in client.get("/jobs/list").text
    described = client.get(f"/api/v1/jobs/{job.id}").json()
    assert (described["task"], described["mode"], described["dataset"]) == ("import", None, "mine")


def test_a_dataset_without_labels_says_so_where_its_errors_would_stand(client, sqlite_store):
    upload = send(client, json.dumps({"id": "1", "problem": "?", "steps": ["One."]}).encode())
    add_files(client, {"upload": upload, "holds": "traces", "dataset": "mine", "kind": "plain"})
    assert Worker(sqlite_store).work_one()
    (row,) = read(client.get("/data/state").text).one("table", cls="datasets").one("tbody").all("tr")
    assert [cell.text for cell in row.all("td", cls="number")] == ["1", "no labels", "0"]


def label_studio(**about):
    """A file of Label Studio with the labels pos and neg of a trace."""
    choices = [
        {
            "type": "choices",
            "from_name": f"label_{place}",
            "to_name": f"step_{place}",
            "value": {"choices": [label]},
        }
        for place, label in enumerate(("pos", "neg"))
    ]
    said = {"created_at": "2026-03-01T09:30:00+00:00", "result": choices} | about
    task = {"data": {"problem": "?", "steps": ["One.", "Two."]}, "annotations": [said]}
    return json.dumps([task]).encode()


def test_labels_of_label_studio_are_put_into_a_campaign(client, sqlite_store):
    add(sqlite_store, [Trace.of("?", ["One.", "Two."], id="a")], "sums")
    upload = send(client, label_studio(completed_by="ada@lab"), "tasks.json")
    page = read(client.get(f"/data/uploads/{upload}").text)
    (row,) = page.all("li", data_upload=str(upload))
    assert (row["data-holds"], "ready" in row["class"]) == ("labels", True)
    assert "1 row of Label Studio" in " ".join(row.text.split())
    wanted = {"upload": upload, "holds": "labels", "dataset": "sums", "campaign": ""}
    assert add_files(client, wanted).json()["error"] == "tasks.json: the name of the campaign is empty."
    # The person who adds them is the one who asks, whatever the request says.
    assert add_files(client, wanted | {"campaign": "again", "user": 99}).status_code == 201
    assert Worker(sqlite_store).work_one()
    (job,) = list_jobs(sqlite_store)
    assert (job.state, job.dataset, job.reason) == (
        State.DONE, "sums", "again: 1 annotation added."
    )  # fmt: skip
    again = find_campaign(sqlite_store, "again")
    (given,) = iterate_annotations(sqlite_store, again.id)
    assert (given.user, list(given.labels)) == ("ada@lab", ["pos", "neg"])


def test_labels_without_an_annotator_ask_for_one(client, sqlite_store):
    add(sqlite_store, [Trace.of("?", ["One.", "Two."], id="a")], "sums")
    for annotator, reason in (
        ("", "tasks.json row 1: the annotator is not named. Name them."),
        ("zoe", "again: 1 annotation added."),
    ):
        upload = send(client, label_studio(), "tasks.json")
        wanted = {"upload": upload, "holds": "labels", "dataset": "sums", "campaign": "again"}
        add_files(client, wanted | {"annotator": annotator})
        assert Worker(sqlite_store).work_one()
        assert list_jobs(sqlite_store)[0].reason == reason


def test_bad_rows_are_named_before_anything_is_stored_and_can_be_had_afterwards(client, sqlite_store):
    upload = send(client, rows("{", '{"id": "z", "problem": "?"}'))
    asked = {"upload": upload, "holds": "traces", "dataset": "mine", "kind": "plain"}
    add_files(client, asked)
    assert Worker(sqlite_store).work_one()
    assert list_datasets(sqlite_store) == []
    state = client.get("/data/state").text
    assert "Not added" in state
    assert "2 of 4 rows are bad, so that nothing was stored" in state
    # The file is still here, to be opened with the same settings and added otherwise.
    assert len(waiting_files(client)) == 0
    button = read(state).one("button", data_mend=str(upload))
    assert button["data-given"] == "kind=plain&dataset=mine&mode=offline"
    add_files(client, asked | {"leave_out": True})
    assert "Not added" not in client.get("/data/state").text
    assert Worker(sqlite_store).work_one()
    assert (find_dataset(sqlite_store, "mine").traces, find_dataset(sqlite_store, "mine").left_out) == (2, 2)
    listed = client.get("/data/left-out?dataset=mine")
    assert [json.loads(line)["place"] for line in listed.text.splitlines()] == ["line 3", "line 4"]
    assert "attachment" in listed.headers["content-disposition"]
    assert client.get("/data/left-out?dataset=nowhere").status_code == 404


NAMED = "kind=columns&problem=Ask&steps=Work&dataset=own"
DOUBT = {"problem": "?", "solution": "It is 5.", "responses": ["2 + 3 = 6.\nSo 6.", "So 5."], "label": 1}
LOOKED_AT = {
    "two columns": ("t.csv", b"Ask,Work,Gold\n?,Step 1: a,[1]\n", ["", NAMED]),
    # First what the number means, then which column is judged; its name is none that the page knew.
    "what is in doubt is asked with a button for each reading": (
        "t.jsonl",
        json.dumps(DOUBT).encode(),
        ["", *(f"kind=columns&problem=problem&labels={steps}" for steps in ("", "&steps=responses.0"))],
    ),
    "labels that are chosen say by their values what they are": (
        "t.csv",
        b'Aufgabe;Schritte;Fehler\n?;"[""a"", ""b""]";1\n?!;"[""a"", ""b""]";0\n',
        ["kind=columns&problem=Aufgabe&steps=Schritte&labels=Fehler"],
    ),
    "bad rows": ("mine.jsonl", rows("{", '{"id": "z", "problem": "?"}'), [""]),
    "nothing that we know": ("words.txt", b"only words\n", [""]),
}


@pytest.mark.parametrize("title", LOOKED_AT)
def test_a_file_is_shown_as_it_is_read_with_what_is_to_be_chosen(client, drawn, title):
    name, content, queries = LOOKED_AT[title]
    upload = send(client, content, name)
    for query in queries:
        drawn(client.get(f"/data/uploads/{upload}?{query}").text, query)


@pytest.mark.parametrize(
    ("asked", "status", "message"),
    [
        (
            {"upload": 999, "holds": "traces", "dataset": "a", "kind": "plain"},
            404,
            "This file is no longer here.",
        ),
        ({"upload": 1, "holds": "figures", "dataset": "a"}, 422, "holds is 'figures'"),
        (
            {"upload": 1, "holds": "traces", "dataset": " ", "kind": "plain"},
            422,
            "a.jsonl: the name of the dataset is empty.",
        ),
        ({"upload": 1, "holds": "scores", "dataset": "a"}, 422, "a.jsonl: the name of the evaluator is empty."),
        ({"upload": "1", "holds": "scores", "dataset": "a"}, 422, "expected a whole number"),
        ({"upload": 1, "holds": "traces", "dataset": "a", "odd": 1}, 422, "unknown key"),
    ],
)
def test_nonsense_is_refused_in_words(client, sqlite_store, asked, status, message):
    assert send(client, b'{"id": "1"}', "a.jsonl") == 1
    answer = add_files(client, asked)
    assert (answer.status_code, message in answer.json()["error"]) == (status, True), answer.text
    assert list_jobs(sqlite_store) == []


def test_files_that_are_no_data_are_refused_at_their_first_bytes(client, sqlite_store):
    for content, name, message in (
        (b"PK\x03\x04" + b"0" * 50, "a.zip", "a.zip: a ZIP archive or an Office document."),
        (b"%PDF-1.7", "b.pdf", "b.pdf: a PDF."),
    ):
        answer = client.post("/data/uploads", params={"name": name}, content=content)
        assert (answer.status_code, answer.json()["error"]) == (422, message)
    huge = {"content-length": "2000000000"}
    answer = client.post("/data/uploads?name=huge.jsonl", headers=huge)
    assert (answer.status_code, "up to 256 MB" in answer.json()["error"]) == (422, True)
    assert list_uploads(sqlite_store, local_user(sqlite_store).id) == []


def test_a_file_is_removed(client):
    upload = send(client, rows())
    assert client.post(f"/data/uploads/{upload}/remove", json={}).status_code == 204
    assert client.get(f"/data/uploads/{upload}").status_code == 404


def test_fetching_is_a_job(client, sqlite_store):
    assert client.post("/data/fetch", json={"benchmark": "mr-math-invalid"}).status_code == 201
    assert client.post("/data/fetch", json={"benchmark": "mr-math-invalid"}).status_code == 201
    (job,) = list_jobs(sqlite_store)
    assert job.subject == "MR-MATH, invalid steps with the scores of 12 evaluators"
    assert "Being fetched" in client.get("/data/state").text
    take_job(sqlite_store, "w")
    update_job(sqlite_store, job.id, "w", state=State.FAILED, reason="no network.")
    card = page_of(client).one("tr", data_card="mr-math-invalid")
    assert "no network." in card.text
    assert "Fetch again" in card.text
    assert client.post("/data/fetch", json={"benchmark": "odd"}).json()["error"].startswith("There is no benchmark")


def test_a_dataset_is_renamed_and_deleted(client, sqlite_store):
    add(sqlite_store, dataset=WILD)
    shown = client.get("/changes/dataset", params={"dataset": WILD})
    assert "<script>alert" not in shown.text
    assert [one.text for one in read(shown.text).all("li")] == ["4 traces"]
    assert client.post("/changes/dataset/rename", params={"dataset": WILD, "name": " new "}).status_code == 204
    assert client.post("/changes/dataset/delete", params={"dataset": "new"}).status_code == 204
    again = client.post("/changes/dataset/delete", params={"dataset": "new"})
    assert (again.status_code, again.json()["error"]) == (404, "There is no dataset 'new'.")


def test_a_dataset_on_which_a_job_works_has_no_button_to_delete_it(client, sqlite_store):
    (trace, *_) = add(sqlite_store)
    start_job(sqlite_store, trace.dataset_id, evaluator="mini", spec="mini", fingerprint="f", mode="online")
    shown = client.get("/changes/dataset?dataset=sums").text
    assert "It cannot be deleted. A job is working on it: mini." in shown
    assert client.post("/changes/dataset/delete", params={"dataset": "sums"}).status_code == 409
