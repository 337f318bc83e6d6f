import numpy as np
import pytest

from stepsight.app.browse.address import Address
from stepsight.app.browse.evaluator_choice import (
    EvaluatorChoice,
    default_choice,
    judge_trace,
    list_choices,
    shown_choices,
)
from stepsight.app.browse.selection import Selection
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.core.judgment import Judgment, Mode
from stepsight.core.scores import Outputs, Thresholds
from stepsight.storage.judgments.evaluators import Threshold, register_evaluator, save_calibration
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset, get_trace
from tests.storage.samples import ERROR, add, evaluator, judge, same, scores


@pytest.fixture
def dataset(sqlite_store):
    """A dataset that `old` and a model of the same name as one that is loaded have judged."""
    trace = add(sqlite_store)[0]
    for name, fingerprint in (("tiny", "0123456789"), ("old", "of old")):
        row = register_evaluator(
            sqlite_store, name=name, fingerprint=fingerprint, format="stepsight", attention="causal"
        )
        save_judgments(sqlite_store, row.id, [judge(trace, Mode.HINDSIGHT)])
    return find_dataset(sqlite_store, "sums")


def keys(offers):
    return [offer.key for offer in offers]


def test_those_loaded_come_first_and_others_of_their_name_by_fingerprint(sqlite_store, evaluators, dataset):
    offers = list_choices(sqlite_store, evaluators, dataset.id)
    assert keys(offers) == ["tiny", "tiny-causal", "old", "tiny 01234567"]
    assert [offer.runs for offer in offers] == [True, True, False, False]
    assert [offer.judged for offer in offers] == [False, False, True, True]
    assert [offer.id is None for offer in offers] == [True, True, False, False]


def test_one_that_judged_another_dataset_is_offered_only_where_it_runs(sqlite_store, evaluators, dataset):
    other = find_dataset(sqlite_store, add(sqlite_store, dataset="other")[0].dataset)
    assert keys(list_choices(sqlite_store, evaluators, other.id)) == ["tiny", "tiny-causal"]
    row = evaluators.register(sqlite_store, "tiny")
    (tiny, _) = list_choices(sqlite_store, evaluators, other.id)
    assert (tiny.id, tiny.judged) == (row.id, False)


def test_a_page_that_names_nobody_is_about_one_that_has_judged(sqlite_store, evaluators, dataset):
    offers = list_choices(sqlite_store, evaluators, dataset.id)
    assert default_choice(offers).key == "old"
    assert default_choice(offers[:2]).key == "tiny"
    judged_here = EvaluatorChoice("mine", None, judged=True, runs=True)
    assert default_choice([*offers, judged_here]).key == "mine"
    # A job of a shipped evaluator does not take the page from one that had judged before.
    demonstration = EvaluatorChoice("mini-bidir", None, judged=True, shipped=True, runs=True)
    published = EvaluatorChoice("published", None, judged=True, outputs=Outputs.VALIDITY)
    assert default_choice([demonstration, published]).key == "published"


def test_those_side_by_side(sqlite_store, evaluators, dataset):
    offers = list_choices(sqlite_store, evaluators, dataset.id)
    assert keys(shown_choices(offers, Address().shown)) == ["old"]
    assert keys(shown_choices(offers, Address(evaluator="tiny", against="old").shown)) == ["tiny", "old"]
    beside = ("tiny 01234567", "tiny-causal")
    assert keys(shown_choices(offers, Address(evaluator="tiny", beside=beside).shown)) == list(beside)
    many = [EvaluatorChoice(f"e{i}", None, judged=True) for i in range(8)]
    assert keys(shown_choices(many, Address(beside=tuple(keys(many))).shown)) == ["e0", "e1", "e2", "e3", "e4"]


def test_one_that_never_judged_is_known_by_what_it_gives(sqlite_store, mixed, dataset):
    found = {offer.key: (offer.row, offer.outputs) for offer in list_choices(sqlite_store, mixed, dataset.id)}
    assert found["math-shepherd"] == found["two"] == (None, Outputs.VALIDITY)
    assert found["tiny"] == (None, Outputs.THREE_WAY)
    assert found["old"][1] == Outputs.THREE_WAY


