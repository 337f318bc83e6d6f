import json

import pytest

from stepsight.app.score.steps import EMPTY, corrected_html, split_html
from stepsight.app.web.html import render
from stepsight.app.web.text import text_key
from tests.app.markup import INJECTIONS, read


def test_the_split_counts_and_shows_the_steps():
    page = read(split_html("Step 1: Add $x$.\nStep 2: Done."))
    assert page.one("p").text == "2 steps"
    assert [item.one("div", cls="t").text for item in page.all("li")] == ["Add x.", "Done."]
    assert [button["aria-label"] for button in page.all("button")] == ["Correct step 1", "Correct step 2"]
    assert read(split_html("Add.")).one("p").text == "1 step"


def test_the_script_finds_the_steps_and_the_text_that_they_are_of():
    text = '["One.", ["Two.", "Three."]]'
    found = read(split_html(text)).one("ol", cls="preview")
    assert json.loads(found["data-steps"]) == [["One."], ["Two.", "Three."]]
    assert (found["data-key"], found["data-origin"]) == (text_key(text), "text")
    assert text_key(text) != text_key(text + " ")


@pytest.mark.parametrize("text", INJECTIONS)
def test_steps_are_escaped(text):
    for html in (split_html(json.dumps([text, [text, text]])), corrected_html(((text,), (text, text)), text)):
        page = read(html)
        items = page.one("ol", cls="preview").all("li")
        assert len(items) == 2
        assert {element.tag for element in page.one("ol").all()} <= {"li", "br", "span", "button", "div"}
        assert len(items[1].all("br")) == 1
        assert json.loads(page.one("ol")["data-steps"]) == [[text], [text, text]]
        if not page.all("span"):
            assert [item.text for item in items] == [text, text + text]


@pytest.mark.parametrize("solution", ["", " \n ", None])
def test_the_split_of_nothing_is_a_hint(solution):
    assert split_html(solution) == EMPTY
    assert read(EMPTY).one("p", cls="hint").text.startswith("Steps appear here as you type")


def test_the_split_of_a_bad_list_is_a_notice():
    assert "step 2 of the JSON list is 3" in read(split_html('["a", 3]')).one("div", role="alert").text


def test_the_tools_begin_with_nothing_to_undo():
    buttons = {button.text: button.attributes for button in read(render("score/tools.html")).all("button")}
    assert [name for name in buttons if "disabled" in buttons[name]] == ["Undo", "Redo"]
    assert [name for name in buttons if "hidden" in buttons[name]] == [
        "Write into the text box",
        "Split the text again",
        "Score again",
    ]
