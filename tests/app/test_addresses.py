"""The addresses of pages: what their parts may say, and what is made of several of them together."""

import pytest

from stepsight.app.browse.address import Address
from stepsight.app.evidence.evidence import EvidenceAddress
from stepsight.app.results.page import ResultsAddress
from stepsight.app.web.pages import PageQuery, read_query
from stepsight.core.judgment import Mode
from stepsight.storage.browse.filters import Sort, TraceFilter
from tests.cases import each

# Every part with which Browse filters and sorts.
LISTED = {
    "dataset": "a b&c",
    "trace": "7",
    "page": "2",
    "q": "x=1 é",
    "gold": "error",
    "error_at": "late",
    "group": "algebra",
    "length": "4-6",
    "evaluator": "mini",
    "mode": "online",
    "verdict": "invalid",
    "mistake": "wrong-step",
    "modes": "disagree",
    "against": "other",
    "change": "0.3",
    "cell": "neg-pos",
    "sort": "-change",
    "beside": ["mini", "other", "mini"],
}
PAGES: dict[str, type[PageQuery]] = {"browse": Address, "evidence": EvidenceAddress, "results": ResultsAddress}


def read(**query):
    address, problems = Address.read(query)
    assert problems == ()
    return address


@each(
    "page, query, message",
    [
        ("browse", {"trace": "x"}, "trace is 'x', expected a whole number. Check the address."),
        ("browse", {"gold": "maybe"}, "gold is 'maybe', expected one of any, error, clean, "),
        ("browse", {"error_at": "first"}, "error_at is 'first', expected one of "),
        ("browse", {"mode": "hindsight"}, "mode is 'hindsight', expected one of "),
        ("browse", {"verdict": "x"}, "verdict is 'x', expected one of "),
        ("browse", {"mistake": "x"}, "mistake is 'x', expected one of "),
        ("browse", {"modes": "x"}, "modes is 'x', expected one of "),
        ("browse", {"length": "6-4"}, "length: '6-4' found, expected a number of steps, or a range"),
        ("browse", {"length": "many"}, "length: 'many' found"),
        ("browse", {"change": "much"}, "change is 'much', expected a number."),
        ("browse", {"change": "nan"}, "change is 'nan', expected a finite number."),
        ("browse", {"change": "2"}, "change is '2', expected 1 or less."),
        (
            "browse",
            {"cell": "neg"},
            "cell: 'neg' found, expected a gold label and the evaluator's, such",
        ),
        ("browse", {"cell": "neg-wrong"}, "cell: 'neg-wrong' found"),
        ("browse", {"sort": "colour"}, "The order is 'colour'."),
        ("browse", {"sort": "--steps"}, "The order is '-steps'."),
        ("browse", {"q": "a\x00b"}, "the text to search for contains a NUL byte."),
        ("browse", {"q": "x" * 1001}, "expected at most 1000 characters."),
        ("evidence", {"kind": "odd"}, "expected one of wrong-to-right, right-to-wrong, unjudged, stayed."),
        ("results", {"mode": "hindsight"}, "mode is 'hindsight', expected one of offline, online"),
        ("results", {"errors": "both"}, "errors is 'both', expected one of "),
        ("results", {"figure": "f"}, "figure is 'f', expected one of step_auc, "),
    ],
)
def test_a_part_that_makes_no_sense_is_named_and_left_out(page, query, message):
    address, (problem,) = PAGES[page].read({"dataset": "sums", **query})
    assert message in problem
    assert address == PAGES[page](dataset="sums")


def test_what_lists_traces_becomes_a_filter_and_an_order():
    address = read(**LISTED)
    assert address.with_ids(4, 5) == TraceFilter(
        gold="error",
        text="x=1 é",
        group="algebra",
        error_at="late",
        length="4-6",
        evaluator=4,
        mode="online",
        verdict="invalid",
        mistake="wrong-step",
        modes="disagree",
        against=5,
        change=0.3,
        cell="neg-pos",
    )
    assert address.order == Sort("change", descending=True)
    assert (address.trace, address.beside) == (7, ("mini", "other"))
    assert Address.exact(read_query(address.url().unescape().partition("?")[2])) == address
    assert Address().with_ids(None, None) == TraceFilter()
    assert read(gold="any", page="1", mode="offline", sort="position", change="0") == Address()


def test_filters_are_named_lifted_and_cleared():
    address = read(gold="error", q="x", mode="online", sort="steps", trace="3", page="4")
    assert address.active == ("gold", "text")
    assert address.loosened("text") == Address(gold="error", mode="online", sort="steps")
    assert address.narrowed(mistake="missed") == (
        "/browse?gold=error&amp;q=x&amp;mode=online&amp;mistake=missed&amp;sort=steps"
    )
    assert address.cleared == "/browse?mode=online&amp;sort=steps"
    plain = read(**LISTED).without_verdicts()
    assert (plain.active, plain.sort) == (
        ("gold", "text", "group", "error_at", "length"), "position"
    )  # fmt: skip
    assert read(sort="-steps", gold="error").without_verdicts() == read(sort="-steps", gold="error")


@pytest.mark.parametrize(
    ("query", "opens"),
    [("", False), ("dataset=x", False), ("trace=4", True), ("s=abc", True), ("trace=", False)],
)
def test_evidence_is_on_a_trace_or_a_gallery(query, opens):
    assert EvidenceAddress.exact(read_query(query)).opens is opens


def test_results_have_the_mode_that_is_named_if_there_is_one():
    assert ResultsAddress().chosen_figure == "step_auc"
    assert ResultsAddress(mode="offline").chosen_mode([Mode.ONLINE]) == "online"
    assert ResultsAddress(mode="online").chosen_mode([Mode.OFFLINE, Mode.ONLINE]) == "online"
