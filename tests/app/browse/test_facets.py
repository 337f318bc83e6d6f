from urllib.parse import parse_qs

import numpy as np
import pytest

from stepsight.app.browse.address import Address
from stepsight.app.browse.evaluator_choice import EvaluatorChoice
from stepsight.app.browse.export import PATH
from stepsight.app.browse.facets import ActiveFilters, bin_words, distribution_html, metadata_html
from stepsight.app.browse.page import BrowsePages
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.models.location import EQUATIONS
from stepsight.core.scores import Outputs
from stepsight.core.trace import Step, Trace
from stepsight.storage.browse.browse import Distribution, FieldCounts
from stepsight.storage.browse.columns import BINS
from stepsight.storage.browse.metadata import MetaField
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from tests.app.client import asking
from tests.app.elements import read
from tests.storage.samples import add, evaluator, judge

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


def made(**bins):
    """So many steps by gold and bin."""
    counts = np.zeros((3, BINS), np.int64)
    for place, gold in enumerate(("wrong", "redundant", "right")):
        for bin, count in bins.get(gold, {}).items():
            counts[place, bin] = count
    return Distribution(counts, 0.5)


SOME = made(wrong={0: 1, 7: 4, 8: 2}, right={19: 2000})


def shown(distribution=SOME, address=None):
    return read(distribution_html(distribution, address or Address(dataset="sums", page=2)))


def test_a_histogram_for_each_gold_that_there_is():
    page = shown()
    assert [one.text for one in page.all("figcaption")] == ["wrong 7 steps", "right 2,000 steps"]
    wrong, right = page.all("div", cls="bars")
    assert [len(one.children) for one in (wrong, right)] == [BINS + 1, BINS + 1]
    assert [bar["style"] for bar in wrong.all("i")] == ["height:25.0%", "height:100.0%", "height:50.0%"]
    assert [bar["title"] for bar in wrong.all("a")] == [
        "0.00–0.05: 1 wrong step", "0.35–0.40: 4 wrong steps", "0.40–0.45: 2 wrong steps"
    ]  # fmt: skip
    assert right.one("b")["style"] == "left:50.0%"
    assert distribution_html(None, Address()) == distribution_html(made(), Address()) == ""


def test_the_same_is_a_table_for_those_who_do_not_see_it():
    page = shown()
    # The bars are hidden from screen readers and out of the way of the Tab key.
    assert all(bars["aria-hidden"] == "true" for bars in page.all("div", cls="bars"))
    assert {bar["tabindex"] for bars in page.all("div", cls="bars") for bar in bars.all("a")} == {"-1"}
    table = page.one("details").one("table")
    assert [head.text for head in table.one("thead").all("th")] == ["validity", "wrong", "right"]
    rows = {row.one("th").text: [cell.text for cell in row.all("td")] for row in table.one("tbody").all("tr")}
    assert len(rows) == BINS
    assert (rows["0.95–1.00"], rows["0.35–0.40"], rows["0.10–0.15"]) == (["0", "2,000"], ["4", "0"], ["0", "0"])
    assert table.all("a")[0]["aria-label"] == "0.95–1.00: 2,000 right steps"
    # Of seven wrong steps the fourth, in order, is in the bin from 0.35 on.
    assert "Half of them have at most the validity: wrong 0.35–0.40, right 0.95–1.00." in page.one("p").text
    assert "The line is the threshold, 0.50." in page.one("p").text


def test_a_bin_leads_to_its_traces_and_back():
    bar = shown().one("a", title="0.35–0.40: 4 wrong steps")
    assert query_of(bar["href"]) == {"dataset": ["sums"], "bin": ["wrong-0.35"]}
    address = Address(dataset="sums", bin="wrong-0.35")
    page = shown(address=address)
    (chosen,) = page.all("a", cls="chosen")
    assert (chosen["title"], chosen["href"]) == (bar["title"], "/browse?dataset=sums")
    assert page.one("a", aria_current="true").text == "4"
    assert read(ActiveFilters(address).chips_html()).one("a", cls="chip")["aria-label"] == (
        "Remove A wrong step with validity 0.35–0.40"
    )


