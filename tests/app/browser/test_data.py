"""The Data page as a person uses it, from an empty store on."""

import json
import re
import threading
from contextlib import contextmanager

import pytest
from playwright.sync_api import Route, expect

from stepsight.app.jobs.worker import Worker, WorkerSignals
from stepsight.storage.database.jobs_schema import State
from stepsight.storage.database.store import open_store
from stepsight.storage.importers.column_mapping import ColumnMap
from stepsight.storage.jobs.imports import FileImport, import_upload
from stepsight.storage.jobs.jobs import list_jobs
from stepsight.storage.jobs.uploads import list_uploads
from stepsight.storage.people.users import local_user
from stepsight.storage.traces.queries import find_dataset, list_datasets
from tests.app.browser.acts import listening, overflow
from tests.serving import served
from tests.storage.jobs.samples import send
from tests.storage.labelling.samples import campaign, do, take
from tests.storage.samples import plain_row

LINES = "".join(json.dumps(plain_row(number)) + "\n" for number in range(3))


@contextmanager
def working(store):
    """A worker beside the server."""
    signals = WorkerSignals()
    thread = threading.Thread(target=Worker(store, signals).run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        signals.stop()
        thread.join(30)


@pytest.fixture
def fresh(tmp_path, evaluators):
    """An empty store, and the address of its server, with a worker beside it."""
    with open_store(str(tmp_path / "store.db")) as store, served(store, evaluators) as address, working(store):
        yield store, address


def test_files_are_refused_mended_and_added(opened, fresh, tmp_path):
    store, address = fresh
    with opened(base=address, expected=["status of 422"]) as page:  # type: ignore[attr-defined]
        refuses_files_that_are_no_data(page, tmp_path)
        has_its_columns_named(page, store, tmp_path)
        page.set_viewport_size({"width": 390, "height": 1000})
        leaves_bad_rows_out(page, store, tmp_path)


def refuses_files_that_are_no_data(page, tmp_path):
    archive, text = tmp_path / "a.zip", tmp_path / "b.pdf"
    archive.write_bytes(b"PK\x03\x04" + b"0" * 100)
    text.write_bytes(b"%PDF-1.7")
    page.goto("/data")
    listening(page)
    page.get_by_label("Choose files").set_input_files([archive, text])
    expect(page.locator("li.file .notice")).to_have_text(
        [re.compile(r"^a\.zip: a ZIP archive"), re.compile(r"^b\.pdf: a PDF")]
    )
    page.get_by_role("button", name="Remove a.zip").click()
    # The next one is reached without a search.
    expect(page.get_by_role("button", name="Remove b.pdf")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("li.file")).to_have_count(0)


def has_its_columns_named(page, store, tmp_path):
    file = tmp_path / "table.csv"
    file.write_text('Ask,Work,Verdict\n"=1+1","Step 1: Add.\nStep 2: So 2.","[1, 0]"\n')
    page.goto("/data")
    listening(page)
    page.get_by_label("Choose files").set_input_files(file)
    row = page.locator("li.file")
    expect(row.get_by_role("alert")).to_contain_text("Say which columns hold the problem and the steps.")
    expect(page.get_by_role("button", name=re.compile("^Add"))).to_be_hidden()
    row.get_by_label("Dataset").fill("own")
    row.locator("select[name=problem]").select_option("Ask")
    expect(row.locator("select[name=problem]")).to_have_value("Ask")
    row.locator("select[name=steps]").focus()
    row.locator("select[name=steps]").select_option("Work")
    expect(row.locator("details ol li")).to_have_text(["Add.", "So 2."])
    # What was chosen keeps the focus, and what was typed stays.
    expect(row.locator("select[name=steps]")).to_be_focused()
    expect(row.get_by_label("Dataset")).to_have_value("own")
    row.locator("select[name=labels]").select_option("Verdict")
    row.locator("select[name=labels_as]").select_option("validity")
    expect(row.locator("details ol li em")).to_have_text(["valid", "neg"])
    page.get_by_role("button", name="Add 1 file").click()
    expect(page.get_by_role("status")).to_contain_text("1 file added: Browse own")
    expect(page.get_by_role("link", name="own", exact=True)).to_be_visible()
    assert find_dataset(store, "own").errors == 1


def leaves_bad_rows_out(page, store, tmp_path):
    file = tmp_path / "mixed.jsonl"
    file.write_text(LINES + "{\n")
    page.goto("/data")
    listening(page)
    page.get_by_label("Choose files").set_input_files(file)
    row = page.locator("li.file")
    expect(row).to_contain_text("1 row cannot be read.")
    assert [dataset.name for dataset in list_datasets(store)] == ["own"]
    assert overflow(page) <= 0
    row.get_by_label("Dataset").fill("mine")
    row.get_by_label("Leave out what cannot be read").check()
    page.get_by_role("button", name="Add 1 file").press("Enter")
    link = page.get_by_role("link", name="1 bad row left out")
    expect(link).to_be_visible()
    with page.expect_download() as download:
        link.click()
    assert json.loads(download.value.path().read_text())["place"] == "line 4"
    assert overflow(page) <= 0
    assert find_dataset(store, "mine").traces == 3


@pytest.mark.slow
def test_a_file_is_sent_again_after_a_break_and_its_import_goes_on_without_the_page(opened, fresh, tmp_path):
    store, address = fresh
    file = tmp_path / "long.jsonl"
    rows = [plain_row(number) | {"note": "x" * 4000} for number in range(500)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    sent: list[str] = []

    def cut(route: Route) -> None:
        sent.append(route.request.url)
        # The first meets a server that is away.
        (route.abort if len(sent) == 1 else route.continue_)()

    with opened(base=address, expected=["ERR_FAILED"]) as page:  # type: ignore[attr-defined]
        page.route("**/data/uploads?name=*", cut)
        page.goto("/data")
        listening(page)
        page.get_by_label("Choose files").set_input_files(file)
        expect(page.locator("li.file")).to_contain_text("500 traces")
        assert len(sent) == 2
        # It is also there when the page is opened again.
        page.reload()
        expect(page.locator("li.file")).to_contain_text("500 traces")
        page.get_by_role("button", name="Add 1 file").click()
        # The page is left: the job goes on.
        page.goto("/jobs")
        expect(page.locator("ol.jobs .state")).to_have_text("done")
        expect(page.locator("ol.jobs > li")).to_contain_text("long: 500 traces added")
        page.get_by_role("link", name="Browse", exact=True).last.click()
        expect(page.locator("table.traces tbody tr").first).to_be_visible()
    assert find_dataset(store, "long").traces == 500


@pytest.mark.slow
def test_a_file_that_was_not_added_is_opened_with_its_settings_or_thrown_away(opened, fresh):
    store, address = fresh
    user = local_user(store)
    upload = send(store, user.id, b"Ask,Work,Gold\n1 + 1?,2,[1]\n2 + 2?,4,[x]\n", "table.csv")
    columns = ColumnMap("Ask", "Work", "Gold")
    import_upload(store, FileImport(upload.id, "traces", "mine", "columns", columns), user.id)
    with opened(base=address, expected=[]) as page:  # type: ignore[attr-defined]
        page.goto("/data")
        page.get_by_role("button", name="Correct table.csv → mine").click()
        card = page.locator("li.file")
        expect(card.get_by_label("Steps, or the solution")).to_have_value("Work")
        expect(card).to_contain_text("1 row cannot be read.")
        page.get_by_role("button", name="Delete table.csv → mine").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.locator("li")).to_have_text(["1 job that ended", "1 file: table.csv (1 kB)"])
        dialog.get_by_role("button", name="Delete").click()
        assert len(list_uploads(store, user.id)) == 1
        dialog.get_by_label("Delete all of this").check()
        dialog.get_by_role("button", name="Delete").click()
        expect(page.get_by_role("heading", name="Not added")).to_have_count(0)
        assert list_uploads(store, user.id) == list_jobs(store) == []


@pytest.mark.slow
def test_a_campaign_is_deleted_once_its_events_were_downloaded(opened, fresh):
    store, address = fresh
    made, user = campaign(store), local_user(store)
    do(store, take(store, made, user).slot, user, "label", 0, "pos")
    with opened(base=address, expected=[]) as page:  # type: ignore[attr-defined]
        page.goto(f"/annotate/campaign?campaign={made.id}")
        page.get_by_role("button", name="Rename or delete").click()
        dialog = page.get_by_role("dialog", name="first")
        expect(dialog).to_contain_text("It cannot be deleted.")
        with page.expect_download() as download:
            dialog.get_by_role("link", name="Download every event").click()
        assert "stepsight-events" in download.value.path().read_text()
        dialog.get_by_role("button", name="Check again").click()
        dialog.get_by_label("Delete all of this").check()
        dialog.get_by_role("button", name="Delete").click()
        expect(page.get_by_text("There are no campaigns yet.")).to_be_visible()


@pytest.mark.slow
def test_a_file_without_a_name_is_left_and_scores_find_the_traces_beside_them(opened, fresh, tmp_path):
    store, address = fresh
    for name in ("sums", "others"):
        rows = [{"id": f"{name} {number}", "problem": "1 + 1?", "steps": ["It is 2."]} for number in range(3)]
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    scores = [{"id": f"sums {number}", "scores": [0.5]} for number in range(3)]
    (tmp_path / "mine.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in scores))
    (tmp_path / "strange.jsonl").write_text('{"id": "strange", "scores": [0.5]}\n')
    names = ("mine", "sums", "others", "strange")
    with opened(base=address) as page:  # type: ignore[attr-defined]
        page.goto("/data")
        listening(page)
        page.get_by_label("Choose files").set_input_files([tmp_path / f"{name}.jsonl" for name in names])
        expect(page.get_by_role("button", name="Add 4 files")).to_be_visible()
        mine, strange = (page.locator(f'li.file[data-name="{name}.jsonl"]') for name in ("mine", "strange"))
        expect(mine.get_by_label("Dataset")).to_have_value("sums")
        expect(strange.get_by_label("Dataset")).to_have_value("")
        page.get_by_role("button", name="Add 4 files").click()
        expect(page.get_by_role("status")).to_contain_text("3 files added: Browse sums Browse others")
        expect(page.locator("li.file")).to_have_count(1)
        expect(strange.get_by_role("alert")).to_have_text(
            "strange.jsonl is not added: the name of the dataset is empty. Enter a name."
        )
        expect(strange.get_by_label("Dataset")).to_be_focused()
        expect(strange.get_by_label("Dataset")).to_have_attribute("aria-invalid", "true")
        page.keyboard.type("s")
        expect(strange.get_by_role("alert")).to_have_count(0)
    assert {one.name: one.traces for one in list_datasets(store)} == {"sums": 3, "others": 3}
    assert {job.state for job in list_jobs(store)} == {State.DONE}