@pytest.fixture
def trace(sqlite_store):
    """Three sub-steps."""
    return add(sqlite_store, [ERROR])[0]


def answers(store, evaluators, trace):
    offers = list_choices(store, evaluators, trace.dataset_id)
    return {answer.name: answer for answer in judge_trace(store, evaluators, offers, trace, 60.0)}


def test_a_loaded_evaluator_without_a_judgment_judges_now(sqlite_store, evaluators, trace):
    found = answers(sqlite_store, evaluators, trace)
    assert list(found) == ["tiny", "tiny-causal"]
    tiny = found["tiny"]
    assert (tiny.stored, tiny.runs, tiny.silence) == (False, True, "")
    assert same(tiny.judgments[0].result, evaluators.judge("tiny", trace).result)
    assert list(tiny.modes) == [Mode.ONLINE, Mode.OFFLINE]
    assert np.allclose(tiny.change, tiny.offline.validity - tiny.online.validity)
    assert not found["tiny-causal"].change.any()


def test_a_stored_judgment_comes_first(sqlite_store, evaluators, trace):
    row = evaluators.register(sqlite_store, "tiny")
    stored = judge(trace, Mode.HINDSIGHT)
    save_judgments(sqlite_store, row.id, [stored])
    tiny = answers(sqlite_store, evaluators, trace)["tiny"]
    assert tiny.stored
    assert len(tiny.judgments) == 1
    assert same(tiny.judgments[0].result, stored.result)


def test_one_that_runs_here_is_asked_for_the_mode_that_is_not_stored(sqlite_store, evaluators, trace):
    row = evaluators.register(sqlite_store, "tiny")
    save_judgments(sqlite_store, row.id, [judge(trace, Mode.OFFLINE)])
    tiny = answers(sqlite_store, evaluators, trace)["tiny"]
    assert not tiny.stored
    assert list(tiny.modes) == [Mode.ONLINE, Mode.OFFLINE]


def test_one_that_does_not_run_here_says_what_is_stored(sqlite_store, evaluators, trace):
    row = evaluator(sqlite_store)
    offline = judge(trace, Mode.OFFLINE)
    save_judgments(sqlite_store, row.id, [offline])
    mini = answers(sqlite_store, evaluators, trace)["mini"]
    assert (mini.stored, mini.runs) == (True, False)
    assert mini.online is None
    assert mini.change is None
    assert same(mini.offline, offline.result)
    save_judgments(sqlite_store, row.id, [judge(trace, Mode.ONLINE)])
    assert list(answers(sqlite_store, evaluators, trace)["mini"].modes) == [Mode.ONLINE, Mode.OFFLINE]


def test_a_trace_that_was_not_judged_or_has_changed_since_says_so(sqlite_store, evaluators, trace):
    other = add(sqlite_store, dataset="sums")[-1]
    row = evaluator(sqlite_store)
    save_judgments(sqlite_store, row.id, [judge(trace, Mode.OFFLINE)])
    assert answers(sqlite_store, evaluators, other)["mini"].silence == "has not judged this trace"
    with sqlite_store.write() as session:
        session.connection().exec_driver_sql(f"UPDATE traces SET digest = 'x' WHERE id = {trace.trace_id}")
        session.connection().exec_driver_sql("UPDATE judgments SET digest = 'y'")
    changed = get_trace(sqlite_store, trace.trace_id)
    found = answers(sqlite_store, evaluators, changed)["mini"]
    assert found.silence == "its judgment is of an earlier version of this trace"
    assert (found.judgments, found.modes, found.solution) == ((), {}, None)


