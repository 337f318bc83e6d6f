import pytest

from stepsight.core.trace import Label
from stepsight.storage.importers import KINDS
from stepsight.storage.labelling.files.formats.prm800k import format_row
from tests.storage.labelling.files.formats.made import annotation, labelled

TEXTS = ["First.", "Second.\nStill.", "Third."]


def ratings(row):
    return [step["completions"][0]["rating"] for step in row["label"]["steps"]]


@pytest.mark.parametrize(
    ("labels", "expected", "reason"),
    [
        (("pos", "neu", "pos"), [1, 0, 1], "solution"),
        # As in PRM800K the labels end at the error; the solution goes on in pre_generated_steps.
        (("pos", "neg", None), [1, -1], "found_error"),
        (("neg", None, None), [-1], "found_error"),
        # Which has no labels after an error, but has them before.
        (("pos", "neg", "pos"), [1, -1, 1], "found_error"),
        ((None, "neg", "neg"), [None, -1, -1], "found_error"),
        (("pos", None, "pos"), [1, None, 1], "give_up"),
        ((None, None, None), [None, None, None], "give_up"),
    ],
)
def test_ratings_and_why_they_end(labels, expected, reason):
    row = format_row(labelled(*labels))
    assert (ratings(row), row["label"]["finish_reason"]) == (expected, reason)
    assert row["question"]["pre_generated_steps"] == TEXTS
    trace = KINDS["prm800k"].read(row)
    assert [step.text for step in trace.steps] == TEXTS[: len(expected)]
    by_rating = {1: Label.POS, 0: Label.NEU, -1: Label.NEG, None: None}
    assert list(trace.labels) == [by_rating[rating] for rating in expected]


def test_annotator_time_and_duration_are_exported():
    row = format_row(
        labelled("pos", "pos", "pos", annotations=[annotation(["pos"] * 3), annotation(["pos"] * 3, "ben")])
    )
    assert (row["labeler"], row["timestamp"]) == ("consensus", "2026-03-01T09:30:00+00:00")
    # Twice 1.5 seconds.
    assert row["label"]["total_time"] == 3000


def test_labelling_ends_at_an_error():
    steps = format_row(labelled("pos", "neg", None))["label"]["steps"]
    assert [step["chosen_completion"] for step in steps] == [0, None]


def test_a_problem_is_bad_where_most_say_so():
    bad, fine = annotation(["pos"] * 3, flag="No annotation."), annotation(["pos"] * 3, "ben")
    one_of_two = format_row(labelled("pos", "pos", "pos", annotations=[bad, fine]))
    two_of_three = format_row(labelled("pos", "pos", "pos", annotations=[bad, bad, fine]))
    found = [row["label"]["finish_reason"] for row in (one_of_two, two_of_three)]
    assert found == ["solution", "bad_problem"]
