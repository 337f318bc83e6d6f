import csv
import io
from datetime import date

from playwright.sync_api import sync_playwright
from sqlalchemy import text

from stepsight.core.trace import Trace
from stepsight.storage.database.schema import LeftOutRow
from stepsight.storage.judgments.evaluators import evaluators_of, register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.training.report.report import make_report, write_report
from stepsight.training.report.table_files import to_csv
from tests.browser import launch, until
from tests.messages import refused
from tests.storage.samples import add, judge
from tests.training.judged import GOLDS, fill, measure
from tests.training.report.test_html import Elements

DAY = date(2026, 11, 21)


def report_of(store, *datasets, **options):
    return make_report(store, datasets, draws=20, day=DAY, **options)


def test_page_and_tables_are_written(sqlite_store, tmp_path):
    dataset = fill(sqlite_store)
    report = report_of(sqlite_store, dataset)
    path = write_report(report, tmp_path / "deep" / "report")
    assert path == tmp_path / "deep" / "report" / "report.html"
    assert path.read_text(encoding="utf-8") == report.page
    names = {file.name for file in (path.parent / "tables").iterdir()}
    assert names == {f"{table.name}{suffix}" for table in report.tables for suffix in (".tex", ".csv", ".md")}
    assert len(report.tables) == len({table.name for table in report.tables}) > 10
    assert [file.name for file in path.parent.iterdir() if file.suffix == ".partial"] == []
    page = Elements(report.page)
    assert page.open == []
    assert set(page.ids()) >= {table.name for table in report.tables}
    assert len(page.ids()) == len(set(page.ids()))
    for title in ("Solutions and steps", "Calibration of validity", "First errors", "Online and offline",
                  "By position", "By class", "The neutral class", "How this was measured"):  # fmt: skip
        assert page.text.count(title) == 2, title
    assert "21 November 2026" in page.text


def test_the_same_store_gives_the_same_report(sqlite_store):
    dataset = fill(sqlite_store)
    assert report_of(sqlite_store, dataset) == report_of(sqlite_store, dataset)


def test_tables_have_the_numbers_of_evaluate(sqlite_store):
    dataset = fill(sqlite_store)
    said = {(row["errors"], row["mode"], row["evaluator"]): row
            for row in measure(sqlite_store, dataset, draws=20).as_json()["rows"]}  # fmt: skip
    told = 0
    for table in report_of(sqlite_store, dataset).tables:
        parts = tuple(table.name.removeprefix("three-way-").split("-"))
        if len(parts) != 2 or parts[0] not in ("invalid", "redundant"):
            continue
        for row in csv.DictReader(io.StringIO(to_csv(table).removeprefix("\ufeff"))):
            row_said = said[(*parts, row["evaluator"])]
            assert (float(row["step_auc"]) if row["step_auc"] else None) == row_said["step_auc"]
            told += 1
    assert told == len(said)


def test_rows_that_were_left_out_are_told(sqlite_store):
    dataset = fill(sqlite_store)
    with sqlite_store.write() as session:
        session.add(LeftOutRow(dataset_id=dataset.id, digest="0" * 64, source="f", place="line 3", error="e"))
    page = report_of(sqlite_store, find_dataset(sqlite_store, dataset.name)).page
    assert "4 of 5 rows" in Elements(page).text


def test_evaluators_are_chosen_by_name(sqlite_store):
    dataset = fill(sqlite_store)
    page = report_of(sqlite_store, dataset, names=["words"]).page
    assert "one_mind" not in page
    with refused():
        report_of(sqlite_store, dataset, names=["nobody"])


def test_one_group_of_the_traces(sqlite_store):
    labels = (["pos", "neg", "pos"], ["pos", "pos", "pos"], ["neg", "pos", "pos"])
    made = [
        Trace.of(f"q{i}", ["s"] * 3, golds, id=str(i), meta={"family": "ab"[i % 2]})
        for i, golds in enumerate(labels)
    ]
    add(sqlite_store, made, dataset="groups")
    dataset = find_dataset(sqlite_store, "groups")
    report = report_of(sqlite_store, dataset, group="a")
    assert "2 traces of group a" in Elements(report.page).text
    assert report.tables[0].name == "groups-a-invalid-offline"
    with refused():
        report_of(sqlite_store, dataset, group="c")


def test_evaluators_of_one_name_are_told_apart(sqlite_store):
    dataset = fill(sqlite_store)
    other = register_evaluator(
        sqlite_store, name="one_mind", fingerprint="0123456789", format="stepsight", attention="causal"
    )
    traces = list(iterate_traces(sqlite_store, dataset.id))
    save_judgments(sqlite_store, other.id, [judge(trace, "offline") for trace in traces])
    shown = Elements(report_of(sqlite_store, dataset).page).text
    assert "one_mind (01234567)" in shown
    assert "one_mind (f1)" in shown


def test_datasets_whose_files_would_have_the_same_names_are_refused(sqlite_store):
    first = fill(sqlite_store)
    second = fill(sqlite_store, GOLDS, "three-way")
    with refused():
        report_of(sqlite_store, first, second)
    both = report_of(sqlite_store, first, fill(sqlite_store, GOLDS, "other"))
    assert {table.name.split("-invalid")[0] for table in both.tables} >= {"three-way", "other"}


def test_only_baselines_where_nobody_has_judged(sqlite_store):
    dataset = fill(sqlite_store)
    with sqlite_store.write() as session:
        session.execute(text("DELETE FROM judgments"))
    assert evaluators_of(sqlite_store, dataset.id) == []
    page = Elements(report_of(sqlite_store, dataset).page).text
    assert "only baselines are shown" in page
    assert "baseline:length" in page


def test_a_folder_that_cannot_be_written(sqlite_store, tmp_path):
    (tmp_path / "file").write_text("x")
    with refused():
        write_report(report_of(sqlite_store, fill(sqlite_store)), tmp_path / "file")


def test_a_browser_draws_it_and_asks_for_nothing(sqlite_store, tmp_path):
    path = write_report(report_of(sqlite_store, fill(sqlite_store)), tmp_path)
    asked, faults = [], []
    with sync_playwright() as playwright:
        browser = launch(playwright)
        context = browser.new_context(viewport={"width": 390, "height": 800}, color_scheme="dark")
        page = context.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.goto(path.as_uri(), timeout=120_000)
        page.wait_for_selector("html[data-drawn]", state="attached", timeout=120_000)
        plots = page.locator(".plot")
        assert plots.count() > 15
        assert page.locator(".plot .main-svg").count() >= plots.count()
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        ink = page.evaluate("getComputedStyle(document.querySelector('.xtick text')).fill")
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.emulate_media(color_scheme="light")
        until(page, "ink => getComputedStyle(document.querySelector('.xtick text')).fill !== ink", arg=ink)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != paper
        # A curve is hidden by its button, and shown again.
        button = page.locator(".legend button").first
        assert button.get_attribute("aria-pressed") == "true"
        button.click()
        assert button.get_attribute("aria-pressed") == "false"
        browser.close()
    assert asked == [path.as_uri()]
    assert faults == []
