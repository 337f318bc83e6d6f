from dataclasses import replace

import pytest

from stepsight.app.browse.address import Address
from stepsight.app.browse.trace_list import list_html, list_orders
from stepsight.core.scores import Outputs
from stepsight.storage.browse.browse import BrowseRow
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
