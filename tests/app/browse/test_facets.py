from stepsight.app.browse.address import Address
from stepsight.app.browse.evaluator_choice import EvaluatorChoice
from stepsight.app.browse.facets import Conditions
from stepsight.core.scores import Outputs
from tests.app.elements import read

MINI, OTHER = EvaluatorChoice("mini", "mini", None, judged=True), EvaluatorChoice("other", None, None, judged=True)
SILENT = EvaluatorChoice("silent", "silent", None, judged=False)
COUNTS = {
    "gold": {"error": 3, "clean": 2, "redundant": 1, "missing": 0},
    "group": {"algebra": 1, "geometry": 4},
    "mistake": {"right": 2, "missed": 1, "false-alarm": 0, "wrong-step": 2, "wrong": 3},
    "change": {"0.1": 3, "0.3": 1, "0.5": 0},
}


def sidebar(address=None, counts=COUNTS, about=MINI):
    return read(Conditions(address or Address()).sidebar_html(counts, [MINI, OTHER, SILENT], about))


def section(page, title):
    (found,) = (one for one in page.all("section") if one.one("h3").text == title)
    return {item.text: item for item in found.all("li")}


def test_each_value_has_its_count_and_an_address():
    gold = section(sidebar(Address(dataset="sums", page=3)), "Gold")
    assert list(gold) == ["has an error3", "has no error2", "has a redundant step1", "no gold0"]
    assert gold["has an error3"].one("a")["href"] == "/browse?dataset=sums&gold=error"
    # What would leave nothing is no link.
    assert gold["no gold0"].all("a") == []


def test_a_value_that_is_set_is_current_and_lifted_by_its_link():
    gold = section(sidebar(Address(gold="missing", q="x")), "Gold")
    link = gold["no gold0"].one("a")
    assert (link["aria-current"], link["href"]) == ("true", "/browse?q=x")
    assert gold["has an error3"].one("a")["href"] == "/browse?gold=error&q=x"
    changes = section(sidebar(Address(change=0.3)), "Moved by later steps")
    assert changes["0.3 or more1"].one("a")["href"] == "/browse"
    assert changes["0.1 or more3"].one("a")["href"] == "/browse?change=0.1"


def test_classes_are_those_of_the_dataset_the_commonest_first():
    assert list(section(sidebar(), "Class")) == ["geometry4", "algebra1"]
    assert list(section(sidebar(Address(group="algebra")), "Class")) == ["algebra1", "geometry4"]
    assert [one.text for one in sidebar(counts={}).all("h3")] == [
        "Gold", "First error is", "Relabelled", "First error", "Solution judged", "Online and offline",
        "Moved by later steps", "Verdict differs from",
    ]  # fmt: skip


def test_many_values_are_folded():
    page = sidebar(counts={"group": {f"c{i}": 20 - i for i in range(12)}})
    (folded,) = page.all("details")
    assert folded.one("summary").text == "4 more"
    assert [item.text for item in folded.all("li")] == ["c812", "c911", "c1010", "c119"]


def test_facets_of_verdicts_are_there_where_the_evaluator_has_judged():
    page = sidebar(Address(mode="online"))
    assert [one.text for one in page.all("h2")] == ["Filters", "Judgments of mini, online"]
    assert list(section(page, "First error")) == [
        "right2", "missed error1", "false alarm0", "wrong step2", "any of these three3"
    ]  # fmt: skip
    # Another one that has judged, and not the one that the list is about.
    assert list(section(page, "Verdict differs from")) == ["other"]
    assert [one.text for one in sidebar(about=SILENT).all("h2")] == ["Filters"]
    assert "First error" not in [one.text for one in sidebar(about=SILENT).all("h3")]


def test_chips_lift_one_condition_or_all():
    address = Address(dataset="sums", q="a b", gold="error", cell="neg-pos", change=0.3, page=2)
    page = read(Conditions(address).chips_html())
    assert [chip["aria-label"] for chip in page.all("a", cls="chip")] == [
        "Remove Gold: has an error",
        "Remove Search: a b",
        "Remove Moved by later steps 0.3 or more",
        "Remove Gold neg, called pos",
    ]
    assert page.all("a", cls="chip")[1]["href"] == "/browse?dataset=sums&gold=error&change=0.3&cell=neg-pos"
    assert page.one("a", cls="clear")["href"] == "/browse?dataset=sums"
    assert Conditions(Address(dataset="sums", sort="steps")).chips_html() == ""


def test_the_button_of_the_sheet_tells_how_many_conditions_are_set():
    assert sidebar().one("button").text == "Filters"
    assert sidebar(Address(q="x", gold="error")).one("button").text == "Filters (2)"


def test_where_nothing_is_left_it_says_which_condition_to_loosen():
    address = Address(q="x", gold="error", group="algebra")
    page = read(Conditions(address).loosen_html({"text": 2, "gold": 0, "group": 1}))
    assert page.all("p")[0].text == "No trace meets these conditions. Remove one of them:"
    assert [item.text for item in page.one("ul").all("li")] == [
        "without Search: x: 2 traces",
        "without Class: algebra: 1 trace",
    ]
    assert page.one("ul").all("a")[0]["href"] == "/browse?gold=error&group=algebra"
    page = read(Conditions(address).loosen_html({"text": 0, "gold": 0, "group": 0}))
    assert "Removing one condition is not enough." in page.text
    assert page.one("a")["href"] == "/browse"
    assert read(Conditions(Address()).loosen_html({})).text == "This dataset has no trace."


def test_no_solution_is_called_redundant_by_one_that_gives_validity_only():
    theirs = EvaluatorChoice("theirs", "theirs", None, judged=True, outputs=Outputs.VALIDITY)
    assert list(section(sidebar(), "Solution judged")) == ["valid", "not valid", "redundant", "not judged"]
    assert list(section(sidebar(about=theirs), "Solution judged")) == ["valid", "not valid", "not judged"]
