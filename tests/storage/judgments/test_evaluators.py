from math import nan

import pytest
from sqlalchemy.exc import StatementError

from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.scores import Outputs
from stepsight.storage.judgments.evaluators import list_evaluators, register_evaluator, register_loaded
from tests.checkpoints import write_math_shepherd
from tests.messages import refused
from tests.storage.samples import evaluator, find_evaluator


def test_an_evaluator_is_added_once_and_stays_as_it_was(store):
    first = register_evaluator(
        store, name="mini", fingerprint="abc", format="stepsight", attention="causal", info={"seed": 1}
    )
    again = register_evaluator(store, name="renamed", fingerprint="abc", format="other", attention="bidirectional")
    assert again == first
    assert (first.name, first.format, first.attention, first.info) == ("mini", "stepsight", "causal", {"seed": 1})
    assert find_evaluator(store, "abc") == first


def test_evaluators_are_listed_by_name(store):
    added = [evaluator(store, name) for name in ("b", "a", "c")]
    assert list_evaluators(store) == [added[1], added[0], added[2]]


def test_one_that_says_how_valid_a_step_is_is_kept_as_such(sqlite_store, tmp_path):
    write_math_shepherd(tmp_path / "math-shepherd", card={"format": "math-shepherd"})
    row = register_loaded(sqlite_store, load_evaluator(tmp_path / "math-shepherd"))
    assert (row.format, row.attention, row.outputs) == ("math-shepherd", "causal", Outputs.VALIDITY)
    assert register_loaded(sqlite_store, load_evaluator("mini-causal")).outputs == Outputs.THREE_WAY


def test_an_unusable_name(store):
    with refused():
        evaluator(store, "")


def test_the_facts_of_an_evaluator_are_json(store):
    with pytest.raises((StatementError, ValueError), match="not JSON compliant"):
        register_evaluator(store, name="x", fingerprint="f", format="f", attention="causal", info={"loss": nan})
    assert list_evaluators(store) == []
