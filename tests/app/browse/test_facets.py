from urllib.parse import parse_qs

import pytest

from stepsight.app.browse.address import Address
from stepsight.app.browse.evaluator_choice import EvaluatorChoice
from stepsight.app.browse.export import PATH
from stepsight.app.browse.facets import ActiveFilters, metadata_html
from stepsight.app.browse.page import BrowsePages
from stepsight.core.scores import Outputs
from stepsight.core.trace import Trace
from stepsight.storage.browse.browse import FieldCounts
from stepsight.storage.browse.metadata import MetaField
from tests.app.client import asking
from tests.app.elements import read
from tests.storage.samples import add

MINI, OTHER = EvaluatorChoice("mini", None, judged=True, runs=True), EvaluatorChoice("other", None, judged=True)
SILENT = EvaluatorChoice("silent", None, judged=False, runs=True)
COUNTS = {
    "gold": {"error": 3, "clean": 2, "redundant": 1, "missing": 0},
    "group": {"algebra": 1, "geometry": 4},
    "mistake": {"right": 2, "missed": 1, "false-alarm": 0, "wrong-step": 2, "wrong": 3},
    "change": {"0.1": 3, "0.3": 1, "0.5": 0},
}


def sidebar(address=None, counts=COUNTS, about=MINI):
    return read(ActiveFilters(address or Address()).sidebar_html(counts, [MINI, OTHER, SILENT], about))


def section(page, title):
    (found,) = (one for one in page.all("section") if one.one("h3").text == title)
    return {item.text: item for item in found.all("li")}


def test_each_value_has_its_count_and_an_address():
    gold = section(sidebar(Address(dataset="sums", page=3)), "Gold")
    assert list(gold) == ["has an error3", "has no error2", "has a redundant step1", "no gold0"]
    assert gold["has an error3"].one("a")["href"] == "/browse?dataset=sums&gold=error"
    # What would leave nothing is no link.
    assert gold["no gold0"].all("a") == []


def test_a_value_that_is_set_is_current_and_lifted_by_its_link():
    gold = section(sidebar(Address(gold="missing", q="x")), "Gold")
    link = gold["no gold0"].one("a")
    assert (link["aria-current"], link["href"]) == ("true", "/browse?q=x")
    assert gold["has an error3"].one("a")["href"] == "/browse?gold=error&q=x"
    changes = section(sidebar(Address(change=0.3)), "Moved by later steps")
    assert changes["0.3 or more1"].one("a")["href"] == "/browse"
    assert changes["0.1 or more3"].one("a")["href"] == "/browse?change=0.1"


def test_classes_are_those_of_the_dataset_the_commonest_first():
    assert list(section(sidebar(), "Class")) == ["geometry4", "algebra1"]
    assert list(section(sidebar(Address(group="algebra")), "Class")) == ["algebra1", "geometry4"]
    assert [one.text for one in sidebar(counts={}).all("h3")] == [
        "Gold", "First error is", "Relabelled", "First error", "Solution judged", "Online and offline",
        "Moved by later steps", "Verdict differs from",
    ]  # fmt: skip


def test_many_values_are_folded():
    page = sidebar(counts={"group": {f"c{i}": 20 - i for i in range(12)}})
    (folded,) = page.all("details")
    assert folded.one("summary").text == "4 more"
    assert [item.text for item in folded.all("li")] == ["c812", "c911", "c1010", "c119"]


def test_facets_of_verdicts_are_there_where_the_evaluator_has_judged():
    page = sidebar(Address(mode="online"))
    assert [one.text for one in page.all("h2")] == ["Filters", "Judgments of mini, online"]
    assert list(section(page, "First error")) == [
        "right2", "missed error1", "false alarm0", "wrong step2", "any of these three3"
    ]  # fmt: skip
    # Another one that has judged, and not the one that the list is about.
    assert list(section(page, "Verdict differs from")) == ["other"]
    assert [one.text for one in sidebar(about=SILENT).all("h2")] == ["Filters"]
    assert "First error" not in [one.text for one in sidebar(about=SILENT).all("h3")]


