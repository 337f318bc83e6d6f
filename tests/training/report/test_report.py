import json
from datetime import date
from html.parser import HTMLParser

import plotly.graph_objects as go
from markupsafe import Markup
from playwright.sync_api import sync_playwright
from sqlalchemy import text

from stepsight.core.metrics.bootstrap import Value
from stepsight.core.trace import Trace
from stepsight.storage.database.schema import LeftOutRow
from stepsight.storage.judgments.evaluators import evaluators_of, register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.training.report.html import Part, Section, page_html, table_html
from stepsight.training.report.plots import Plot
from stepsight.training.report.report import make_report, write_report
from stepsight.training.report.tables import CellKind, Column, Table
from tests.browser import launch, until
from tests.messages import refused
from tests.storage.samples import add, judge
from tests.training.judged import GOLDS, fill

NASTY = "a_b</script><b>&\"'"
TABLE = Table(
    "t-1", f"of {NASTY}", (Column("e", "Evaluator", CellKind.TEXT), Column("f1", "F1")),
    ((NASTY, Value(0.5).within(0.25, 0.75)), ("baseline:x", Value.none("no"))), ("a note",), (1,), (1,),
)  # fmt: skip
FIGURE = go.Figure(go.Scatter(x=[0, 1], y=[0, None], name=NASTY), layout={"template": "none"})
DRAWN = Plot("drawn", FIGURE, ("noted",))
PARTS = [
    Part(NASTY, "lead", [
        Section("One", ["words", TABLE, [DRAWN, Plot("not drawn", None, ("for that",))]]),
        Section("Two", []),
    ], warning="beware"),
    Part("Second", "", [Section("Three", ["x"])]),
]  # fmt: skip
PAGE = page_html("Title", "lead", PARTS)


class Elements(HTMLParser):
    """Every element with its attributes, and whether each was closed in its turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "wbr", "br", "link", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += "" if self.open[-1:] in (["script"], ["style"]) else data

    def ids(self) -> list[str]:
        return [attrs["id"] or "" for _, attrs in self.found if "id" in attrs]


def test_elements_are_closed_and_names_are_escaped():
    page = Elements(PAGE)
    assert page.open == []
    assert page.text.count(NASTY) >= 4
    assert [tag for tag, _ in page.found].count("b") == 0


def test_every_link_of_the_contents_leads_somewhere():
    page = Elements(PAGE)
    links = [attrs["href"] for tag, attrs in page.found if tag == "a"]
    assert links == ["#c1", "#c1-1", "#c1-2", "#c2", "#c2-1"]
    assert {link[1:] for link in links} <= set(page.ids())
    assert len(page.ids()) == len(set(page.ids()))


def test_nothing_is_asked_of_the_network():
    page = Elements(PAGE)
    assert [attrs for tag, attrs in page.found if tag in ("link", "img", "iframe") or "src" in attrs] == []
    (policy,) = [
        attrs["content"] for _, attrs in page.found if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy
    # Plotly's script is there, once.
    assert [attrs for tag, attrs in page.found if tag == "script"] == [{}, {"type": "module"}]
    assert PAGE.count("plotly.js v") == 1


def test_a_figure_is_data_that_gives_back_its_names():
    (data,) = [attrs["data-figure"] for _, attrs in Elements(PAGE).found if "data-figure" in attrs]
    figure = json.loads(data)
    assert figure["data"][0]["name"] == NASTY
    assert figure["data"][0]["y"] == [0, None]


def test_a_table_has_its_intervals_notes_and_files():
    assert "<td>50.0<small>[25.0, 75.0]</small></td>" in PAGE
    assert '<tr class="rule faint">' in PAGE
    assert "<li>a note</li>" in PAGE
    assert "<code>tables/t-1</code>" in PAGE
    assert '<th scope="row">baseline:<wbr>x</th><td>–</td>' in PAGE


def test_a_figure_that_cannot_be_drawn_says_why():
    assert '<figcaption>not drawn</figcaption><div class="empty"><p>for that</p></div>' in PAGE
    assert '<p class="warning">beware</p>' in PAGE


def test_numbers_have_minus_signs_and_names_their_hyphens():
    columns = Column("e", "Evaluator", CellKind.TEXT), Column("d", "Difference", CellKind.POINTS)
    html = table_html(Table("t", "c", columns, (("mini-bidir", Value(-0.032).within(-0.05, -0.01)),)))
    assert '<th scope="row">mini-<wbr>bidir</th><td>−3.2<small>[−5.0, −1.0]</small></td>' in html


def test_each_cell_can_be_wrapped_the_header_too():
    table = Table("t", "c", (Column("e", "Evaluator", CellKind.TEXT), Column("f1", "F1")), (("x<", Value(0.5)),))
    html = table_html(table, lambda row, column, cell: Markup("<a>{}.{} {}</a>").format(row, column, cell))
    page = Elements(html)
    assert page.open == []
    assert html.count("<a>") == 4
    assert '<th scope="col" class="text"><a>-1.0 Evaluator</a></th>' in html
    assert '<th scope="row"><a>0.0 x&lt;</a></th><td><a>0.1 50.0</a></td>' in html


def test_a_line_on_files_stands_where_there_is_one():
    assert '<div class="files">here</div>' in table_html(TABLE, files="here")
    assert "files" not in table_html(TABLE)


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
