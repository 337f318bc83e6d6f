import json

import pytest

from stepsight.app.score.entered import SolutionText
from stepsight.app.score.page import EMPTY, steps_html
from tests.app.elements import read


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


def test_text_set_aside_is_shown_and_no_step():
    page = read(split_html("Sure!\n\n1. Add.\n2. Done."))
    assert page.one("p", cls="aside").text == "Set aside, not judged: Sure!"
    assert json.loads(page.one("ol", cls="preview")["data-steps"]) == [["Add."], ["Done."]]


def test_thinking_is_judged_where_one_wants():
    text = "<think>Two.\n\nThree.</think>\n\nSo 5."
    offer = read(split_html(text))
    assert offer.one("button", data_thinking="1").text == "Judge these steps too"
    chosen = read(steps_html(SolutionText.typed(text, judges_thinking=True)))
    assert chosen.one("p").text == "3 steps, the first 2 of them thinking\nSet the thinking aside"
    assert "data-judges-thinking" in chosen.one("ol", cls="preview").attributes
    assert not read(split_html("Sure!\n\n1. Add.\n2. Done.")).all("button", data_thinking="1")


def test_long_thinking_is_folded():
    thinking = f"<think>\n{'Two and three. ' * 20}\n</think>"
    folded = read(split_html(f"{thinking}\n\n1. Add.\n2. Done.")).one("details", cls="aside")
    assert folded.one("div").text == thinking
    assert folded.one("summary").text.startswith(
        "Set aside, not judged: <think> Two and three.".replace("> ", ">\n")
    )
    assert len(folded.one("summary").text) < 100


@pytest.mark.parametrize("solution", ["", " \n "])
def test_the_split_of_nothing_is_a_hint(solution):
    assert split_html(solution) == EMPTY
    assert read(EMPTY).one("p", cls="hint").text.startswith("Steps appear here as you type")
