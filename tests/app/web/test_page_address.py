from dataclasses import dataclass
from typing import ClassVar

import pytest

from stepsight.app.web.page_address import PageAddress, choice_reader, number_reader, read_query
from stepsight.core.errors import UserError


@dataclass(frozen=True)
class Shelf(PageAddress):
    PATH: ClassVar[str] = "/shelf"

    name: str = ""
    page: int = 1
    beside: tuple[str, ...] = ()


READERS = {"page": number_reader("page", least=1)}


def test_a_query_is_read_and_written():
    shelf, problems = Shelf.spelled(read_query("?name=a+b%26c&page=3&beside=x&beside=y&beside=x&other=1"), READERS)
    assert (shelf, problems) == (Shelf("a b&c", 3, ("x", "y")), ())
    assert shelf.query() == {"name": "a b&c", "page": 3, "beside": ("x", "y")}
    assert shelf.url() == "/shelf?name=a+b%26c&amp;page=3&amp;beside=x&amp;beside=y"
    assert shelf.url("/elsewhere", name="", beside=()) == "/elsewhere?page=3"
    assert shelf.url(name="", page=1, beside=()) == "/shelf"


def test_what_makes_no_sense_is_told_and_the_rest_kept():
    shelf, problems = Shelf.spelled({"name": ["first", "last"], "page": "many", "beside": ""}, READERS)
    assert shelf == Shelf("last")
    assert problems == ("page is 'many', expected a number. Check the address.",)


def test_numbers_are_plain_and_short():
    assert number_reader("page", least=1)("0") == 1
    assert number_reader("trace")("0") == 0
    for text in ("-1", "1e3", "٣", "²", "1" * 13):
        with pytest.raises(UserError, match="expected a number"):
            number_reader("trace")(text)


def test_a_choice_is_one_of_those_known():
    assert choice_reader("kind", ("a", "b"))("b") == "b"
    with pytest.raises(UserError, match="kind is 'c', expected one of a, b"):
        choice_reader("kind", ("a", "b"))("c")
