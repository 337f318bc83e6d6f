from urllib.parse import parse_qs, urlsplit

import pytest

from stepsight.app.results.dataset import Links, file_links, sections_html
from stepsight.app.results.measurements import Measurements
from stepsight.core.judgment import Mode
from stepsight.core.metrics.reasoneval import Errors
from tests.app.elements import read
from tests.app.results.measured import measured
from tests.training.judged import NAME, fill

KEYS = {"one_mind": "one mind", "words": "words"}


@pytest.fixture
def page(sqlite_store):
    fill(sqlite_store)
    results = Measurements(sqlite_store)
    drawn = results.excerpt(measured(sqlite_store, NAME, results), Mode.OFFLINE, Errors.INVALID, patience=60)
    address = {"dataset": NAME, "mode": "offline"}
    return read(sections_html(drawn.result.shown("one_mind"), Links(NAME, "g", Mode.OFFLINE, KEYS), address))


def rows_of(page, table):
    (found,) = [one for one in page.all("div", cls="finding") if one.all("p", id=f"three-way-{table}")]
    return found.one("tbody").all("tr")


def queries(row):
    return [parse_qs(urlsplit(link["href"]).query) for link in row.all("a")]


def test_sections_come_in_order_with_the_classes_last(page):
    assert [section.one("h2").text for section in page.all("section")] == [
        "Solutions and steps", "Calibration of validity", "First errors", "Redundant solutions",
        "Online and offline", "By position", "By class", "The classes of one_mind",
    ]  # fmt: skip


def test_evaluators_lead_to_their_traces_and_baselines_nowhere(page):
    rows = rows_of(page, "invalid-offline")
    assert [row.one("th").text for row in rows][:3] == ["one_mind", "words", "baseline:constant"]
    (query,) = queries(rows[0])
    assert query == {"dataset": [NAME], "group": ["g"], "evaluator": ["one mind"], "mode": ["offline"]}
    assert queries(rows[2]) == []


def test_outcomes_lead_to_the_traces_they_count(page):
    # one_mind offline: 3 right, 1 missed, no false alarm and no wrong step (see test_step_findings).
    (_, right, missed) = queries(rows_of(page, "outcomes")[0])
    assert (right["mistake"], missed["mistake"]) == (["right"], ["missed"])
    assert right["mode"] == ["offline"]


def test_a_cell_of_the_confusion_matrix_leads_to_its_traces(page):
    """Gold neg is called neg and pos once each, neu likewise neu and pos, and pos neu once and else pos."""
    rows = rows_of(page, "confusion")
    cells = {(row.all("td")[1].text, query["cell"][0]) for row in rows for query in queries(row)[1:]}
    assert cells == {
        ("neg", "neg-neg"), ("neg", "neg-pos"), ("neu", "neu-neu"), ("neu", "neu-pos"), ("pos", "pos-neu"),
        ("pos", "pos-pos"),
    }  # fmt: skip
    (section,) = [section for section in page.all("section") if "data-cells" in section.attributes]
    assert section["data-cells"].startswith(f"/browse?dataset={NAME}&group=g&evaluator=one+mind&mode=offline")


def test_tables_are_to_be_had_as_files(page):
    links = [link["href"] for link in page.all("a", download=None)]
    assert "/results/table?dataset=three_way&mode=offline&table=three-way-invalid-offline&format=csv" in links
    assert len(links) == 3 * len(page.all("div", cls="finding"))
    assert [link.text for link in read(file_links("t", {})).all("a")] == ["CSV", "LaTeX", "Markdown"]


def test_an_evaluator_that_browse_does_not_know_leads_nowhere():
    links = Links(NAME, "", Mode.ONLINE, {})
    assert links.browse("one_mind", "online") == ""
