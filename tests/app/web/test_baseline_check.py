"""The line on how evaluators compare with the trivial baselines."""

import threading
from dataclasses import replace

import pytest

from stepsight.app.browse.page import BrowsePages
from stepsight.app.evidence.page import EvidencePage
from stepsight.app.score.entered import Entered
from stepsight.app.score.result import result_html
from stepsight.app.scoring.evaluators import Evaluators
from stepsight.app.web import background_cache
from stepsight.app.web.background_cache import LARGEST, Pending
from stepsight.app.web.baseline_check import BaselineChecks, card_id
from stepsight.core.judgment import Mode
from stepsight.core.trace import Trace
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset, iterate_traces
from stepsight.training.evaluate.baseline_check import BaselineCheck, check_baselines
from tests.app.elements import read
from tests.storage.samples import judge
from tests.training.evaluate.test_baseline_check import judged


@pytest.fixture
def guessing(sqlite_store):
    """An evaluator that guesses on the dataset `many`."""
    return judged(sqlite_store, "many", right=0.5)


@pytest.fixture
def measured(sqlite_store, guessing):
    """With its standing measured already."""
    checks = BaselineChecks(sqlite_store)
    found = checks.find(find_dataset(sqlite_store, "many"), guessing, Mode.OFFLINE, patience=60)
    assert isinstance(found, BaselineCheck)
    return checks


def test_a_page_does_not_wait(sqlite_store, guessing, monkeypatch):
    go = threading.Event()

    def slow(*args):
        assert go.wait(60)
        return check_baselines(*args)

    monkeypatch.setattr("stepsight.app.web.baseline_check.check_baselines", slow)
    checks, dataset = BaselineChecks(sqlite_store), find_dataset(sqlite_store, "many")
    assert isinstance(checks.find(dataset, guessing, Mode.OFFLINE), Pending)
    assert read(checks.line(dataset, [guessing], Mode.OFFLINE)).one("p", cls="baseline-check")["data-again"] == "2"
    go.set()
    checks.find(dataset, guessing, Mode.OFFLINE, patience=60)
    line = read(checks.line(dataset, [guessing], Mode.OFFLINE)).one("p", cls="baseline-check")
    assert " points, 95 % interval [−" in line.text


def test_browse_says_so_in_the_list_and_on_a_trace(sqlite_store, evaluators, guessing, measured):
    (trace, *_) = iterate_traces(sqlite_store, find_dataset(sqlite_store, "many").id)
    queries = ({"dataset": "many", "evaluator": "many"}, {"trace": str(trace.trace_id), "evaluator": "many"})
    for query in queries:
        page = read(BrowsePages(sqlite_store, evaluators, measured).content(query, None).html)
        line = page.one("p", cls="baseline-check")
        assert "many does not clear the trivial baselines" in line.text
        assert [link["href"] for link in line.all("a")] == ["/evaluators"]
    assert "baseline" not in BrowsePages(sqlite_store, evaluators).content(queries[0]).html


def test_of_one_that_clears_them_or_has_too_few_labels_there_is_no_line(sqlite_store):
    checks = BaselineChecks(sqlite_store)
    for name, count, clears in (("good", 60, True), ("few", 5, None)):
        row, dataset = judged(sqlite_store, name, count=count), find_dataset(sqlite_store, name)
        found = checks.find(dataset, row, Mode.OFFLINE, patience=60)
        assert (found.clears if isinstance(found, BaselineCheck) else found) is clears
        assert checks.line(dataset, [row], Mode.OFFLINE) == ""


def test_a_weak_evaluator_is_named_beside_its_verdict_on_a_solution_of_no_dataset(sqlite_store, measured, guessing):
    line = read(measured.strength_html({"many": guessing.fingerprint})).one("p", cls="strength")
    assert line.text.startswith("many does not clear the trivial baselines on the one dataset measured.")
    card = f"/evaluators#{card_id(guessing.fingerprint)}"
    assert [link["href"] for link in line.all("a")] == [card, "/evaluators"]
    assert BaselineChecks(sqlite_store).strength_html({"many": "unmeasured"}) == ""


