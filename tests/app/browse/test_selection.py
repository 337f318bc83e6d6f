import pytest

from stepsight.app.browse.address import Address
from stepsight.app.browse.selection import ListPlace, Selection
from stepsight.core.judgment import Mode
from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.traces.queries import Neighbours, find_dataset
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


def test_an_address_selects_rows_counts_and_neighbours(select):
    selection, problems = select(gold="error")
    assert problems == []
    assert selection.about.key == "mini"
    assert selection.address.dataset == "sums"
    assert ids(selection) == ["error", "first"]
    page = selection.page(1)
    assert (page.total, page.counts["gold"]) == (
        2,
        {"error": 2, "clean": 1, "redundant": 0, "not-redundant": 0, "missing": 1},
    )
    first, second = (row.trace_id for row in selection.page(25).rows)
    assert selection.place(first) == ListPlace(Neighbours(None, second), 1, 2)
    assert selection.place(second).words == "2 of 2"


def test_a_trace_beyond_the_conditions_has_neighbours_and_no_number(select):
    everything = {row.id: row.trace_id for row in select()[0].page(25).rows}
    found = select(gold="clean")[0].place(everything["error"])
    assert (found.number, found.words) == (None, "")
    # In the file's order one of the two comes before or after it, and nothing else is in the list.
    assert [found.near.previous, found.near.next].count(everything["clean"]) == 1


def test_the_order_and_the_page_count(select):
    everything = ids(select(sort="-validity")[0])
    assert sorted(everything) == ["clean", "error", "first", "missing"]
    assert ids(select(sort="validity")[0]) == everything[::-1]
    assert [row.id for row in select(sort="-validity", page=2)[0].page(3).rows] == everything[3:]


def test_totals_without_each_condition(select):
    # One clean trace; of the two with an error none says "2 + 2".
    selection, _ = select(gold="error", q="2 + 2")
    assert ids(selection) == []
    assert selection.page(25).loosened == {"text": 2, "gold": 1}


def test_hits_in_steps_are_those_that_the_problem_lacks(select):
    selection, _ = select(q="It is")
    rows = selection.page(25).rows
    assert [row.id for row in rows] == ["error", "clean", "missing"]
    assert [selection.hits_in_steps(rows)[row.trace_id] for row in rows] == [
        (1, "It is a sum."),
        (1, "It is 4."),
        (1, "It is 6."),
    ]
    selection, _ = select(q="what is")
    assert selection.hits_in_steps(selection.page(25).rows) == {}


def test_an_evaluator_that_is_not_offered_is_told_and_passed_over(select):
    selection, problems = select(evaluator="nobody", against="mini", beside=("mini", "who"))
    assert len(problems) == 2
    assert "No evaluator 'nobody'" in str(problems[0])
    assert selection.address == Address(dataset="sums", against="mini", beside=("mini",))
    assert selection.about.key == "mini"


UNJUDGED = "tiny has judged no trace of this dataset: it has no verdicts to filter or sort by."


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
