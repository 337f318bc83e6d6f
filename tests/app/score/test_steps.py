import json

import pytest

from stepsight.app.score.entered import SolutionText
from stepsight.app.score.page import EMPTY, steps_html
from tests.app.elements import INJECTION, read


def split_html(text):
    return steps_html(SolutionText.typed(text))


def test_the_split_counts_and_shows_the_steps():
    page = read(split_html("Step 1: Add $x$.\nStep 2: Done."))
    assert page.one("p").text == "2 steps"
    assert [item.one("div", cls="t").text for item in page.all("li")] == ["Add x.", "Done."]
    assert [button["aria-label"] for button in page.all("button")] == ["Correct step 1", "Correct step 2"]
    assert read(split_html("Add.")).one("p").text == "1 step"


def test_the_script_finds_the_steps():
    found = read(split_html('["One.", ["Two.", "Three."]]')).one("ol", cls="preview")
    assert json.loads(found["data-steps"]) == [["One."], ["Two.", "Three."]]


def test_what_is_set_aside_is_shown_and_no_step():
    page = read(split_html("Sure!\n\n1. Add.\n2. Done."))
    assert page.one("p", cls="aside").text == "Set aside, not judged: Sure!"
    assert json.loads(page.one("ol", cls="preview")["data-steps"]) == [["Add."], ["Done."]]


def test_long_thinking_is_folded():
    thinking = f"<think>\n{'Two and three. ' * 20}\n</think>"
    folded = read(split_html(f"{thinking}\n\n1. Add.\n2. Done.")).one("details", cls="aside")
    assert folded.one("div").text == thinking
    assert folded.one("summary").text.startswith(
        "Set aside, not judged: <think> Two and three.".replace("> ", ">\n")
    )
    assert len(folded.one("summary").text) < 100


def test_what_is_set_aside_is_escaped():
    text = INJECTION
    page = read(split_html(f"<think>{text}</think>\n\n1. Add.\n2. Done."))
    assert page.one("p", cls="aside").text == f"Set aside, not judged: <think>{text}</think>"


def test_steps_are_escaped():
    text = INJECTION.replace("$", "")
    page = read(split_html(json.dumps([text, [text, text]])))
    items = page.one("ol", cls="preview").all("li")
    assert len(items) == 2
    assert {element.tag for element in page.one("ol").all()} <= {"li", "br", "span", "button", "div"}
    assert len(items[1].all("br")) == 1
    assert json.loads(page.one("ol")["data-steps"]) == [[text], [text, text]]
    assert [item.text for item in items] == [text, text + text]


@pytest.mark.parametrize("solution", ["", " \n "])
def test_the_split_of_nothing_is_a_hint(solution):
    assert split_html(solution) == EMPTY
    assert read(EMPTY).one("p", cls="hint").text.startswith("Steps appear here as you type")
