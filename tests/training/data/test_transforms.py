import json
import random
from collections import Counter

import pytest

from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.importers import KINDS, read_traces
from stepsight.training.data.transforms import balance_ratio, continue_trace, is_balanced, settle, stop_at_a_step
from tests.cases import each
from tests.messages import refused


def test_a_trace_stops_at_the_one_step_that_stays_labelled():
    trace = Trace.of("q", ["a", "b", "c"], ["pos", "neg", None], id="t", meta={"source": "s"})
    ends = Counter()
    for seed in range(300):
        cut = stop_at_a_step(trace, random.Random(seed))
        assert [step.text for step in cut.steps] == ["a", "b"][: len(cut.steps)]
        assert cut.labels == (*[None] * (len(cut.steps) - 1), trace.labels[len(cut.steps) - 1])
        assert (cut.id, cut.meta) == ("t", {"source": "s"})
        ends[len(cut.steps)] += 1
    # Either labelled step of two, each with probability one half: 150, standard deviation 8.7.
    assert set(ends) == {1, 2}
    assert abs(ends[1] - 150) < 45


def labelled(labels):
    """`-`, `0`, `+` and `.` are neg, neu, pos and unlabelled."""
    names = {"-": "neg", "0": "neu", "+": "pos", ".": None}
    return Trace.of("q", ["x"] * len(labels), [names[label] for label in labels])


@each(
    "labels, ratio",
    [
        ("+-", 1 / 1),
        ("+++-", 1 / 3),
        ("++0-", 1 / 2),
        ("+++00-", 1 / 3),
        ("00--", 2 / 2),
        # One class, or none, is not balanced at all.
        ("+++", 0),
        ("-", 0),
        ("...", 0),
        # What has no label is not counted.
        ("+-......", 1 / 1),
    ],
)
def test_the_ratio_is_of_the_rarest_to_the_commonest_label_that_occurs(labels, ratio):
    assert balance_ratio(labelled(labels)) == ratio


def test_a_step_with_substeps_counts_once():
    assert balance_ratio(Trace.of("q", [["a", "b", "c"], "d"], ["pos", "neg"])) == 1


@each(
    "labels, rho, every_label, balanced",
    [
        # 2 pos, 1 neg: 0.5 is enough. Without a neu it is not in the paper's training pool.
        ("++-", 0.5, False, True),
        ("++-", 0.5, True, False),
        ("+0-+", 0.5, True, True),
        # 3 pos, 1 neu, 1 neg: 1 / 3.
        ("+0-++", 0.5, True, False),
        ("+++", 0.0, False, True),
        ("...", 0.0, False, True),
    ],
)
def test_the_paper_filters_its_pool_by_both_and_its_test_by_the_ratio_alone(labels, rho, every_label, balanced):
    assert is_balanced(labelled(labels), rho, every_label) is balanced


def test_the_shares_of_the_real_file(data):
    with open(data / "prm800k" / "test.jsonl", "rb") as file:
        traces = [trace for _, trace in read_traces(KINDS["prm800k"], file, "test.jsonl")]
    assert len(traces) == 200
    assert sum(is_balanced(trace, 0.5, every_label=False) for trace in traces) == 60


def generated(rest=None, **meta):
    return Trace.of("q", ["a", "b"], ["pos", "neg"], meta=meta | ({"pre_generated_steps": rest} if rest else {}))


def test_the_generated_steps_after_the_labelled_ones_follow_unlabelled():
    continued, outcome = continue_trace(generated(["a", "b", "c", "# Answer\n\n7"]))
    assert outcome == "continued"
    assert continued.substeps == ("a", "b", "c", "# Answer\n\n7")
    assert continued.labels == (Label.POS, Label.NEG, None, None)
    assert [step.valid for step in continued.steps] == [True, False, None, None]


@each(
    "trace, outcome",
    [
        (generated(["a", "b"]), "complete"),
        # Nothing but white space is left.
        (generated(["a", "b", " \n"]), "complete"),
        (generated(finish_reason="solution"), "complete"),
        (generated(finish_reason="found_error"), "not_continued"),
        (generated(), "not_continued"),
        # A labeler chose another second step, so the generated third does not follow from it.
        (generated(["a", "B", "c"]), "not_continued"),
        (generated(["a"]), "not_continued"),
    ],
)
def test_otherwise_a_trace_stays_as_it_is(trace, outcome):
    assert continue_trace(trace) == (trace, outcome)


@each("rest", ["a text", [1], {"0": "a"}])
def test_a_rest_that_is_no_list_of_texts_is_refused(rest):
    with refused():
        continue_trace(generated(rest))


def test_a_real_record_of_phase_2_is_continued(data):
    path = data / "prm800k" / "original-records" / "prm800k-phase2-train-example.json"
    record = json.loads(path.read_text(encoding="utf-8"))
    trace = KINDS["prm800k"].parse(record, "record")
    continued, outcome = continue_trace(trace)
    # 13 steps were generated; the labeler stopped at the seventh, which is wrong.
    assert (outcome, len(trace.steps), len(continued.steps), continued.first_error) == ("continued", 7, 13, 6)
    assert continued.labels == (*trace.labels, *[None] * 6)
    assert list(continued.substeps) == record["question"]["pre_generated_steps"]


@pytest.mark.parametrize("valid", ["pos", "unlabelled", None])
def test_valid_steps_without_a_rating_become_what_their_source_says(valid):
    rated = Trace.of("q", ["a", "b", "c"], ["neu", None, "neg"])
    assert settle(rated, valid) is rated
    # Valid before the error and after it, as PRMBench says; the last step is unlabelled.
    steps = (Step(("a", "b"), valid=True), Step(("c",), Label.NEG), Step(("d",), valid=True), Step(("e",)))
    trace = Trace("7", "q", steps)
    if valid is None:
        with refused():
            settle(trace, valid)
        return
    settled = settle(trace, valid)
    assert settled.labels == ((Label.POS, Label.NEG, Label.POS, None) if valid == "pos" else trace.labels)
    assert (settled.id, settled.problem, settled.substeps) == ("7", "q", ("a", "b", "c", "d", "e"))
