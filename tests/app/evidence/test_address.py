from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest

from stepsight.app.evidence.address import EvidenceAddress
from stepsight.app.web.page_query import read_query


def test_an_address_is_what_its_url_says():
    address = EvidenceAddress(trace=7, evaluator="a & b", kind="right-to-wrong", step="3.2", after="4", value="neg")
    url = address.url()
    assert "&amp;" in url
    assert EvidenceAddress.read(read_query(urlsplit(unescape(url)).query)) == (address, ())


def test_defaults_are_left_out():
    assert EvidenceAddress().url() == "/evidence"
    assert EvidenceAddress(page=2).url(page=1, dataset="gallery") == "/evidence?dataset=gallery"
    assert parse_qs(urlsplit(EvidenceAddress(trace=1).url("/browse")).query) == {"trace": ["1"]}


@pytest.mark.parametrize(
    ("query", "opens"),
    [("", False), ("dataset=x", False), ("trace=4", True), ("s=abc", True), ("trace=", False)],
)
def test_a_trace_or_the_gallery(query, opens):
    assert EvidenceAddress.read(read_query(f"?{query}"))[0].opens is opens


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("trace=abc", "trace is 'abc', expected a whole number."),
        ("trace=-1", "trace is '-1', expected a whole number."),
        ("trace=1234567890123", "expected a whole number."),
        ("trace=²", "expected a whole number."),
        ("page=x", "page is 'x', expected a whole number."),
        (
            "kind=odd",
            "kind is 'odd', expected one of wrong-to-right, right-to-wrong, unjudged, stayed.",
        ),
        ("value=odd", "value is 'odd', expected one of validity, neg, neu, pos."),
    ],
)
def test_nonsense_is_named_and_passed_over(query, message):
    address, problems = EvidenceAddress.read(read_query(f"{query}&dataset=gallery"))
    assert address == EvidenceAddress(dataset="gallery")
    assert len(problems) == 1
    assert message in problems[0]


def test_pages_count_from_one():
    assert EvidenceAddress.read({"page": "0"})[0].page == 1
