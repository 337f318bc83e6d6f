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


def query_of(href):
    return parse_qs(href.partition("?")[2])


def test_the_facets_of_a_list(drawn):
    theirs = EvaluatorChoice("theirs", None, judged=True, outputs=Outputs.VALIDITY, runs=True)
    classes = {"group": {f"c{i}": 20 - i for i in range(12)}}
    for title, address, counts, about in (
        ("nothing is set", {"dataset": "sums", "page": 3}, COUNTS, MINI),
        (
            "some are set, online",
            {"gold": "missing", "q": "x", "change": 0.3, "group": "algebra", "mode": "online"},
            COUNTS,
            MINI,
        ),
        ("many classes", {}, classes, SILENT),
        ("validity only, and nothing is counted", {}, {}, theirs),
    ):
        drawn(ActiveFilters(Address(**address)).sidebar_html(counts, [MINI, OTHER, SILENT], about), title)


def test_chips_lift_one_condition_or_all_and_say_which_to_loosen(drawn):
    metas = ("source=MATH", "title~of", "level>=3", "level<=4", "none=")
    address = Address(dataset="sums", q="a b", gold="error", cell="neg-pos", change=0.3, meta=metas, page=2)
    drawn(ActiveFilters(address).chips_html(), "chips")
    assert ActiveFilters(Address(dataset="sums", sort="steps")).chips_html() == ""
    address = Address(q="x", gold="error", group="algebra")
    drawn(ActiveFilters(address).loosen_html({"text": 2, "gold": 0, "group": 1}), "two of three help")
    drawn(ActiveFilters(address).loosen_html({"text": 0, "gold": 0, "group": 0}), "none helps")
    totals = {"gold": 0} | {f"meta {one}": 2 * (one == "level>=3") for one in metas}
    drawn(ActiveFilters(Address(meta=metas, gold="error")).loosen_html(totals), "a bound helps")
    drawn(ActiveFilters(Address()).loosen_html({}), "there is nothing to loosen")


FIELDS = [MetaField("source", 9, False, 3), MetaField("level", 7, True, 3)]
SOURCES = FieldCounts("source", [("MATH", 4), ("", 2), ("GSM8K", 0)], True, None, None)


def test_fields_of_metadata(drawn):
    assert metadata_html(Address(), [], None) == ""
    numbers = FieldCounts("level", [("4", 1)], True, 1.0, 5.0)
    many = FieldCounts('a "b"', [], False, None, None)
    for title, address, fields, opened in (
        ("closed", {"dataset": "sums", "page": 2}, FIELDS, None),
        (
            "values, of which one takes the place of another",
            {"field": "source", "meta": ("source=MATH", "level>=3"), "page": 3},
            FIELDS,
            SOURCES,
        ),
        (
            "numbers have bounds",
            {"dataset": "sums", "field": "level", "meta": ("level>=3", "level=4", "source=MATH")},
            FIELDS,
            numbers,
        ),
        ("texts have a part", {"field": 'a "b"'}, [MetaField('a "b"', 1, False, 1)], many),
        (
            "many, of which those in use are not folded",
            {"field": "f9", "meta": ("f11=1",)},
            [MetaField(f"f{i}", 1, False, 1) for i in range(12)],
            None,
        ),
    ):
        drawn(metadata_html(Address(**address), fields, opened), title)


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


def test_a_histogram_for_each_gold_and_its_table(drawn):
    # Of seven wrong steps the fourth, in order, is in the bin from 0.35 on.
    drawn(distribution_html(SOME, Address(dataset="sums", page=2)))
    chosen = Address(dataset="sums", bin="wrong-0.35")
    drawn(distribution_html(made(wrong={7: 4}), chosen), "a bin is chosen")
    drawn(ActiveFilters(chosen).chips_html(), "its chip")
    assert distribution_html(None, Address()) == distribution_html(made(), Address()) == ""


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
