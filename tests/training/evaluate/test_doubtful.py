"""Ranking a dataset's labels: what stands against each, and which come first."""

import numpy as np
import pytest

from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Outputs, StepScores
from stepsight.core.trace import Trace
from stepsight.storage.judgments.evaluators import register_evaluator
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import close_campaign
from stepsight.storage.traces.queries import find_dataset
from stepsight.training.evaluate.doubtful import family_of, rank_labels, rank_traces, version_of_doubts
from tests.messages import refused
from tests.storage.labelling.samples import campaign, label_all, people, take
from tests.storage.samples import add

NAME = "sums"
# Step 1 of trace 3 is wrong and called right, step 2 of trace 4 is right and called wrong.
TRACES = [
    *(Trace.of(f"What is {n} + 1?", ["Add them.", f"It is {n + 1}."], ["pos", "pos"], id=str(n)) for n in range(3)),
    Trace.of("What is 3 + 1?", ["3 + 1 = 5.", "It is 5."], ["pos", "neg"], id="3"),
    Trace.of("What is 4 + 1?", ["Add 4 and 1.", "4 + 1 = 5."], ["pos", "neg"], id="4"),
    *(Trace.of(f"What is {n} + 1?", ["Add them.", f"It is {n}."], ["pos", "neg"], id=str(n)) for n in range(5, 30)),
    *(Trace.of(f"What is {n} + 1?", ["Add.", f"It is {n + 1}."], ["pos", "pos"], id=str(n)) for n in range(30, 60)),
]  # fmt: skip


def judged(store, name="guess", fingerprint="f1", mode=Mode.OFFLINE, outputs=Outputs.VALIDITY, low=0.1):
    """The dataset, judged as gold has it but for step 2 of trace 4, and so better than any baseline."""
    traces = add(store, TRACES, NAME)
    return judged_by(store, traces, _sharp(traces, low), name, fingerprint, mode, outputs)


def judged_by(store, traces, scores, name="guess", fingerprint="f1", mode=Mode.OFFLINE, outputs=Outputs.VALIDITY):
    """The dataset, judged by an evaluator with the `scores` by trace."""
    about = {"name": name, "fingerprint": fingerprint, "format": "scores", "attention": "unknown"}
    row = register_evaluator(store, info={"outputs": outputs.value}, **about)
    save_judgments(store, row.id, [Judgment(trace, mode, scores[trace.id]) for trace in traces])
    return find_dataset(store, NAME)


def _sharp(traces, low=0.1):
    values = {trace.id: [0.9 if step.valid or trace.id == "4" else low for step in trace.steps] for trace in traces}
    return {id: StepScores(np.array([[1 - v, 0, v] for v in of], np.float32)) for id, of in values.items()}


def test_a_failing_equation_comes_first_and_each_label_has_its_reasons(sqlite_store):
    ranking = rank_labels(sqlite_store, judged(sqlite_store))
    first, second = ranking.labels[:2]
    assert (first.trace, first.step, first.reason()) == ("3", 1, "Gold calls step 1 valid: 3 + 1 is 4, not 5.")
    assert (second.trace, second.step) == ("4", 2)
    assert second.reason() == "Gold calls step 2 wrong: guess gives validity 0.90; its equations hold."
    assert (len(ranking.labels), ranking.mode, ranking.notes) == (120, Mode.OFFLINE, ())
    assert ranking.labels[-1].reason().endswith("little speaks against it.")


def _contradicted(store, overlap=2):
    """A campaign in which each of `overlap` people calls step 1 of a trace wrong."""
    opened = campaign(store, None, overlap=overlap)
    for user in people(store, overlap):
        label_all(store, take(store, opened, user), user, ["neg", "pos"])
    return opened


def test_people_who_contradict_a_label_come_before_evaluators(sqlite_store):
    dataset = judged(sqlite_store)
    _contradicted(sqlite_store)
    ranking = rank_labels(sqlite_store, dataset)
    named = ranking.labels[1]
    assert (named.trace, named.step) == ("0", 1)
    assert named.reason() == "Gold calls step 1 valid: 2 of 2 people call it wrong."
    assert named.as_json()["people"] == {"valid": 0, "wrong": 2}


def test_traces_are_ranked_by_their_most_doubtful_label_without_labels_of_open_campaigns(sqlite_store):
    dataset = judged(sqlite_store)
    opened = _contradicted(sqlite_store)
    version = version_of_doubts(sqlite_store, dataset)
    first, second, *others = rank_traces(sqlite_store, dataset).labels
    assert (first.trace, second.trace) == ("3", "4")
    assert not any(label.reasons() for label in others)
    assert len({first.trace, second.trace, *(label.trace for label in others)}) == len(others) + 2 == len(TRACES)
    close_campaign(sqlite_store, opened.id)
    assert version_of_doubts(sqlite_store, dataset) != version
    assert rank_traces(sqlite_store, dataset).labels[1].reason() == (
        "Gold calls step 1 valid: 2 of 2 people call it wrong."
    )


