"""The dialog in which something is renamed or deleted, and its routes."""

from stepsight.core.judgment import Mode
from stepsight.storage.jobs.jobs import cancel_job, list_jobs, start_job
from stepsight.storage.judgments.evaluators import evaluators_of
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import list_campaigns
from stepsight.storage.people.users import local_user
from tests.app.elements import read
from tests.storage.labelling.samples import campaign, do, take
from tests.storage.samples import add, evaluator, judge


def test_the_scores_of_an_evaluator_are_deleted_from_the_dialog_of_the_dataset(client, sqlite_store):
    traces, mini = add(sqlite_store), evaluator(sqlite_store)
    save_judgments(sqlite_store, mini.id, [judge(trace, Mode.ONLINE) for trace in traces])
    (button,) = read(client.get("/changes/dataset?dataset=sums").text).all(
        "button", aria_label="Delete the scores of mini"
    )
    address = button["data-changes"]
    assert "4 judgments, online" in client.get(address).text
    assert client.post(address.replace("scores?", "scores/delete?")).status_code == 204
    assert evaluators_of(sqlite_store, traces[0].dataset_id) == []
    # Somebody else has the dialog open still.
    again = client.post(address.replace("scores?", "scores/delete?"))
    assert (again.status_code, again.json()["error"]) == (404, "sums has no scores of this evaluator.")


def test_a_campaign_is_deleted_once_every_event_was_downloaded(client, sqlite_store):
    made, user = campaign(sqlite_store), local_user(sqlite_store)
    do(sqlite_store, take(sqlite_store, made, user).slot, user, "label", 0, "pos")
    address = f"/changes/campaign?campaign={made.id}"
    dialog = read(client.get(address).text)
    assert "It cannot be deleted. 1 action of an annotator has not been exported." in " ".join(dialog.text.split())
    assert client.post(f"/changes/campaign/delete?campaign={made.id}").status_code == 409
    assert client.get(dialog.one("a")["href"]).status_code == 200
    assert "1 logged action by local" in client.get(address).text
    assert client.post(f"/changes/campaign/rename?campaign={made.id}&name=second").status_code == 204
    assert client.post(f"/changes/campaign/delete?campaign={made.id}").status_code == 204
    assert list_campaigns(sqlite_store) == []
    assert client.get(address).status_code == 404


def test_jobs_that_ended_have_a_button_to_delete_them(client, sqlite_store):
    (trace, *_) = add(sqlite_store)
    given = {"evaluator": "mini", "spec": "mini", "fingerprint": "f"}
    first, second = (
        start_job(sqlite_store, trace.dataset_id, mode=mode, **given) for mode in ("online", "offline")
    )
    cancel_job(sqlite_store, first.id)
    buttons = read(client.get("/jobs/list").text).all("button")
    addresses = [button["data-changes"] for button in buttons if "data-changes" in button.attributes]
    assert addresses == ["/changes/ended-jobs", f"/changes/job?job={first.id}"]
    assert client.post(f"/changes/job/delete?job={second.id}").status_code == 409
    assert client.post("/changes/ended-jobs/delete").status_code == 204
    assert [job.id for job in list_jobs(sqlite_store)] == [second.id]


def test_an_address_without_a_number_finds_nothing(client):
    assert client.get("/changes/job?job=-1").status_code == 404
    assert client.get("/changes/campaign?campaign=99999999999999999999").status_code == 404
    assert client.get("/changes/scores").status_code == 404