def test_it_stands_beside_the_list_where_there_are_scores_of_steps(sqlite_store, evaluators):
    traces = add(sqlite_store)
    mini = evaluator(sqlite_store)
    save_judgments(sqlite_store, mini.id, [judge(trace, "hindsight") for trace in traces])
    words = register_evaluator(
        sqlite_store, name="words", fingerprint="w", format="imported", attention="unknown",
        info={"outputs": Outputs.VERDICT.value},
    )  # fmt: skip
    save_judgments(sqlite_store, words.id, [judge(trace, "offline") for trace in traces])

    def captions(**query):
        page = read(BrowsePages(sqlite_store, evaluators).content({"dataset": "sums"} | query).html)
        return [one.text for one in page.one("aside").all("figcaption")]

    assert captions(evaluator="mini") == ["wrong 2 steps", "right 3 steps"]
    assert captions(evaluator="mini", gold="clean", mode="online") == ["right 1 step"]
    # Verdicts in words and what has judged nothing have none.
    assert captions(evaluator="words") == captions(evaluator="tiny") == []


def test_verdicts_in_words_are_a_table_that_leads_to_their_traces(sqlite_store):
    traces = [
        Trace("slip", "Add.", (Step(("2 + 2 = 5",), valid=False),)),
        Trace("missed", "Add.", (Step(("2 + 2 = 4",), valid=True), Step(("So 3 + 3 = 7.",), valid=True))),
        Trace("none", "Add.", (Step(("It is so.",), valid=True),)),
    ]
    add(sqlite_store, traces)
    evaluators = Evaluators([EQUATIONS], shipped=False)
    row = evaluators.register(sqlite_store, EQUATIONS)
    stored = list(iterate_traces(sqlite_store, find_dataset(sqlite_store, "sums").id))
    save_judgments(sqlite_store, row.id, [evaluators.judge(EQUATIONS, trace) for trace in stored])
    page = read(BrowsePages(sqlite_store, evaluators).content({"dataset": "sums", "evaluator": EQUATIONS}).html)
    table = page.one("section", cls="distribution").one("table")
    assert [head.text for head in table.one("thead").all("th")] == ["gold", "equation fails", "equations hold"]
    rows = {line.one("th").text: line.all("td") for line in table.one("tbody").all("tr")}
    assert {gold: [cell.text for cell in cells] for gold, cells in rows.items()} == {
        "wrong": ["1", "0"], "right": ["1", "1"]
    }  # fmt: skip
    (link,) = rows["right"][0].all("a")
    assert link["aria-label"] == "equation fails: 1 right step"
    query = {key: values[0] for key, values in query_of(link["href"]).items()}
    assert query["bin"] == "right-0.00"
    found = read(BrowsePages(sqlite_store, evaluators).content(query).html)
    assert found.one("a", cls="chip")["aria-label"] == "Remove A right step: equation fails"
    lines = found.one("table", cls="traces").one("tbody").all("tr")
    assert [line.one("span", cls="id").text.split(" · ")[0] for line in lines] == ["missed"]
    (trace,) = [one for one in stored if one.id == "missed"]
    opened = read(BrowsePages(sqlite_store, evaluators).content(query | {"trace": str(trace.trace_id)}).html)
    assert opened.one("p", cls="among").text == "Among: A right step: equation fails"


def test_a_bin_of_numbers_stays_one_where_the_evaluator_has_words():
    words = {"neg": "marked wrong", "neu": "marked redundant", "pos": "not marked"}
    said = {bin: bin_words(bin, words) for bin in ("right-0.00", "wrong-0.95", "wrong-0.35")}
    assert said == {
        "right-0.00": "A right step: marked wrong",
        "wrong-0.95": "A wrong step: not marked",
        "wrong-0.35": "A wrong step with validity 0.35–0.40",
    }
