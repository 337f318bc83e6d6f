import pytest

from stepsight.app.results.page import ResultsAddress
from stepsight.core.judgment import Mode
from tests.messages import refused


def test_it_is_read_and_written():
    query = {"dataset": "a b", "mode": "online", "errors": "redundant", "figure": "sol_f1", "group": "g"}
    address = ResultsAddress.exact(query | {"unknown": "x"})
    assert address.query() == query
    assert address.query(mode="", evaluator="e") == {
        "dataset": "a b", "errors": "redundant", "figure": "sol_f1", "group": "g", "evaluator": "e"
    }  # fmt: skip


def test_missing_parts_have_their_defaults():
    address = ResultsAddress.exact({})
    assert address.query() == {}
    assert address.chosen_figure == "step_auc"
    assert address.chosen_mode([Mode.ONLINE]) == "online"
    assert ResultsAddress(mode="offline").chosen_mode([Mode.ONLINE]) == "online"
    assert ResultsAddress(mode="online").chosen_mode([Mode.OFFLINE, Mode.ONLINE]) == "online"


@pytest.mark.parametrize("query", [{"mode": "hindsight"}, {"errors": "both"}, {"figure": "f" * 99}], ids=str)
def test_nonsense_is_refused(query):
    with refused():
        ResultsAddress.exact(query)


def test_valid_parts_beside_nonsense_are_kept():
    address, problems = ResultsAddress.read({"dataset": "sums", "mode": "x", "figure": ["y", "sol_f1"]})
    assert address == ResultsAddress(dataset="sums", figure="sol_f1")
    assert len(problems) == 1
