import csv
import io

import pytest

from stepsight.core.escaping import breakable, cell, csv_text
from tests.cases import each


def cells(text):
    return list(csv.reader(io.StringIO(text, newline="")))


def test_rows_are_read_back():
    text = csv_text([("a", "b"), ('say "x"', "two\nlines"), (1, -0.5), (None, "")])
    assert cells(text) == [["a", "b"], ['say "x"', "two\nlines"], ["1", "-0.5"], ["", ""]]


@each("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "\n@x", "=cmd|' /C calc'!A0"])
def test_a_text_like_a_formula_is_made_inert(text):
    assert cells(csv_text([[text]])) == [[f"'{text}"]]


@pytest.mark.parametrize("text", ["1 + 1 = 2", "x", "'=1", "", " ", "(−1)"])
def test_other_texts_are_left_alone(text):
    assert cells(csv_text([[text, "x"]]))[0][0] == text


def test_texts_are_made_cells_and_other_values_stay():
    assert [cell(value) for value in ("=1", None, -1, 0.5)] == ["'=1", None, -1, 0.5]


def test_a_name_is_broken_behind_its_signs_and_not_within_a_number():
    assert breakable("a_b.json Qwen2.5-<b>:1") == "a_<wbr>b.<wbr>json Qwen2.5-&lt;b&gt;:<wbr>1"
