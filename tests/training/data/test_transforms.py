import json
import random
from collections import Counter

import pytest

from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.importers import KINDS, read_traces
from stepsight.training.data.transforms import (
    WEIGHTS,
    balance_ratio,
    continue_trace,
    corrupt,
    is_balanced,
    settle,
    stop_at_a_step,
    valid_part,
)
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


TRACE = Trace.of(
    "Ann has 12 pens and buys 3 boxes of 7.",
    ["She buys 3 * 7 = 21 pens.", "Now she has 12 + 21 = 33.", "The answer is 33."],
    ["pos", "pos", "pos"],
)


def changed(kind, seed):
    return corrupt(TRACE, random.Random(seed), {kind: 1.0})


@pytest.mark.parametrize("kind", ["number", "operation"])
def test_one_step_is_changed_and_wrong_and_the_others_stay(kind):
    for seed in range(60):
        found = changed(kind, seed)
        wrong = [i for i, label in enumerate(found.labels) if label == Label.NEG]
        differing = [i for i in range(3) if found.steps[i].text != TRACE.steps[i].text]
        assert wrong == differing
        assert len(wrong) == 1
        assert found.meta["corruption"] == kind
        old, new = TRACE.steps[wrong[0]].text, found.steps[wrong[0]].text
        if kind == "operation":
            # One sign of the same place was exchanged.
            assert len(old) == len(new)
            assert sum(a != b for a, b in zip(old, new, strict=True)) == 1


@each(
    "text, left",
    [
        ("Step 2: we add 3 and 4.", "Step 2: we add "),
        ("**2.** We add 3.\n(3) So $x$ = 4.", "**2.** We add "),
        ("By equation (2), case 1 gives 7.", "By equation (2), case 1 gives "),
        ("(3) + x = y", "("),
        ("12.", ""),
    ],
)
def test_a_number_that_only_counts_is_not_changed(text, left):
    for seed in range(20):
        changed = corrupt(Trace.of("q", [text], ["pos"]), random.Random(seed), {"number": 1.0}).steps[0].text
        assert changed != text
        assert changed.startswith(left)
        assert ("(3) So" in changed) == ("(3) So" in text)


def test_after_a_step_left_out_the_next_is_wrong():
    found = changed("remove", 1)
    assert len(found.steps) == 2
    at = found.labels.index(Label.NEG)
    left = [step.text for step in found.steps]
    missing = next(i for i in range(3) if TRACE.steps[i].text not in left)
    assert found.steps[at].text == TRACE.steps[missing + 1].text


def test_the_earlier_of_two_exchanged_steps_is_wrong_and_those_between_are_unlabelled():
    # The first and the last of three: the last comes first and is wrong; then nothing is known.
    found = next(f for seed in range(60) if (f := changed("swap", seed)).steps[0].text == TRACE.steps[2].text)
    assert [step.text for step in found.steps] == [TRACE.steps[i].text for i in (2, 1, 0)]
    assert found.labels == (Label.NEG, None, None)


def test_a_repeated_step_is_redundant():
    found = changed("repeat", 3)
    at = found.labels.index(Label.NEU)
    assert found.steps[at].text == found.steps[at - 1].text
    assert Counter(found.labels) == {Label.POS: 3, Label.NEU: 1}


def test_a_trace_with_nothing_to_change_is_left_out():
    words = Trace.of("q", ["So it is."], ["pos"])
    for kind in ("number", "operation", "remove", "swap"):
        assert corrupt(words, random.Random(0), {kind: 1.0}) is None
    hyphen = Trace.of("q", ["a well-known fact, and/or more"], ["pos"])
    assert corrupt(hyphen, random.Random(0), {"operation": 1.0}) is None


def test_every_kind_is_drawn_and_repeats_by_seed():
    kinds = Counter(corrupt(TRACE, random.Random(seed)).meta["corruption"] for seed in range(300))
    assert set(kinds) == set(WEIGHTS)
    assert corrupt(TRACE, random.Random(5)) == corrupt(TRACE, random.Random(5))


def test_the_valid_part_ends_before_the_first_wrong_or_unlabelled_step():
    trace = Trace.of("q", ["a", "b", "c", "d"], ["pos", "neu", "neg", "pos"])
    assert valid_part(trace).labels == (Label.POS, Label.NEU)
    assert valid_part(Trace.of("q", ["a", "b"], ["pos", None])) is None
    assert valid_part(TRACE) == TRACE


def test_a_redundant_step_is_never_the_one_left_out():
    told = Trace.of("q", ["x = 2", "As said, x = 2", "So x + 1 = 3"], ["pos", "neu", "pos"])
    found = [corrupt(told, random.Random(seed), {"remove": 1.0}) for seed in range(20)]
    # Without its first step the second one has nothing to go back to.
    assert {tuple(step.text for step in trace.steps) for trace in found} == {("As said, x = 2", "So x + 1 = 3")}
    assert {trace.labels for trace in found} == {(Label.NEG, Label.POS)}
    redundant = Trace.of("q", ["x", "x", "x"], ["neu", "neu", "pos"])
    assert corrupt(redundant, random.Random(0), {"remove": 1.0}) is None


def test_steps_that_say_the_same_are_not_exchanged():
    same = Trace.of("q", ["x = 2", "x = 2", "x = 2"], ["pos", "neu", "neu"])
    assert all(corrupt(same, random.Random(seed), {"swap": 1.0}) is None for seed in range(20))
    pair = Trace.of("q", ["x = 2", "x = 2", "So 3"], ["pos", "neu", "pos"])
    found = [corrupt(pair, random.Random(seed), {"swap": 1.0}) for seed in range(20)]
    assert {trace.steps[trace.labels.index(Label.NEG)].text for trace in found if trace} == {"So 3"}
