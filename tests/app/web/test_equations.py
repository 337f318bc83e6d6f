"""Equations that fail, in the text of their step."""

import pytest

from stepsight.app.markup.marking import mark_spans
from stepsight.app.markup.text import text_html
from stepsight.app.web.step_bars import checked_step
from stepsight.core.trace import Trace
from tests.app.elements import read


def shown(text):
    return checked_step(Trace.of("A problem.", [text]), 0)[0]


def test_equations_that_hold_are_not_marked():
    assert shown("So $2 + 3 = 5$ & more.") == text_html("So $2 + 3 = 5$ & more.")


STEPS = {
    "in plain text, among signs of HTML": "There are 74 - 5 = 70 left & <b>so on</b>.",
    "a formula is marked whole": "We get $74 - 5 = 70$ apples.",
    "braces of a formula are no places": r"So $\frac{24}{12} = 2.5$ each.",
    "each that fails has a line": "First 1 + 1 = 3. Then 2 + 2 = 4. Last 3 + 3 = 7.",
    "among signs of Markdown": "*First*, 1 + 1 = 3. **Then** we go on.",
    "several in one formula are marked as one": "We get $1 + 1 = 3, 2 + 2 = 5$ and 3 + 3 = 7.",
}


def test_equations_that_fail_are_marked_with_the_right_value(drawn):
    for title, text in STEPS.items():
        drawn(shown(text), title)
    trace = Trace.of("What is $x$ if $8x = 112$?", ["Divide by $8$: $x = 112 / 8 = 16$."])
    drawn(checked_step(trace, 0)[0], "an error within a longer equation is marked once")


@pytest.mark.parametrize("spans", [[], [(0, 3)], [(0, 1), (2, 5)], [(3, 9)]])
def test_marks_change_no_text(spans):
    html = text_html("ab < c $x^2$ & d")
    assert read(mark_spans(html, spans)).text == read(html).text
