"""Kinds of error that a campaign has of its own."""

import pytest

from stepsight.core.validation import validate
from stepsight.storage.labelling.error_kinds import ERROR_KINDS, LONGEST_KIND, MOST_KINDS
from stepsight.storage.labelling.plan import CampaignSettings
from stepsight.storage.labelling.record import read_annotation
from tests.messages import refused
from tests.storage.labelling.samples import TWO, campaign, do, person, take, undo


def own_kinds(kinds):
    validate(CampaignSettings, {"error_kinds": kinds}, "the plan")


@pytest.mark.parametrize(
    "kinds",
    [
        (),
        [f"kind {n}" for n in range(MOST_KINDS + 1)],
        ["sign", "Sign"],
        ["x" * (LONGEST_KIND + 1)],
        [" sign"],
        ["a\nb"],
        [""],
        ["a\x00"],
    ],
)
def test_lists_that_are_refused(kinds):
    with refused():
        own_kinds(kinds)


def test_lists_that_are_taken():
    own_kinds(ERROR_KINDS)
    own_kinds(["x" * LONGEST_KIND, "signe négatif", *(f"kind {n}" for n in range(MOST_KINDS - 2))])


def test_a_campaign_takes_its_own_kinds_alone(store):
    made = campaign(store, [TWO], error_kinds=("sign", "unit"))
    assert made.error_kinds == ("sign", "unit")
    ann = person(store, "ann")
    slot = take(store, made, ann).slot_id
    do(store, slot, ann, "label", 0, "neg")
    do(store, slot, ann, "error", 0, "unit")
    with refused():
        do(store, slot, ann, "error", 0, "calculation")
    assert read_annotation(store, slot).errors == ("unit", None)
    undo(store, slot, ann, "back")
    assert read_annotation(store, slot).errors == (None, None)
