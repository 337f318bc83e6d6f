import pytest

from stepsight.core.files.row_conditions import as_text, from_mapping, parse_conditions
from tests.cases import each
from tests.messages import refused

ROWS = [
    {"source": "MATH", "phase": 2, "screening": False, "reason": None},
    {"source": "GSM8K", "phase": 2, "screening": True, "reason": "solution"},
    {"source": "MATH", "phase": 1, "screening": False, "reason": "found_error"},
]


def kept(conditions):
    return [number for number, row in enumerate(ROWS) if conditions.hold(row)]


@each(
    "texts, rows",
    [
        ([], [0, 1, 2]),
        (["source=MATH"], [0, 2]),
        (["source=MATH", "phase=2"], [0]),
        (["phase=1,2"], [0, 1, 2]),
        (["phase!=1"], [0, 1]),
        (["reason!=solution,found_error"], [0]),
        (["screening=false"], [0, 2]),
        (["reason=null"], [0]),
        # A field that a row lacks is null.
        (["other=null"], [0, 1, 2]),
        ([" source = MATH , other "], [0, 2]),
    ],
)
def test_conditions_choose_rows(texts, rows):
    assert kept(parse_conditions(texts)) == rows


def test_a_configuration_says_the_same_with_values_and_lists():
    assert kept(from_mapping({"source": "MATH", "phase": 2})) == [0]
    assert kept(from_mapping({"phase": [1, 2], "screening": False})) == [0, 2]
    assert kept(from_mapping({"reason!": ["solution", "found_error"]})) == [0]
    assert kept(from_mapping({"reason": None})) == [0]


def test_rows_are_counted_under_the_first_condition_that_they_miss():
    conditions = parse_conditions(["source=MATH", "phase=2"])
    kept(conditions)
    assert conditions.left_out == {"source=MATH": 1, "phase=2": 1}
    conditions.check()


@pytest.mark.parametrize(
    "texts", [["sorce=MATH"], ["xyzzy=1"], ["source=AIME"], ["source=MATH", "reason=solution"]]
)
def test_conditions_that_no_row_meets_are_named(texts):
    conditions = parse_conditions(texts)
    assert kept(conditions) == []
    with refused():
        conditions.check()


def test_without_rows_there_is_nothing_to_object_to():
    parse_conditions(["source=MATH"]).check()


@pytest.mark.parametrize("text", ["source", "=MATH", "!=MATH", ""])
def test_a_malformed_condition_is_refused(text):
    with refused():
        parse_conditions([text])


def test_an_empty_value_is_the_empty_text():
    assert [bool(parse_conditions(["a="]).hold(row)) for row in ({"a": ""}, {"a": "b"})] == [True, False]


@pytest.mark.parametrize(
    ("value", "text"), [("a", "a"), (True, "true"), (None, "null"), (2, "2"), (2.0, "2"), (0.25, "0.25")]
)
def test_values_are_written_as_conditions_write_them(value, text):
    assert as_text(value) == text


def test_messages_stay_short_whatever_the_rows_hold():
    conditions = parse_conditions(["a=1"])
    for number in range(500):
        conditions.hold({"a": f"{number}" + "x" * 1000, f"f{number}": 0})
    with refused() as caught:
        conditions.check()
    assert len(str(caught.value)) < 1000
