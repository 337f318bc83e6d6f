import pytest

from stepsight.app.results.page import ResultsAddress
from stepsight.core.errors import UserError
from stepsight.core.judgment import Mode


def test_it_is_read_and_written():
    query = {"dataset": "a b", "mode": "online", "errors": "redundant", "figure": "sol_f1", "group": "g"}
    address = ResultsAddress.exact(query | {"unknown": "x"})
    assert address.query() == query
    assert address.query(mode="", evaluator="e") == {
        "dataset": "a b", "errors": "redundant", "figure": "sol_f1", "group": "g", "evaluator": "e"
    }  # fmt: skip


def test_what_it_does_not_say_is_the_default():
    address = ResultsAddress.exact({})
    assert address.query() == {}
    assert address.chosen_figure == "step_auc"
    assert address.chosen_mode([Mode.ONLINE]) == "online"
    assert ResultsAddress(mode="offline").chosen_mode([Mode.ONLINE]) == "online"
    assert ResultsAddress(mode="online").chosen_mode([Mode.OFFLINE, Mode.ONLINE]) == "online"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"mode": "hindsight"}, "mode is 'hindsight', expected one of offline, online"),
        ({"errors": "both"}, "errors is 'both', expected one of invalid, redundant"),
        ({"figure": "f" * 99}, "figure is 'fff"),
    ],
)
def test_nonsense_is_refused(query, message):
    with pytest.raises(UserError, match=message):
        ResultsAddress.exact(query)


def test_what_makes_sense_beside_nonsense_is_kept():
    address, problems = ResultsAddress.read({"dataset": "sums", "mode": "x", "figure": ["y", "sol_f1"]})
    assert address == ResultsAddress(dataset="sums", figure="sol_f1")
    assert len(problems) == 1
