import csv
import io
import random
import unicodedata

import pytest

from stepsight.core.escaping import BYTE_ORDER_MARK, breakable, csv_text, escape_markdown, inert, plain
from stepsight.core.text.signs import shows_nothing
from tests.cases import each

SIGNS = "=+-@"


def cells(text):
    return list(csv.reader(io.StringIO(text.removeprefix(BYTE_ORDER_MARK), newline="")))


def test_rows_are_read_back():
    text = csv_text([("a", "b"), ('say "x"', "two\nlines"), (1, -0.5), (None, "")])
    assert cells(text) == [["a", "b"], ['say "x"', "two\nlines"], ["1", "-0.5"], ["", ""]]


@each("text", ["=1+1", "+1", "-1", "@SUM(A1)", " =1", "=cmd|' /C calc'!A0", "＝1", " ＠x", "'=1", '"－1'])
def test_a_text_like_a_formula_is_made_inert(text):
    assert inert(text) == f"'{text}"
    assert plain(f"'{text}") == text


def test_no_sign_that_shows_nothing_hides_a_formula():
    # Tabs and line breaks may end a cell, and what follows them is marked.
    unseen = [
        sign
        for sign in map(chr, range(0x110000))
        if sign not in "\t\r\n"
        and (unicodedata.category(sign) in ("Cc", "Cf", "Zl", "Zp", "Zs") or shows_nothing(sign))
        and unicodedata.category(sign) != "Cs"
    ]
    assert {"\u200b", "\ufeff", "\u2060", "\u3164", "\ufe0f", "\0", "\x85", "\U000e0041"} <= set(unseen)
    assert [sign for sign in unseen if inert(f"{sign}=1") != f"'{sign}=1"] == []
    assert inert("".join(unseen) + "=1") == "'" + "".join(unseen) + "=1"


def test_every_sign_that_stands_for_one_of_a_formula_is_marked():
    compatible = [
        sign for sign in map(chr, range(0x110000)) if unicodedata.normalize("NFKC", sign).startswith(tuple(SIGNS))
    ]
    assert set("﹦＝⁼﹢﹣﹫") <= set(compatible)
    assert [sign for sign in compatible if inert(f"{sign}1") != f"'{sign}1"] == []


@each("text", ["x;=1", "x; '+1", 'x\t"=1', "x\r=1", "a\n- b", "\t=1", "x;\u3000＝1"])
def test_a_text_that_another_separator_splits_begins_no_formula(text):
    for separator in ";\t":
        text = csv_text([[1, text]], begins=False)
        rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        assert not any(cell.strip(" \t\u3000").startswith(tuple("=+-@＝＋－＠")) for row in rows for cell in row)


def test_any_text_is_given_back():
    chance = random.Random(0)
    for _ in range(2_000):
        text = "".join(chance.choices("=＠﹦-;\t\r\n '\"\u3000\u200b\ufeff\0x5", k=chance.randrange(9)))
        assert plain(inert(text)) == text


def test_texts_are_quoted_and_numbers_are_not():
    assert csv_text([("=a", 0.5, None, "", -1)]) == '\ufeff"\'=a",0.5,"","",-1\r\n'
    assert csv_text([("a",)], "\n", begins=False) == '"a"\n'


@pytest.mark.parametrize("text", ["1 + 1 = 2", "x", "'x'", "", " ", "(−1)", "a; b", "a\nb", "\u200b1"])
def test_other_texts_are_left_alone(text):
    assert inert(text) == plain(text) == text


def test_a_name_is_broken_behind_its_signs_and_not_within_a_number():
    assert breakable("a_b.json Qwen2.5-<b>:1") == "a_<wbr>b.<wbr>json Qwen2.5-&lt;b&gt;:<wbr>1"


def test_a_text_in_markdown_is_no_link_picture_or_markup():
    assert escape_markdown("a [b](https://e.org) ![c](d) [e][f] [g]: h") == (
        "a [b\\](https://e.org) ![c\\](d) [e\\][f\\] [g\\]: h"
    )
    assert (
        escape_markdown("**x** _y_ `z` ~~w~~ <b> | \\\n u")
        == "\\*\\*x\\*\\* \\_y\\_ \\`z\\` \\~\\~w\\~\\~ \\<b> \\| \\\\ u"
    )
    # An interval stays as it is.
    assert escape_markdown("60.1 [58.0, 62.1]") == "60.1 [58.0, 62.1]"
