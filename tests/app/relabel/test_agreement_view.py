import re
from math import nan

import pytest

from stepsight.app.relabel.agreement import figures_html, matrix_html, meaning
from stepsight.app.relabel.agreement_tables import overall_table, pair_table
from stepsight.core.metrics.bootstrap import resamples
from stepsight.core.metrics.krippendorff import ONE_ANNOTATOR
from stepsight.core.metrics.value import Value
from tests.app.relabel.rated import rated

DRAWS = resamples(2, 50)


@pytest.mark.parametrize(
    ("alpha", "said"),
    [
        (Value(0.9, low=0.85, high=0.95), "Reliable (0.800 or more)."),
        (Value(0.8, low=0.75, high=0.85), "Reliable (0.800 or more). The interval reaches below 0.800."),
        (Value(0.667, low=0.667, high=0.8), "Good for tentative conclusions (0.667 to 0.800)."),
        (
            Value(0.7, low=0.6, high=0.8),
            "Good for tentative conclusions (0.667 to 0.800). The interval reaches below 0.667.",
        ),
        (Value(0.6, low=0.5, high=0.9), "Too low to draw conclusions from (below 0.667)."),
        # Without an interval nothing is said of it.
        (Value(0.8, low=nan, high=nan), "Reliable (0.800 or more)."),
        (Value.none("why"), "No alpha: why."),
    ],
)
def test_what_an_alpha_allows(alpha, said):
    assert meaning(alpha) == said


def test_a_card_for_each_figure():
    page = figures_html(overall_table(rated("np pu", "np pp"), DRAWS))
    cards = re.findall("<section.*?</section>", page, re.DOTALL)
    assert len(cards) == 4
    # 1 - 7 * 2 / 34, as in the test of the table.
    assert '<p class="big">0.588' in cards[1]
    assert "75.0 % of pairs agree, on 4 steps." in cards[1]
    assert "100.0 % of pairs agree, on 2 traces." in cards[3]


def test_a_card_without_a_figure_says_why():
    page = figures_html(overall_table(rated("np pu"), DRAWS))
    assert page.count(f"No alpha: {ONE_ANNOTATOR}.") == 4
    assert "% of pairs" not in page


def test_the_matrix_has_each_pair_twice():
    page = matrix_html(pair_table(rated("np pp", "nn pp", "pp pp", "-- --"), DRAWS))
    # The fourth shares nothing with anybody, and is in no pair.
    assert re.findall('<th scope="col">(.)</th>', page) == ["a", "b", "c"]
    # a and b: 1/2, as in the test of the table; c says pos only: 0 with both.
    assert page.count(">0.50<small>4</small>") == 2
    assert page.count(">0.00<small>4</small>") == 4
    assert page.count("<td></td>") == 1 + 3


def test_two_people_need_no_matrix_and_names_are_escaped():
    assert matrix_html(pair_table(rated("np pp", "nn pp"), DRAWS)) == ""
    said = rated("np pp", "nn pp", "pn pp")
    object.__setattr__(said.last, "people", ("<b>", "b", "c"))
    page = matrix_html(pair_table(said, DRAWS))
    assert "<b>" not in page
    assert "&lt;b&gt;" in page