def test_people_alone_are_enough(sqlite_store):
    add(sqlite_store, TRACES, NAME)
    _contradicted(sqlite_store, overlap=1)
    ranking = rank_labels(sqlite_store, find_dataset(sqlite_store, NAME))
    equation, said, other = ranking.labels
    assert equation.finding
    assert other.reason() == "Gold calls step 2 valid: little speaks against it."
    assert said.reason() == "Gold calls step 1 valid: the person who labelled it calls it wrong."


def test_failing_equations_alone_are_enough(sqlite_store):
    add(sqlite_store, TRACES, NAME)
    dataset = find_dataset(sqlite_store, NAME)
    ranking = rank_labels(sqlite_store, dataset)
    assert [label.reason() for label in ranking.labels] == ["Gold calls step 1 valid: 3 + 1 is 4, not 5."]
    assert ranking.mode is None
    assert ranking.notes == (
        "No evaluator has judgments of the steps of sums. Only failing equations and people speak against labels"
        " here.",
    )


def test_evaluators_are_named_with_their_families_and_verdicts_in_words(sqlite_store):
    judged(sqlite_store, "Guess-2", "f1")
    judged(sqlite_store, "guess-3", "f2", low=0.2)
    dataset = judged(sqlite_store, "other", "f3", outputs=Outputs.VERDICT, low=0.0)
    (label,) = [one for one in rank_labels(sqlite_store, dataset).labels if (one.trace, one.step) == ("4", 2)]
    assert label.reason() == (
        "Gold calls step 2 wrong: Guess-2 gives validity 0.90; guess-3 gives validity 0.90; other calls it valid;"
        " both families of evaluators contradict it; its equations hold."
    )
    assert [family_of(name) for name in ("Qwen2.5-Math-PRM-7B", "GPT-4", "math-shepherd", "7")] == [
        "qwen", "gpt", "math", "7",
    ]  # fmt: skip


def test_an_evaluator_that_does_not_clear_the_baselines_has_no_vote(sqlite_store):
    traces = add(sqlite_store, TRACES, NAME)
    # It calls every step valid, the 27 wrong ones too.
    blind = {trace.id: StepScores(np.array([[0.07, 0, 0.93]] * 2, np.float32)) for trace in traces}
    dataset = judged_by(sqlite_store, traces, blind, "blind")
    ranking = rank_labels(sqlite_store, dataset)
    nobody = (
        "No evaluator here is strong enough to doubt labels of sums: blind (does not clear the trivial baselines)."
    )
    assert ranking.notes == (f"{nobody} Only failing equations and people speak against labels here.",)
    assert [(label.trace, label.step, label.validities) for label in ranking.labels] == [("3", 1, ())]
    judged(sqlite_store, fingerprint="f2")
    ranking = rank_labels(sqlite_store, dataset)
    assert ranking.notes == ("No vote for blind (does not clear the trivial baselines).",)
    assert {juror.name for label in ranking.labels for juror, _ in label.validities} == {"guess"}


@pytest.mark.parametrize("name", ["mini-bidir", "mini-causal, read in both orders", "mini-bidir (0123abcd)"])
def test_a_demonstration_has_no_vote_even_where_it_clears_the_baselines(sqlite_store, name):
    (note,) = rank_labels(sqlite_store, judged(sqlite_store, name)).notes
    assert f"strong enough to doubt labels of sums: {name} (a demonstration)." in note


def test_without_a_vote_and_a_failing_equation_there_is_a_way_on(sqlite_store):
    traces = add(sqlite_store, [trace for trace in TRACES if trace.id != "3"][:8], NAME)
    with refused():
        rank_labels(sqlite_store, judged_by(sqlite_store, traces, _sharp(traces)))


def test_a_failing_equation_speaks_for_a_label_that_calls_its_step_wrong(sqlite_store):
    slip = Trace.of("What is 4 + 2?", ["Add 4 and 2.", "4 + 2 = 7."], ["pos", "neg"], id="4")
    traces = add(sqlite_store, [slip if trace.id == "4" else trace for trace in TRACES], NAME)
    label = rank_labels(sqlite_store, judged_by(sqlite_store, traces, _sharp(traces))).labels[-1]
    assert (label.trace, label.step) == ("4", 2)
    assert label.reason() == "Gold calls step 2 wrong: guess gives validity 0.90; but 4 + 2 is 6, not 7."


def test_evaluators_with_the_same_scores_count_once(sqlite_store):
    judged(sqlite_store, "one", "f1")
    ranking = rank_labels(sqlite_store, judged(sqlite_store, "two", "f2"))
    assert ranking.notes == ("two has the same scores as one, so they count once.",)
    assert [juror.name for juror, _ in ranking.labels[-1].validities] == ["one"]


def test_traces_that_end_at_their_error_are_ranked_by_online_judgments(sqlite_store):
    judged(sqlite_store, "late", "f1")
    dataset = judged(sqlite_store, "early", "f2", mode=Mode.ONLINE)
    assert rank_labels(sqlite_store, dataset).mode == Mode.ONLINE


def test_labels_of_one_problem_are_refused(sqlite_store):
    traces = add(sqlite_store, [Trace.of("q", ["a", "b"], ["pos", "neg"], id="1")], NAME)
    with refused():
        rank_labels(sqlite_store, judged_by(sqlite_store, traces, _sharp(traces)))
