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


def test_an_equation_in_plain_text_is_marked_with_the_right_value():
    html = shown("There are 74 - 5 = 70 left & <b>so on</b>.")
    assert '<mark class="fails" title="74 - 5 is 69, not 70">74 - 5 = 70</mark> left &amp; &lt;b&gt;' in html
    assert read(html).text.endswith("✕ 74 - 5 is 69, not 70")


def test_a_formula_is_marked_whole_and_shown_as_one():
    html = shown("We get $74 - 5 = 70$ apples.")
    formula = '<span class="math" data-source="$74 - 5 = 70$">74 - 5 = 70</span>'
    assert f'<mark class="fails" title="74 - 5 is 69, not 70">{formula}</mark> apples' in html
    assert read(html).text.endswith("✕ 74 - 5 is 69, not 70")


def test_braces_of_a_formula_are_no_places():
    html = shown(r"So $\frac{24}{12} = 2.5$ each.")
    assert r'title="$\frac{24}{12}$ is 2, not 2.5"' in html
    assert r'data-source="$\frac{24}{12}$"' in html.split("<small")[1]


def test_each_failing_equation_has_a_line():
    html = shown("First 1 + 1 = 3. Then 2 + 2 = 4. Last 3 + 3 = 7.")
    assert html.count("<mark") == html.count('<small class="fails"') == 2
    assert "2 + 2 = 4" not in html.split("<small")[1]


def test_an_error_within_a_longer_equation_is_marked_once():
    html = checked_step(Trace.of("What is $x$ if $8x = 112$?", ["Divide by $8$: $x = 112 / 8 = 16$."]), 0)[0]
    assert html.count("<mark") == html.count('<small class="fails"') == 1
    assert "112 / 8 is 14, not 16" in html


def test_a_place_is_found_among_signs_of_markdown():
    html = shown("*First*, 1 + 1 = 3. **Then** we go on.")
    assert "<i>First</i>, <mark" in html
    assert html.count("<mark") == 1


@pytest.mark.parametrize("spans", [[], [(0, 3)], [(0, 1), (2, 5)], [(3, 9)]])
def test_marks_change_no_text(spans):
    html = text_html("ab < c $x^2$ & d")
    assert read(mark_spans(html, spans)).text == read(html).text


def test_several_that_fail_in_one_formula_are_marked_as_one():
    html = shown("We get $1 + 1 = 3, 2 + 2 = 5$ and 3 + 3 = 7.")
    title = "1 + 1 is 2, not 3; 2 + 2 is 4, not 5"
    formula = '<span class="math" data-source="$1 + 1 = 3, 2 + 2 = 5$">1 + 1 = 3, 2 + 2 = 5</span>'
    assert f'<mark class="fails" title="{title}">{formula}</mark> and <mark' in html
    assert (html.count("<mark"), html.count("</mark>"), html.count('<small class="fails"')) == (2, 2, 3)
