import pytest

from stepsight.app.scoring.limits import AUTOMATIC, ScoringCost

# 40 tokens in one pass, and 400 in all prefixes.
LARGE, SMALL, ONE_PASS = ScoringCost(40, 400, 100), ScoringCost(40, 400, 1_000), ScoringCost(40, 40, 10)


@pytest.mark.parametrize(
    ("cost", "asked", "budget", "tokens"),
    [
        (LARGE, None, None, 400),
        (LARGE, AUTOMATIC, 50, 50),
        (SMALL, AUTOMATIC, None, 400),
        (ScoringCost(60, 8_000, 100), AUTOMATIC, 100, 100),
        (LARGE, 399, 399, 399),
        (LARGE, 400, None, 400),
        (LARGE, 5_000, None, 400),
        (LARGE, 1, 1, 40),
        (ONE_PASS, AUTOMATIC, None, 40),
        (ONE_PASS, 1, None, 40),
    ],
)
def test_a_budget_reads_all_prefixes_where_they_fit_and_the_whole_solution_at_least(cost, asked, budget, tokens):
    assert (cost.budget(asked), cost.tokens(asked)) == (budget, tokens)
