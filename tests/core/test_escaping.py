import csv
import io
import random

import pytest

from stepsight.core.escaping import breakable, cell, csv_text, inert, plain
from tests.cases import each


def cells(text):
    return list(csv.reader(io.StringIO(text, newline="")))


def test_rows_are_read_back():
    text = csv_text([("a", "b"), ('say "x"', "two\nlines"), (1, -0.5), (None, "")])
    assert cells(text) == [["a", "b"], ['say "x"', "two\nlines"], ["1", "-0.5"], ["", ""]]


@each("text", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "=cmd|' /C calc'!A0", "＝1", " ＠x", "'=1", '"－1'])
def test_a_text_like_a_formula_is_made_inert(text):
    assert inert(text) == f"'{text}"
    assert plain(f"'{text}") == text


@each("text", ["x;=1", "x; '+1", 'x\t"=1', "x\r=1", "a\n- b", "\t=1", "x;\u3000＝1"])
def test_a_text_that_another_separator_splits_begins_no_formula(text):
    for separator in ";\t":
        rows = csv.reader(io.StringIO(csv_text([[1, text]]), newline=""), delimiter=separator)
        assert not any(cell.strip(" \t\u3000").startswith(tuple("=+-@＝＋－＠")) for row in rows for cell in row)


def test_any_text_is_given_back():
    chance = random.Random(0)
    for _ in range(2_000):
        text = "".join(chance.choices("=＠-;\t\r\n '\"\u3000x5", k=chance.randrange(9)))
        assert plain(inert(text)) == text


def test_texts_are_quoted_and_numbers_are_not():
    assert csv_text([("a", 0.5, None, "")]) == '"a",0.5,"",""\r\n'


@pytest.mark.parametrize("text", ["1 + 1 = 2", "x", "'x'", "", " ", "(−1)", "a; b", "a\nb"])
def test_other_texts_are_left_alone(text):
    assert inert(text) == plain(text) == text


def test_texts_are_made_cells_and_other_values_stay():
    assert [cell(value) for value in ("=1", None, -1, 0.5)] == ["'=1", None, -1, 0.5]


def test_a_name_is_broken_behind_its_signs_and_not_within_a_number():
    assert breakable("a_b.json Qwen2.5-<b>:1") == "a_<wbr>b.<wbr>json Qwen2.5-&lt;b&gt;:<wbr>1"
