"""Plans: what a campaign can be. What is refused is tested where nothing may be stored of it: `test_campaigns`."""

from stepsight.storage.labelling.plan import (
    CampaignPlan,
    CampaignView,
    Ordering,
    Shows,
    check_guideline,
    check_plan,
)
from tests.messages import refused


def test_the_least_that_is_needed() -> None:
    plan = CampaignPlan("first", "sums", "Say what is right.")
    check_plan(plan)
    assert (plan.view, plan.shows, plan.ordering) == (CampaignView.WHOLE, Shows.NOTHING, Ordering.RANDOM)
    assert (plan.overlap, plan.after_error, plan.random_share, plan.gold_rate, plan.lease) == (
        1,
        True,
        0.2,
        0,
        1800,
    )


def test_the_largest_of_everything() -> None:
    check_plan(
        CampaignPlan(
            *("n" * 200, "sums", "x" * 100_000),
            overlap=50,
            random_share=1.0,
            gold_rate=0.5,
            lease=7 * 24 * 3600,
            seed=2**31 - 1,
            shows=Shows.SCORES,
            ordering=Ordering.CHANGE,
            evaluator=1,
        )
    )


def test_a_guideline_is_a_text() -> None:
    assert check_guideline("Be strict.") == "Be strict."
    with refused():
        check_guideline("a\x00b")
