from dataclasses import replace

import pytest

from stepsight.app.browse.address import Address
from stepsight.app.browse.trace_list import comparison_html, list_html, list_orders, outcomes_by_html
from stepsight.app.web.pages import read_query
from stepsight.core.metrics.bootstrap import Value
from stepsight.core.metrics.first_error import Outcome
from stepsight.core.scores import Outputs
from stepsight.storage.browse.browse import BrowseRow
from stepsight.storage.browse.outcomes import OutcomePairs, ValueOutcomes
from tests.app.elements import read
from tests.cases import each

ROW = BrowseRow(
    trace_id=7,
    id="one",
    position=0,
    problem="What is $1 + 1$?",
    n_steps=3,
    n_substeps=4,
    first_error=1,
    has_gold=True,
    n_redundant=0,
    group="sums",
    validity=0.25,
    online_validity=0.75,
    offline_validity=0.25,
    change=0.5,
    first_wrong=2,
    mistake="wrong-step",
)


def table(*rows, address=None, steps=None, outputs=Outputs.THREE_WAY):
    return read(list_html(rows or (ROW,), address or Address(dataset="sums"), steps or {}, outputs))


def cell(page, kind):
    return page.one("tbody").one("td", cls=kind)


def test_a_row_tells_problem_gold_and_verdict():
    page = table()
    link = page.one("a", cls="open")
    assert (link.text, link["href"]) == ("What is 1 + 1?", "/browse?dataset=sums&trace=7")
    assert cell(page, "what").one("span", cls="id").text == "one · sums"
    assert [cell(page, kind).text for kind in ("n", "gold", "m", "d")] == [
        "3 steps",
        "✕ step 2",
        "wrong step 3",
        "0.50",
    ]
    bars = [bar["aria-label"] for bar in cell(page, "v").all("span", cls="bar")]
    assert bars == ["online validity 0.75", "offline validity 0.25"]
    assert [part["style"] for part in cell(page, "v").all("i")] == [
        "width:25%",
        "width:75%",
        "width:75%",
        "width:25%",
    ]


@each(
    "changes, kind, expected",
    [
        ({"first_error": None}, "gold", "✓ no error"),
        ({"first_error": None, "has_gold": False}, "gold", "no gold"),
        ({"first_error": None, "n_redundant": 2}, "gold", "○ 2 redundant"),
        ({"n_redundant": 1}, "gold", "✕ step 2, 1 redundant"),
        ({"mistake": "missed", "first_wrong": None}, "m", "missed error"),
        ({"mistake": "false-alarm"}, "m", "false alarm"),
        ({"mistake": "right"}, "m", "right"),
        ({"mistake": ""}, "m", "–"),
        ({"online_validity": None, "offline_validity": None}, "v", "–"),
        ({"n_steps": 1}, "n", "1 step"),
    ],
)
def test_unknown_gold_and_scores_leave_their_cells_empty(changes, kind, expected):
    assert cell(table(replace(ROW, **changes)), kind).text == expected


def test_changes_have_a_column_where_there_are_some():
    without = replace(ROW, change=None)
    assert [cell.text for cell in table(ROW, without).all("td", cls="d")] == ["0.50", ""]
    page = table(without)
    assert page.all("td", cls="d") == []
    assert [head.text for head in page.all("th")][-1] == "First error"


def test_one_mode_alone_has_one_bar():
    page = table(replace(ROW, online_validity=None))
    assert [bar["aria-label"] for bar in page.all("span", cls="bar")] == ["offline validity 0.25"]


@pytest.mark.parametrize(
    ("outputs", "validity", "expected"),
    [
        (Outputs.VERDICT, 1.0, "✓ valid"),
        (Outputs.VERDICT, 0.0, "✕ not valid"),
        (Outputs.VERDICT, None, "–"),
        (Outputs.SOLUTION, 0.03544, "0.0354"),
    ],
)
def test_a_verdict_or_a_number_is_no_bar(outputs, validity, expected):
    row = replace(ROW, validity=validity, online_validity=None, offline_validity=validity)
    assert cell(table(row, outputs=outputs), "v").text == expected
    assert table(row, outputs=outputs).all("span", cls="bar") == []


def test_heads_sort_and_tell_how():
    page = table(address=Address(dataset="sums", sort="validity", page=3))
    heads = {head.text.strip(" ↑↓"): head for head in page.all("th")}
    assert heads["Validity"]["aria-sort"] == "ascending"
    assert heads["Validity"].one("a")["href"] == "/browse?dataset=sums&sort=-validity"
    assert heads["Change"].one("a")["href"] == "/browse?dataset=sums&sort=-change"
    assert heads["Trace"].one("a")["href"] == "/browse?dataset=sums"
    assert heads["First error"].all("a") == []
    assert [head for head in heads.values() if "aria-sort" in head.attributes] == [heads["Validity"]]
    page = table(address=Address(sort="-validity"))
    (sorted_by,) = (head for head in page.all("th") if "aria-sort" in head.attributes)
    assert (sorted_by["aria-sort"], sorted_by.one("a")["href"]) == ("descending", "/browse?sort=validity")


def test_where_nobody_has_judged_there_is_nothing_of_verdicts():
    page = table(outputs=None)
    assert [head.text.strip(" ↑") for head in page.all("th")] == ["Trace", "Steps", "Gold"]
    assert len(page.one("tbody").all("td")) == 3
    found = {outputs: {name.removeprefix("-") for name, _ in list_orders(outputs)} for outputs in (None, *Outputs)}
    always = {"", "position", "error", "steps"}
    assert found[None] == always
    assert found[Outputs.THREE_WAY] == found[Outputs.VERDICT] == always | {"validity", "redundancy", "change"}
    assert found[Outputs.VALIDITY] == found[Outputs.SOLUTION] == always | {"validity", "change"}


def test_hits_are_marked_in_the_problem_or_shown_from_a_step():
    page = table(address=Address(q="what"))
    assert [mark.text for mark in page.all("mark")] == ["What"]
    page = table(address=Address(q="needle"), steps={7: (4, "There is a needle here.")})
    assert page.one("span", cls="hit").text == "step 4: There is a needle here."
    assert [mark.text for mark in page.all("mark")] == ["needle"]


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
