from stepsight.app.browse.address import Address
from stepsight.app.web.page_query import read_query
from stepsight.storage.browse.filters import Sort, TraceFilter
from tests.cases import each

FULL = {
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
    "relabelled": "no",
    "sort": "-change",
    "beside": ["mini", "other", "mini"],
}


def read(**query):
    address, problems = Address.read(query)
    assert problems == ()
    return address


def test_every_part_is_read_and_written():
    address = read(**FULL)
    assert address.trace == 7
    assert address.change == 0.3
    assert address.beside == ("mini", "other")
    assert read(**read_query(address.url().unescape().partition("?")[2])) == address


def test_defaults_stay_out_of_it():
    assert Address().url() == "/browse"
    assert read(gold="any", page="1", mode="offline", sort="position", change="0") == Address()
    assert read(trace="", gold="", page="", unknown="x") == Address()
    assert Address(dataset="a b&c", q="x=1 é").url(trace=3) == (
        "/browse?dataset=a+b%26c&amp;trace=3&amp;q=x%3D1+%C3%A9"
    )


def test_the_conditions_become_a_filter():
    assert read(**FULL).with_ids(4, 5) == TraceFilter(
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
        relabelled="no",
        cell="neg-pos",
    )
    assert Address().with_ids(None, None) == TraceFilter()
    assert read(**FULL).order == Sort("change", descending=True)
    assert Address().order == Sort()


def test_conditions_are_named_lifted_and_cleared():
    address = read(gold="error", q="x", mode="online", sort="steps", trace="3", page="4")
    assert address.active == ("gold", "text")
    assert address.loosened("text") == Address(gold="error", mode="online", sort="steps")
    assert address.narrowed(mistake="missed") == (
        "/browse?gold=error&amp;q=x&amp;mode=online&amp;mistake=missed&amp;sort=steps"
    )
    assert address.cleared == "/browse?mode=online&amp;sort=steps"


def test_conditions_on_verdicts_can_be_left_out():
    assert read(**FULL).without_verdicts().active == ("gold", "text", "group", "error_at", "length", "relabelled")
    assert read(**FULL).without_verdicts().sort == "position"
    assert read(sort="-steps", gold="error").without_verdicts() == read(sort="-steps", gold="error")


@each(
    "query, message",
    [
        ({"trace": "x"}, "trace is 'x', expected a whole number. Check the address."),
        ({"trace": "-1"}, "trace is '-1', expected a whole number."),
        ({"trace": "٣"}, "expected a whole number."),
        ({"trace": "1" * 5000}, "expected a whole number."),
        ({"page": "1e3"}, "page is '1e3', expected a whole number."),
        (
            {"gold": "maybe"},
            "gold is 'maybe', expected one of any, error, clean, ",
        ),
        ({"error_at": "first"}, "error_at is 'first', expected one of "),
        ({"mode": "hindsight"}, "mode is 'hindsight', expected one of "),
        ({"verdict": "x"}, "verdict is 'x', expected one of "),
        ({"mistake": "x"}, "mistake is 'x', expected one of "),
        ({"modes": "x"}, "modes is 'x', expected one of "),
        ({"relabelled": "x"}, "relabelled is 'x', expected one of "),
        ({"length": "6-4"}, "length: '6-4' found, expected a number of steps or two, the smaller first"),
        ({"length": "many"}, "length: 'many' found"),
        ({"change": "much"}, "change is 'much', expected a number."),
        ({"change": "nan"}, "change is 'nan', expected a finite number."),
        ({"change": "2"}, "change is '2', expected 1 or less."),
        ({"cell": "neg"}, "cell: 'neg' found, expected a gold label and the evaluator's, such as neg-pos."),
        ({"cell": "neg-wrong"}, "cell: 'neg-wrong' found"),
        ({"sort": "colour"}, "The order is 'colour'."),
        ({"sort": "--steps"}, "The order is '-steps'."),
        ({"q": "a\x00b"}, "the text to search for holds a NUL byte."),
        ({"q": "x" * 1001}, "expected at most 1000 characters."),
    ],
)
def test_a_part_that_makes_no_sense_is_told_and_passed_over(query, message):
    address, problems = Address.read({"dataset": "sums", **query})
    assert len(problems) == 1
    assert message in problems[0]
    assert address == Address(dataset="sums")


def test_the_last_of_a_part_given_twice_counts():
    assert read(gold=["error", "clean"]).gold == "clean"
    assert read_query("?gold=error&beside=a&beside=b%26c&gold=") == {"gold": ["error"], "beside": ["a", "b&c"]}
    assert read_query("") == {}