def test_what_the_cards_of_shipped_evaluators_say_is_told_once_with_their_verdicts(sqlite_store):
    entered = Entered.of(Trace.of("What is 2 + 3?", ["2 + 3 = 5."]), ("mini-bidir", "mini-causal"))
    page = read(result_html(Evaluators(), entered, strength_html=BaselineChecks(sqlite_store).strength_html))
    line = page.one("p", cls="strength").text
    assert line.startswith(
        "mini-bidir finds the error in 15 of 36 example solutions and does not clear the trivial "
    )
    assert "; mini-causal finds the error in none of 36 example solutions and does not clear the baselines" in line


def test_evidence_speaks_of_the_dataset_that_a_trace_is_from(sqlite_store, evaluators, guessing, measured):
    stored = list(iterate_traces(sqlite_store, find_dataset(sqlite_store, "many").id))
    save_judgments(sqlite_store, guessing.id, [judge(stored[0], "hindsight")])
    checks = BaselineChecks(sqlite_store)
    checks.find(find_dataset(sqlite_store, "many"), guessing, Mode.OFFLINE, patience=60)
    for query in ({"dataset": "many"}, {"trace": str(stored[0].trace_id), "evaluator": "many"}):
        page = read(EvidencePage(sqlite_store, evaluators, checks).content(query, None).html)
        assert "On many, many does not clear" in page.one("p", cls="baseline-check").text


def test_it_is_measured_again_when_labels_or_judgments_change(sqlite_store, guessing, measured, monkeypatch):
    monkeypatch.setattr(background_cache, "_REST", 0.0)
    dataset = find_dataset(sqlite_store, "many")
    before = measured.find(dataset, guessing, Mode.OFFLINE)
    assert isinstance(before, BaselineCheck)
    stored = list(iterate_traces(sqlite_store, dataset.id))
    save_judgments(sqlite_store, guessing.id, [judge(one, "offline", seed) for seed, one in enumerate(stored)])
    after = measured.find(dataset, guessing, Mode.OFFLINE, patience=60)
    assert isinstance(after, BaselineCheck)
    assert after.value != before.value


def test_while_a_job_judges_a_page_gets_what_was_begun_for_it(sqlite_store, guessing, monkeypatch):
    monkeypatch.setattr(background_cache, "_REST", 0.0)
    go, begun = threading.Event(), []

    def slow(*args):
        begun.append(1)
        assert go.wait(60)
        return check_baselines(*args)

    monkeypatch.setattr("stepsight.app.web.baseline_check.check_baselines", slow)
    checks, dataset = BaselineChecks(sqlite_store), find_dataset(sqlite_store, "many")
    assert "data-again" in checks.line(dataset, [guessing], Mode.OFFLINE)
    for seed, one in enumerate(list(iterate_traces(sqlite_store, dataset.id))):
        save_judgments(sqlite_store, guessing.id, [judge(one, "offline", seed)])
        if seed % 10 == 0:
            assert "data-again" in checks.line(dataset, [guessing], Mode.OFFLINE)
    go.set()
    first = checks.find(dataset, guessing, Mode.OFFLINE, patience=60)
    assert begun == [1]
    # The next page is of what is there by then, and until that is measured it has the last.
    go.clear()
    assert "data-again" not in checks.line(dataset, [guessing], Mode.OFFLINE)
    assert checks.find(dataset, guessing, Mode.OFFLINE) is first
    go.set()
    second = checks.find(dataset, guessing, Mode.OFFLINE, patience=60)
    assert second is not first
    assert begun == [1, 1]


def test_datasets_without_errors_or_too_large_ones_cost_nothing(sqlite_store, guessing):
    checks, dataset = BaselineChecks(sqlite_store), find_dataset(sqlite_store, "many")
    for unmeasured in (replace(dataset, errors=0, redundant=0), replace(dataset, traces=LARGEST + 1)):
        assert checks.find(unmeasured, guessing, Mode.OFFLINE) is None
        assert checks.line(unmeasured, [guessing]) == ""
