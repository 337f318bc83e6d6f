import pytest

from stepsight.app.browse.address import Address
from stepsight.app.browse.selection import Selection
from stepsight.core.judgment import Mode
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import find_dataset
from tests.storage.samples import add, evaluator, judge


@pytest.fixture
def select(sqlite_store, evaluators):
    """What an address selects of the four sample traces, and the messages."""
    traces = add(sqlite_store)
    row = evaluator(sqlite_store)
    save_judgments(sqlite_store, row.id, [judge(trace, Mode.HINDSIGHT, i) for i, trace in enumerate(traces)])
    dataset = find_dataset(sqlite_store, "sums")

    def select(**parts):
        return Selection.of(sqlite_store, evaluators, dataset.id, Address(dataset="sums", **parts))

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
        "tiny has judged no trace of this dataset: it has no verdicts to filter or sort by."
    ]
    assert selection.address == Address(dataset="sums", evaluator="tiny", gold="error")
    assert ids(selection) == ["error", "first"]


def test_one_that_gives_validity_only_has_no_redundancy_to_filter_by(sqlite_store, mixed):
    traces = add(sqlite_store)
    row = mixed.register(sqlite_store, "two")
    save_judgments(sqlite_store, row.id, [mixed.judge("two", trace) for trace in traces])
    asked = Address(dataset="sums", evaluator="two", verdict="redundant", sort="-redundancy", gold="error")
    selection, problems = Selection.of(sqlite_store, mixed, traces[0].dataset_id, asked)
    assert [str(one) for one in problems] == ["two gives no redundancy to filter or sort by."]
    assert selection.address == Address(dataset="sums", evaluator="two", gold="error")
    assert ids(selection) == ["error", "first"]
    _, problems = Selection.of(sqlite_store, mixed, traces[0].dataset_id, asked.changed(evaluator="tiny"))
    assert [str(one) for one in problems] == [
        "tiny has judged no trace of this dataset: it has no verdicts to filter or sort by."
    ]
    kept = Address(dataset="sums", evaluator="two", verdict="invalid", sort="-validity")
    assert Selection.of(sqlite_store, mixed, traces[0].dataset_id, kept)[1] == []
