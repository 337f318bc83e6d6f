from stepsight.app.browse.address import Address
from stepsight.app.browse.comparison import comparison_html, outcomes_by_html
from stepsight.app.web.page_query import read_query
from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.first_error import Outcome
from stepsight.storage.browse.outcomes import OutcomePairs, ValueOutcomes
from tests.app.elements import read

RIGHT, MISSED, STEP, ALARM = Outcome.RIGHT, Outcome.MISSED, Outcome.WRONG_STEP, Outcome.FALSE_ALARM
NONE = dict.fromkeys(Outcome, 0)
PAIRS = OutcomePairs(
    {
        True: {(RIGHT, RIGHT): 5, (RIGHT, MISSED): 3, (STEP, MISSED): 2},
        False: {(RIGHT, ALARM): 4, (ALARM, ALARM): 1},
    },
    unknown=7,
)
HERE = Address(dataset="sums", evaluator="A", other="B", page=3)


def shown(address=HERE, first="A", second="B"):
    return read(comparison_html(PAIRS, address, first, second))


def test_every_number_leads_to_its_traces():
    page = shown()
    sums = {item.text.split(":")[0]: item for item in page.one("ul").all("li")}
    assert {words: item.text.split(": ")[1] for words, item in sums.items()} == {
        "A right, B wrong": "7", "A wrong, B right": "0", "A right, B right": "5", "A wrong, B wrong": "3",
    }  # fmt: skip
    link = sums["A right, B wrong"].one("a")
    assert link["href"] == "/browse?dataset=sums&evaluator=A&mistake=right&other=B&other_mistake=wrong"
    # What nothing has is no link.
    assert sums["A wrong, B right"].all("a") == []
    errors, clean = page.all("table")
    rows = [[cell.text for cell in row.all("td")] for row in errors.one("tbody").all("tr")]
    assert rows == [["5", "0", "3"], ["0", "0", "2"], ["0", "0", "0"]]
    assert [row.one("th").text for row in errors.one("tbody").all("tr")] == ["right step", "other step", "missed"]
    assert [[cell.text for cell in row.all("td")] for row in clean.one("tbody").all("tr")] == [
        ["0", "4"],
        ["0", "1"],
    ]
    cell = clean.all("a")[0]
    assert cell["href"].endswith(
        "?dataset=sums&gold=clean&evaluator=A&mistake=right&other=B&other_mistake=false-alarm"
    )
    assert cell["aria-label"] == "A right, B false alarm: 4 traces"
    assert "7 traces left out" in page.text


def test_outcomes_by_a_field_lead_to_their_traces():
    right = Value(0.75)
    rows = [
        ValueOutcomes("swap steps", {"meta": ("kind=swap steps",)}, {**NONE, RIGHT: 3, MISSED: 1}, right),
        ValueOutcomes("", {"meta": ("kind=",)}, {**NONE, MISSED: 2}, right),
    ]
    address = HERE.changed(outcomes="kind", meta=("kind=swap steps", "level>=3"), mistake="missed")
    page = read(outcomes_by_html({"A": rows, "B": rows}, address, "kind", on_redundancy=False))
    first, second = page.all("table")
    assert [cell.text for cell in first.one("thead").all("th")] == ["kind", "share right", "right", "missed"]
    lines = [[cell.text for cell in row.all("th") + row.all("td")] for row in first.one("tbody").all("tr")]
    assert lines == [["swap steps", "75\u00a0%", "3", "1"], ["(empty)", "75\u00a0%", "0", "2"]]
    # The cell whose traces are listed stands out; conditions on other fields stay.
    (here,) = (link for link in first.all("a") if "aria-current" in link.attributes)
    assert here["aria-label"] == "A, swap steps, missed: 1 trace"
    query = read_query(first.all("a")[0]["href"].partition("?")[2])
    assert (query["meta"], query["mistake"]) == (["level>=3", "kind=swap steps"], ["right"])
    assert read_query(second.all("a")[0]["href"].partition("?")[2])["other_mistake"] == ["right"]
    assert page.one("p").one("a")["href"] == "/results?dataset=sums&by=kind&mode=offline"


def test_where_one_is_stands_out_and_closing_forgets_it():
    page = shown(HERE.changed(mistake="right", other_mistake="wrong"))
    (here,) = (link for link in page.all("a") if "aria-current" in link.attributes)
    assert here.text == "7"
    assert page.one("header").one("a")["href"] == "/browse?dataset=sums&evaluator=A&mistake=right"


def test_without_a_second_evaluator_there_is_nothing():
    assert comparison_html(None, HERE, "A", "") == ""