def test_one_that_takes_longer_than_the_patience_is_still_at_it(sqlite_store, tiny, trace):
    evaluators = Evaluators([tiny], shipped=False)
    offers = list_choices(sqlite_store, evaluators, trace.dataset_id)
    # Traces are scored where there is a place, and both are taken.
    places = evaluators._places.short
    with places, places:
        for _ in range(2):
            (answer,) = judge_trace(sqlite_store, evaluators, offers, trace, patience=0.01)
            assert (answer.waits, answer.judgments, answer.runs) == (True, (), True)
        row = evaluators.register(sqlite_store, "tiny")
        save_judgments(sqlite_store, row.id, [judge(trace, Mode.OFFLINE)])
        offers = list_choices(sqlite_store, evaluators, trace.dataset_id)
        (answer,) = judge_trace(sqlite_store, evaluators, offers, trace, patience=0.01)
        # What is stored of it is shown meanwhile.
        assert (answer.waits, answer.stored, list(answer.modes)) == (True, True, [Mode.OFFLINE])
    (answer,) = judge_trace(sqlite_store, evaluators, offers, trace, 60.0)
    assert (answer.waits, list(answer.modes)) == (False, [Mode.ONLINE, Mode.OFFLINE])


def test_the_thresholds_are_those_in_force(sqlite_store, evaluators, trace):
    row = evaluator(sqlite_store)
    save_judgments(sqlite_store, row.id, [Judgment(trace, Mode.OFFLINE, scores(3))])
    assert answers(sqlite_store, evaluators, trace)["mini"].thresholds == Thresholds()
    save_calibration(sqlite_store, row.id, find_dataset(sqlite_store, "sums"), Threshold.VALIDITY, 0.3, {})
    assert answers(sqlite_store, evaluators, trace)["mini"].thresholds == Thresholds(validity=0.3)


@pytest.fixture
def select(sqlite_store, evaluators):
    """What an address selects of the four sample traces, and the messages."""
    traces = add(sqlite_store)
    row = evaluator(sqlite_store)
    save_judgments(sqlite_store, row.id, [judge(trace, Mode.HINDSIGHT, i) for i, trace in enumerate(traces)])
    dataset = find_dataset(sqlite_store, "sums")

    def select(**parts):
        return Selection.of(sqlite_store, evaluators, dataset, Address(dataset="sums", **parts))

    return select


def ids(selection):
    return [row.id for row in selection.page(25).rows]


def test_an_evaluator_that_is_not_offered_is_told_and_passed_over(select):
    selection, problems = select(evaluator="nobody", against="mini", beside=("mini", "who"))
    assert len(problems) == 2
    assert "No evaluator 'nobody'" in str(problems[0])
    assert selection.address == Address(dataset="sums", against="mini", beside=("mini",))
    assert selection.about.key == "mini"


def test_one_that_never_judged_has_nothing_to_filter_by(select):
    selection, problems = select(evaluator="tiny", mistake="missed", gold="error", sort="-change")
    assert [str(one) for one in problems] == [
        "tiny has not judged any trace of this dataset, so it has no verdicts to filter or sort by."
    ]
    assert selection.address == Address(dataset="sums", evaluator="tiny", gold="error")
    assert ids(selection) == ["error", "first"]


def test_one_that_gives_validity_only_has_no_redundancy_to_filter_by(sqlite_store, mixed):
    traces = add(sqlite_store)
    dataset = find_dataset(sqlite_store, "sums")
    row = mixed.register(sqlite_store, "two")
    save_judgments(sqlite_store, row.id, [mixed.judge("two", trace) for trace in traces])
    asked = Address(dataset="sums", evaluator="two", verdict="redundant", sort="-redundancy", gold="error")
    selection, problems = Selection.of(sqlite_store, mixed, dataset, asked)
    assert [str(one) for one in problems] == ["two gives no redundancy to filter or sort by."]
    assert selection.address == Address(dataset="sums", evaluator="two", gold="error")
    assert ids(selection) == ["error", "first"]
    _, problems = Selection.of(sqlite_store, mixed, dataset, asked.changed(evaluator="tiny"))
    assert [str(one) for one in problems] == [
        "tiny has not judged any trace of this dataset, so it has no verdicts to filter or sort by."
    ]
    kept = Address(dataset="sums", evaluator="two", verdict="invalid", sort="-validity")
    assert Selection.of(sqlite_store, mixed, dataset, kept)[1] == []
