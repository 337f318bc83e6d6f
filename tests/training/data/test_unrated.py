from stepsight.core.label import Label
from stepsight.core.trace import Step, Trace
from stepsight.training.data.transforms import settle
from tests.messages import refused

# Valid before the error and after it, as PRMBench says; the last step is unlabelled.
TRACE = Trace(
    "7", "q", (Step(("a", "b"), valid=True), Step(("c",), Label.NEG), Step(("d",), valid=True), Step(("e",)))
)


def test_valid_steps_become_pos_where_that_is_asked_for():
    settled = settle(TRACE, "pos")
    assert settled.labels == (Label.POS, Label.NEG, Label.POS, None)
    assert (settled.id, settled.problem, settled.substeps) == ("7", "q", ("a", "b", "c", "d", "e"))


def test_unrated_valid_steps_can_stay_unlabelled():
    assert settle(TRACE, "unlabelled") is TRACE


def test_a_file_with_every_step_rated_needs_no_choice():
    rated = Trace.of("q", ["a", "b", "c"], ["neu", None, "neg"])
    assert settle(rated, None) is rated
    assert settle(rated, "pos") is rated


def test_an_unrated_valid_step_needs_a_choice():
    with refused():
        settle(TRACE, None)
