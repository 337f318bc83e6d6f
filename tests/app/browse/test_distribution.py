from urllib.parse import parse_qs

import numpy as np

from stepsight.app.browse.address import Address
from stepsight.app.browse.distribution import distribution_html
from stepsight.app.browse.facets import ActiveFilters, bin_words
from stepsight.app.browse.page import BrowsePages
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.models.location import EQUATIONS
from stepsight.core.scores import Outputs
from stepsight.core.trace import Step, Trace
from stepsight.storage.browse.browse import Distribution
from stepsight.storage.browse.columns import BINS
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from tests.app.elements import read
from tests.storage.samples import add, evaluator, judge


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


def query_of(href):
    return parse_qs(href.partition("?")[2])


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