def test_chips_lift_one_condition_or_all():
    address = Address(dataset="sums", q="a b", gold="error", cell="neg-pos", change=0.3, page=2)
    page = read(ActiveFilters(address).chips_html())
    assert [chip["aria-label"] for chip in page.all("a", cls="chip")] == [
        "Remove Gold: has an error",
        "Remove Search: a b",
        "Remove Moved by later steps 0.3 or more",
        "Remove Gold neg, called pos",
    ]
    assert page.all("a", cls="chip")[1]["href"] == "/browse?dataset=sums&gold=error&change=0.3&cell=neg-pos"
    assert page.one("a", cls="clear")["href"] == "/browse?dataset=sums"
    assert ActiveFilters(Address(dataset="sums", sort="steps")).chips_html() == ""


def test_the_button_of_the_sheet_tells_how_many_conditions_are_set():
    assert sidebar().one("button").text == "Filters"
    assert sidebar(Address(q="x", gold="error")).one("button").text == "Filters (2)"


def test_where_nothing_is_left_it_says_which_condition_to_loosen():
    address = Address(q="x", gold="error", group="algebra")
    page = read(ActiveFilters(address).loosen_html({"text": 2, "gold": 0, "group": 1}))
    assert page.all("p")[0].text == "No trace meets these conditions. Remove one of them:"
    assert [item.text for item in page.one("ul").all("li")] == [
        "without Search: x: 2 traces",
        "without Class: algebra: 1 trace",
    ]
    assert page.one("ul").all("a")[0]["href"] == "/browse?gold=error&group=algebra"
    page = read(ActiveFilters(address).loosen_html({"text": 0, "gold": 0, "group": 0}))
    assert "Removing one condition is not enough." in page.text
    assert page.one("a")["href"] == "/browse"
    assert read(ActiveFilters(Address()).loosen_html({})).text == "This dataset has no trace."


def test_no_solution_is_called_redundant_by_one_that_gives_validity_only():
    theirs = EvaluatorChoice("theirs", None, judged=True, outputs=Outputs.VALIDITY, runs=True)
    assert list(section(sidebar(), "Solution judged")) == ["valid", "not valid", "redundant", "not judged"]
    assert list(section(sidebar(about=theirs), "Solution judged")) == ["valid", "not valid", "not judged"]


FIELDS = [MetaField("source", 9, False), MetaField("level", 7, True)]
SOURCES = FieldCounts("source", [("MATH", 4), ("", 2), ("GSM8K", 0)], True, None, None)


def fields_section(address=None, fields=FIELDS, opened=None):
    return read(metadata_html(address or Address(), fields, opened))


def query_of(href):
    return parse_qs(href.partition("?")[2])


def test_fields_open_and_close():
    page = fields_section(Address(dataset="sums", page=2))
    assert [link.text for link in page.all("a")] == ["source9", "level7"]
    assert [link["aria-expanded"] for link in page.all("a")] == ["false", "false"]
    assert query_of(page.all("a")[0]["href"]) == {"dataset": ["sums"], "page": ["2"], "field": ["source"]}
    page = fields_section(Address(dataset="sums", field="source"), opened=SOURCES)
    assert page.all("a")[0]["aria-expanded"] == "true"
    assert page.all("a")[0]["href"] == "/browse?dataset=sums"
    assert fields_section(fields=[]).children == []


def test_values_set_and_lift_conditions():
    address = Address(field="source", meta=("source=MATH", "level>=3"), page=3)
    values = fields_section(address, opened=SOURCES).one("div", cls="values").all("li")
    assert [value.text for value in values] == ["MATH4", "(empty)2", "GSM8K0"]
    chosen, empty, gone = values
    assert chosen.one("a")["aria-current"] == "true"
    assert query_of(chosen.one("a")["href"]) == {"field": ["source"], "meta": ["level>=3"]}
    # Another value of the field takes the place of the one before.
    assert query_of(empty.one("a")["href"]) == {"field": ["source"], "meta": ["level>=3", "source="]}
    assert gone.all("a") == []


