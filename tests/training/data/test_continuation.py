import json

import pytest

from stepsight.core.label import Label
from stepsight.core.trace import Trace
from stepsight.storage.importers import KINDS
from stepsight.training.data.transforms import continue_trace
from tests.messages import refused


def trace(generated=None, **meta):
    kept = {} if generated is None else {"pre_generated_steps": generated}
    return Trace.of("q", ["a", "b"], ["pos", "neg"], meta=kept | meta)


def test_the_generated_steps_after_the_labelled_ones_follow_unlabelled():
    continued, done = continue_trace(trace(["a", "b", "c", "# Answer\n\n7"]))
    assert done == "continued"
    assert continued.substeps == ("a", "b", "c", "# Answer\n\n7")
    assert continued.labels == (Label.POS, Label.NEG, None, None)
    assert [step.valid for step in continued.steps] == [True, False, None, None]


@pytest.mark.parametrize(
    ("given", "done"),
    [
        (trace(["a", "b"]), "complete"),
        # Nothing but white space is left.
        (trace(["a", "b", " \n"]), "complete"),
        (trace(finish_reason="solution"), "complete"),
        (trace(finish_reason="found_error"), "not_continued"),
        (trace(), "not_continued"),
        # A labeler chose another second step, so the generated third does not follow from it.
        (trace(["a", "B", "c"]), "not_continued"),
        (trace(["a"]), "not_continued"),
    ],
)
def test_otherwise_a_trace_stays_as_it_is(given, done):
    assert continue_trace(given) == (given, done)


@pytest.mark.parametrize("found", ["a text", [1], {"0": "a"}])
def test_a_rest_that_is_no_list_of_texts_is_refused(found):
    with refused():
        continue_trace(trace(found))


def test_a_real_record_of_phase_2_is_continued(data):
    path = data / "prm800k" / "original-records" / "prm800k-phase2-train-example.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    labelled = KINDS["prm800k"].parse(record, "record")
    continued, done = continue_trace(labelled)
    # 13 steps were generated; the labeler stopped at the seventh, which is wrong.
    assert done == "continued"
    assert (len(labelled.steps), len(continued.steps)) == (7, 13)
    assert continued.labels == (*labelled.labels, *[None] * 6)
    assert continued.first_error == 6
    assert list(continued.substeps) == record["question"]["pre_generated_steps"]
