from math import nan

import pytest

from stepsight.app.annotate.agreement import figures, matrix, verdict
from stepsight.app.annotate.agreement_tables import overall_table, pair_table
from stepsight.core.metrics.bootstrap import Value, resamples
from stepsight.core.metrics.labels.agreement import ONE_ANNOTATOR
from tests.app.annotate.rated import rated

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
def test_a_verdict_follows_from_alpha_and_its_interval(alpha, said):
    assert verdict(alpha) == said


def test_a_card_for_each_figure():
    cards = figures(overall_table(rated("np pu", "np pp"), DRAWS))
    assert len(cards) == 4
    # 1 - 7 * 2 / 34, as in the test of the table.
    assert cards[1]["alpha"].text == "0.588"
    assert cards[1]["pairs"] == "75.0 % of pairs agree, on 4 steps."
    assert cards[3]["pairs"] == "100.0 % of pairs agree, on 2 traces."


def test_a_card_without_a_figure_says_why():
    cards = figures(overall_table(rated("np pu"), DRAWS))
    assert [(card["verdict"], card["pairs"]) for card in cards] == [(f"No alpha: {ONE_ANNOTATOR}.", "")] * 4


def test_the_matrix_has_each_pair_twice():
    shown = matrix(pair_table(rated("np pp", "nn pp", "pp pp", "-- --"), DRAWS))
    # The fourth shares nothing with anybody, and is in no pair.
    assert list(shown) == ["a", "b", "c"]
    cells = [[None if kappa is None else (kappa.number, steps) for kappa, steps in row] for row in shown.values()]
    # a and b: 1/2, as in the test of the table; c says pos only: 0 with both.
    assert cells == [[None, (0.5, 4), (0.0, 4)], [(0.5, 4), None, (0.0, 4)], [(0.0, 4), (0.0, 4), None]]


def test_two_people_need_no_matrix():
    assert matrix(pair_table(rated("np pp", "nn pp"), DRAWS)) == {}
