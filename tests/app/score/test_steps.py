import json

import pytest

from stepsight.app.score.steps import EMPTY, split_html
from tests.app.markup import INJECTIONS, read


def test_the_split_counts_and_shows_the_steps():
    page = read(split_html("Step 1: Add $x$.\nStep 2: Done."))
    assert page.one("p").text == "2 steps"
    assert [item.one("div", cls="t").text for item in page.all("li")] == ["Add x.", "Done."]
    assert [button["aria-label"] for button in page.all("button")] == ["Correct step 1", "Correct step 2"]
    assert read(split_html("Add.")).one("p").text == "1 step"


def test_the_script_finds_the_steps():
    found = read(split_html('["One.", ["Two.", "Three."]]')).one("ol", cls="preview")
    assert json.loads(found["data-steps"]) == [["One."], ["Two.", "Three."]]


@pytest.mark.parametrize("text", INJECTIONS)
def test_steps_are_escaped(text):
    page = read(split_html(json.dumps([text, [text, text]])))
    items = page.one("ol", cls="preview").all("li")
    assert len(items) == 2
    assert {element.tag for element in page.one("ol").all()} <= {"li", "br", "span", "button", "div"}
    assert len(items[1].all("br")) == 1
    assert json.loads(page.one("ol")["data-steps"]) == [[text], [text, text]]
    if not page.all("span"):
        assert [item.text for item in items] == [text, text + text]


@pytest.mark.parametrize("solution", ["", " \n "])
def test_the_split_of_nothing_is_a_hint(solution):
    assert split_html(solution) == EMPTY
    assert read(EMPTY).one("p", cls="hint").text.startswith("Steps appear here as you type")


def test_the_split_of_a_bad_list_is_a_notice():
    assert "step 2 of the JSON list is 3" in read(split_html('["a", 3]')).one("div", role="alert").text