def test_numbers_have_bounds_and_texts_a_part():
    address = Address(dataset="sums", field="level", meta=("level>=3", "level=4", "source=MATH"))
    page = fields_section(address, opened=FieldCounts("level", [("4", 1)], True, 1.0, 5.0))
    form = page.one("form", data_go="/browse")
    assert form["data-meta"] == "level"
    assert [field["value"] for field in form.all("input", type="number")] == ["3", ""]
    assert [field["placeholder"] for field in form.all("input", type="number")] == ["1", "5"]
    hidden = [(one["name"], one["value"]) for one in form.all("input", type="hidden")]
    # What the form sets anew is not among them.
    assert hidden == [("dataset", "sums"), ("field", "level"), ("meta", "level=4"), ("meta", "source=MATH")]
    many = FieldCounts('a "b"', [], False, None, None)
    form = fields_section(Address(field='a "b"'), [MetaField('a "b"', 1, False)], many).one("form")
    assert form["data-meta"] == '"a \\"b\\""'
    assert [one["name"] for one in form.all("input", type="search")] == ["part"]
    assert fields_section(Address(field="source"), opened=SOURCES).all("form") == []


def test_the_rest_of_many_fields_is_folded_but_for_what_is_in_use():
    fields = [MetaField(f"f{i}", 1, False) for i in range(12)]
    page = fields_section(Address(field="f9", meta=("f11=1",)), fields)
    assert [link.text for link in page.all("ul")[0].all("a")][-2:] == ["f91", "f111"]
    assert page.one("summary").text == "2 more fields"


def test_each_condition_is_a_chip_of_its_own():
    address = Address(meta=("source=MATH", "title~of", "level>=3", "level<=4", "none="), gold="error")
    page = read(ActiveFilters(address).chips_html())
    assert [chip["aria-label"].removeprefix("Remove ") for chip in page.all("a", cls="chip")] == [
        "Gold: has an error", "source: MATH", "title contains of", "level ≥ 3", "level ≤ 4", "none: (empty)",
    ]  # fmt: skip
    assert query_of(page.all("a", cls="chip")[1]["href"])["meta"] == ["title~of", "level>=3", "level<=4", "none="]
    totals = {"gold": 0} | {f"meta {one}": 2 * (one == "level>=3") for one in address.meta}
    page = read(ActiveFilters(address).loosen_html(totals))
    assert [item.text for item in page.one("ul").all("li")] == ["without level ≥ 3: 2 traces"]


@pytest.fixture
def stored(sqlite_store):
    metas = [{"source": "MATH", "level": i} if i % 2 else {"source": "GSM8K"} for i in range(6)]
    add(sqlite_store, [Trace.of(f"P {i}", ["It."], id=f"n{i}", meta=meta) for i, meta in enumerate(metas)])
    return sqlite_store


def test_page_file_and_api_select_the_same(stored, evaluators):
    query = {"dataset": "sums", "meta": ["source=MATH", "level>=3"], "field": "source"}
    page = read(BrowsePages(stored, evaluators).content(query).html)
    assert [row.one("span", cls="id").text for row in page.one("tbody").all("tr")] == ["n3", "n5"]
    assert [one.text for one in page.one("div", cls="values").all("li")] == ["MATH2", "GSM8K0"]
    # The form above the list keeps them.
    hidden = page.one("form", role="search").all("input", type="hidden")
    assert [one["value"] for one in hidden] == ["source", "source=MATH", "level>=3"]
    with asking(stored, evaluators) as client:
        lines = client.get(PATH, params=query | {"content": "traces"})
        assert len(lines.text.splitlines()) == 2
        found = client.get("/api/v1/datasets/sums/traces", params={"meta": query["meta"]}).json()
        assert [trace["id"] for trace in found["traces"]] == ["n3", "n5"]
        wrong = client.get("/api/v1/datasets/sums/traces", params={"meta": "source"})
        assert wrong.status_code == 422
        assert "expected a field" in wrong.text
        assert client.get("/browse", params={"dataset": "sums", "meta": "source"}).status_code == 422


def test_a_condition_that_makes_no_sense_is_told(stored, evaluators):
    page = read(
        BrowsePages(stored, evaluators)
        .content({"dataset": "sums", "meta": ["level>=high"], "field": "no such"})
        .html
    )
    (alert,) = page.all(role="alert")
    assert "'high' found after >=, expected a number." in alert.text
    assert len(page.one("tbody").all("tr")) == 6
    assert page.all("div", cls="values") == []
