import pytest

from stepsight.core.errors import UserError
from stepsight.core.jsonl import format_trace, parse_trace, read_rows

ROW = {"id": "a", "problem": "q", "steps": ["x", ["y", "z"]], "labels": ["pos", None], "topic": "sums"}


def test_a_row_survives_the_round_trip():
    assert format_trace(parse_trace(ROW, "here")) == ROW


def test_whole_number_ids_become_text():
    assert parse_trace({"id": 7, "problem": "q", "steps": ["x"]}, "here").id == "7"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"problem": None}, "f line 3: the problem is NoneType"),
        ({"steps": "x"}, "f line 3: steps is str, expected a list"),
        ({"steps": ["x", 3]}, "f line 3: step 2 is 3"),
        ({"labels": ["pos"]}, "f line 3: 1 labels for 2 steps"),
        ({"labels": ["good", None]}, "f line 3: label 'good' found"),
        ({"id": 1.5}, "f line 3: the id is float"),
        ({"id": " "}, "f line 3: the id is empty"),
        ({"id": "a\ud800"}, "f line 3: the id holds half of a surrogate pair"),
    ],
)
def test_a_bad_row_says_where_and_what(change, message):
    with pytest.raises(UserError, match=message):
        parse_trace(ROW | change, "f line 3")


@pytest.mark.parametrize("key", ["id", "problem", "steps"])
def test_a_missing_field_is_named(key):
    with pytest.raises(UserError, match=f"'{key}' is missing"):
        parse_trace({k: v for k, v in ROW.items() if k != key}, "here")


def test_rows_count_lines_and_pass_over_blank_ones():
    assert list(read_rows([b'\xef\xbb\xbf{"a": 1}\n', b"\n", b'{"a": 2}'], "f")) == [
        (1, {"a": 1}),
        (3, {"a": 2}),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"a": ', "f line 2: not JSON"),
        (b"[1]", "f line 2: list found, expected an object"),
        (b'{"a": "\xff"}', "f line 2: byte 8 is not UTF-8"),
    ],
)
def test_a_line_that_cannot_be_read_is_named(line, message):
    with pytest.raises(UserError, match=message):
        list(read_rows([b"{}", line], "f"))
