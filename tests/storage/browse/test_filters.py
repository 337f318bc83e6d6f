from typing import Any

import pytest
from pydantic import ValidationError

from stepsight.core.trace import Label
from stepsight.core.validation import validate
from stepsight.storage.browse.filters import NamedFilter, TraceFilter
from tests.cases import each
from tests.messages import refused


@pytest.mark.parametrize("field", ["gold", "error_at", "mode", "verdict", "mistake", "modes"])
def test_another_word_is_refused_with_those_that_there_are(field):
    with refused():
        validate(TraceFilter, {field: "certainly"})


@pytest.mark.parametrize("text", ["a\x00", "a\ud800", "x" * 1001])
def test_a_text_that_cannot_be_searched_for(text):
    with refused():
        validate(TraceFilter, {"text": text})
    assert TraceFilter(text="  ") == TraceFilter()


@pytest.mark.parametrize("change", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_change_that_there_is_not(change):
    with pytest.raises(ValidationError):
        TraceFilter(change=change)


@pytest.mark.parametrize("cell", ["neg", "neg-wrong", "neg-pos-neu", "-"])
def test_a_cell_that_there_is_not(cell):
    with refused():
        validate(NamedFilter, {"cell": cell})
    assert TraceFilter(cell="neg-pos").labels == (Label.NEG, Label.POS)
    assert TraceFilter().labels is None


def test_a_stored_filter_is_read_again():
    where = TraceFilter(text="a", gold="error", evaluator=3, verdict="valid", change=0.5, cell="neg-pos")
    stored = where.stored()
    assert stored == {
        "gold": "error", "text": "a", "evaluator": 3, "verdict": "valid", "change": 0.5, "cell": "neg-pos",
    }  # fmt: skip
    assert TraceFilter.model_validate(stored) == where
    assert TraceFilter().stored() == {}


def test_evaluators_by_name_and_by_id():
    named = NamedFilter(text="a", evaluator="mini", against="other", other="third", mode="online")
    assert named.with_ids(4, 5, 6) == TraceFilter(text="a", evaluator=4, against=5, other=6, mode="online")
    assert named.with_ids(4, None).pruned() == TraceFilter(text="a")
    assert TraceFilter(evaluator=4, verdict="valid").pruned() == TraceFilter(evaluator=4, verdict="valid")


CONDITIONS: list[tuple[dict[str, Any], str | None]] = [
    ({}, None),
    ({"gold": "error", "text": "a", "group": "b", "error_at": "late", "length": "4"}, None),
    ({"mode": "online", "evaluator": 3}, None),
    ({"verdict": "valid"}, "verdict"),
    ({"mistake": "right"}, "mistake"),
    ({"modes": "agree"}, "modes"),
    ({"against": 1}, "against"),
    ({"other": 1}, None),
    ({"other": 1, "other_mistake": "wrong"}, "other_mistake"),
    ({"change": 0.1}, "change"),
    ({"cell": "neg-pos"}, "cell"),
]


@each("fields, needing", CONDITIONS)
def test_which_conditions_are_about_judgments(fields, needing):
    where = TraceFilter(**fields)
    assert where.needing_evaluator() == needing
    assert set(where.active) == set(fields) - {"evaluator", "mode", "other"}
    assert {name for name in TraceFilter.model_fields if where.is_set(name)} == set(fields)
