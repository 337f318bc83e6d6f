from typing import ClassVar

from stepsight.app.web.page_query import Number, PageNumber, PageQuery, read_query
from stepsight.core.gone import PARAMETERS
from tests.messages import refused


class Shelf(PageQuery):
    PATH: ClassVar[str] = "/shelf"

    name: str = ""
    trace: Number | None = None
    page: PageNumber = 1
    beside: tuple[str, ...] = ()


def test_a_query_is_read_and_written():
    shelf, problems = Shelf.read(read_query("?name=a+b%26c&page=3&beside=x&beside=y&beside=x&other=1"))
    assert (shelf, problems) == (Shelf(name="a b&c", page=3, beside=("x", "y")), ())
    assert shelf.query() == {"name": "a b&c", "page": 3, "beside": ("x", "y")}
    assert shelf.url() == "/shelf?name=a+b%26c&amp;page=3&amp;beside=x&amp;beside=y"
    assert shelf.url("/elsewhere", name="", beside=()) == "/elsewhere?page=3"
    assert shelf.url(name="", page=1, beside=()) == "/shelf"


def test_a_bad_part_is_told_and_the_rest_kept():
    query = {"name": ["first", "last"], "page": "many", "beside": ""}
    shelf, problems = Shelf.read(query)
    assert shelf == Shelf(name="last")
    assert problems == ("page is 'many', expected a whole number. Check the address.",)
    with refused():
        Shelf.exact(query)


def test_numbers_are_plain_and_short():
    assert Shelf.exact({"page": "0", "trace": "0"}) == Shelf(page=1, trace=0)
    for text in ("-1", "1e3", "٣", "²", "1" * 13):
        with refused():
            Shelf.exact({"trace": text})


def test_a_parameter_of_earlier_versions_is_named_and_left_out():
    shelf, problems = Shelf.read(read_query("?name=a&view=candidates&convention=all-wrong&gold=open&view=trace"))
    assert shelf == Shelf(name="a")
    assert problems == tuple(
        f"There is no {written} any more. {PARAMETERS[written]}"
        for written in ("view=candidates", "convention", "gold=open")
    )
