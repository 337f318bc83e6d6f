from urllib.parse import parse_qs

import pytest

from stepsight.app.browse.address import Address
from stepsight.app.browse.export import PATH
from stepsight.app.browse.facets import Conditions, metadata_html
from stepsight.app.browse.page import BrowsePage
from stepsight.core.trace import Trace
from stepsight.storage.browse.browse import FieldCounts
from stepsight.storage.browse.metadata import MetaField
from tests.app.client import asking
from tests.app.elements import read
from tests.storage.samples import add

FIELDS = [MetaField("source", 9, False), MetaField("level", 7, True)]
SOURCES = FieldCounts("source", [("MATH", 4), ("", 2), ("GSM8K", 0)], True, None, None)


def section(address=None, fields=FIELDS, opened=None):
    return read(metadata_html(address or Address(), fields, opened))


def query_of(href):
    return parse_qs(href.partition("?")[2])


def test_fields_open_and_close():
    page = section(Address(dataset="sums", page=2))
    assert [link.text for link in page.all("a")] == ["source9", "level7"]
    assert [link["aria-expanded"] for link in page.all("a")] == ["false", "false"]
    assert query_of(page.all("a")[0]["href"]) == {"dataset": ["sums"], "page": ["2"], "field": ["source"]}
    page = section(Address(dataset="sums", field="source"), opened=SOURCES)
    assert page.all("a")[0]["aria-expanded"] == "true"
    assert page.all("a")[0]["href"] == "/browse?dataset=sums"
    assert section(fields=[]).children == []


def test_values_set_and_lift_conditions():
    address = Address(field="source", meta=("source=MATH", "level>=3"), page=3)
    values = section(address, opened=SOURCES).one("div", cls="values").all("li")
    assert [value.text for value in values] == ["MATH4", "(empty)2", "GSM8K0"]
    chosen, empty, gone = values
    assert chosen.one("a")["aria-current"] == "true"
    assert query_of(chosen.one("a")["href"]) == {"field": ["source"], "meta": ["level>=3"]}
    # Another value of the field takes the place of the one before.
    assert query_of(empty.one("a")["href"]) == {"field": ["source"], "meta": ["level>=3", "source="]}
    assert gone.all("a") == []


def test_numbers_have_bounds_and_texts_a_part():
    address = Address(dataset="sums", field="level", meta=("level>=3", "level=4", "source=MATH"))
    page = section(address, opened=FieldCounts("level", [("4", 1)], True, 1.0, 5.0))
    form = page.one("form", data_go="/browse")
    assert form["data-meta"] == "level"
    assert [field["value"] for field in form.all("input", type="number")] == ["3", ""]
    assert [field["placeholder"] for field in form.all("input", type="number")] == ["1", "5"]
    hidden = [(one["name"], one["value"]) for one in form.all("input", type="hidden")]
    # What the form sets anew is not among them.
    assert hidden == [("dataset", "sums"), ("field", "level"), ("meta", "level=4"), ("meta", "source=MATH")]
    many = FieldCounts('a "b"', [], False, None, None)
    form = section(Address(field='a "b"'), [MetaField('a "b"', 1, False)], many).one("form")
    assert form["data-meta"] == '"a \\"b\\""'
    assert [one["name"] for one in form.all("input", type="search")] == ["part"]
    assert section(Address(field="source"), opened=SOURCES).all("form") == []


def test_the_rest_of_many_fields_is_folded_but_for_what_is_in_use():
    fields = [MetaField(f"f{i}", 1, False) for i in range(12)]
    page = section(Address(field="f9", meta=("f11=1",)), fields)
    assert [link.text for link in page.all("ul")[0].all("a")][-2:] == ["f91", "f111"]
    assert page.one("summary").text == "2 more fields"


def test_each_condition_is_a_chip_of_its_own():
    address = Address(meta=("source=MATH", "title~of", "level>=3", "level<=4", "none="), gold="error")
    page = read(Conditions(address).chips_html())
    assert [chip["aria-label"].removeprefix("Remove ") for chip in page.all("a", cls="chip")] == [
        "Gold: has an error", "source: MATH", "title contains of", "level ≥ 3", "level ≤ 4", "none: (empty)",
    ]  # fmt: skip
    assert query_of(page.all("a", cls="chip")[1]["href"])["meta"] == ["title~of", "level>=3", "level<=4", "none="]
    totals = {"gold": 0} | {f"meta {one}": 2 * (one == "level>=3") for one in address.meta}
    page = read(Conditions(address).loosen_html(totals))
    assert [item.text for item in page.one("ul").all("li")] == ["without level ≥ 3: 2 traces"]


@pytest.fixture
def stored(sqlite_store):
    metas = [{"source": "MATH", "level": i} if i % 2 else {"source": "GSM8K"} for i in range(6)]
    add(sqlite_store, [Trace.of(f"P {i}", ["It."], id=f"n{i}", meta=meta) for i, meta in enumerate(metas)])
    return sqlite_store


def test_page_file_and_api_select_the_same(stored, evaluators):
    query = {"dataset": "sums", "meta": ["source=MATH", "level>=3"], "field": "source"}
    page = read(BrowsePage(stored, evaluators).content(query).html)
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
        BrowsePage(stored, evaluators)
        .content({"dataset": "sums", "meta": ["level>=high"], "field": "no such"})
        .html
    )
    (alert,) = page.all(role="alert")
    assert "'high' found after >=, expected a number." in alert.text
    assert len(page.one("tbody").all("tr")) == 6
    assert page.all("div", cls="values") == []
