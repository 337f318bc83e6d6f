"""The annotation that follows from a person's events."""

from stepsight.storage.labelling.annotation import fold
from tests.cases import each
from tests.storage.labelling.folds import CASES, Log, as_json, states


@each("case", CASES)
def test_the_annotation_after_all_events(case):
    *_, log = states(case)
    annotation = as_json(log.annotation)
    assert {name: annotation[name] for name in case["annotation"]} == case["annotation"]


def test_undo_and_redo_have_no_limit():
    log = Log()
    labels = ["pos", "neu", "neg", None] * 10
    for label in labels:
        log.do("label", 0, label)
    # After n of them are undone, the label is the one before.
    for before in [None, *labels[:-1]][::-1]:
        log.do("undo")
        assert log.annotation.labels[0] == before
    for label in labels:
        log.do("redo")
        assert log.annotation.labels[0] == label
    assert (len(log.annotation.undo), log.annotation.redo) == (40, ())


def test_step_by_step_the_first_label_is_the_one_before_the_next_step_was_seen():
    log = Log(stepwise=True)
    log.do("label", 0, "neu")
    log.do("label", 0, "pos")
    log.do("reveal", None, 2)
    log.do("label", 0, "neg")
    log.do("reveal", None, 2)
    log.do("label", 1, "neg")
    log.do("reveal", None, 3)
    log.do("label", 2, "unsure")
    log.do("label", 2, "neg")
    assert (log.annotation.labels, log.annotation.first) == (("neg", "neg", "neg"), ("pos", "neg", "neg"))
    log.do("submit")
    log.do("reopen")
    log.do("label", 2, "pos")
    # After the last step nothing is revealed; what counts is how it was first submitted.
    assert (log.annotation.labels, log.annotation.first) == (("neg", "neg", "pos"), ("pos", "neg", "neg"))


def test_submission_reveals_all_steps():
    log = Log(stepwise=True)
    log.do("label", 0, "neg")
    log.do("submit")
    log.do("reopen")
    log.do("label", 0, "pos")
    assert log.annotation.first == ("neg", None, None)


def test_a_trace_that_lost_steps_is_as_long_as_its_events_say():
    log = Log(n_steps=3)
    log.do("label", 2, "pos")
    assert fold(log.events, 1, stepwise=False, asks=False).labels == (None, None, "pos")
