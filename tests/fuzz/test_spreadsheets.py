"""Tables that went through a spreadsheet or are opened in one, drawn at random, with what is right for each."""

import csv
import io
import unicodedata
from functools import partial

import pytest

from stepsight.core.errors import UserError
from stepsight.core.escaping import csv_text, plain
from stepsight.storage.importers import read_traces
from stepsight.storage.importers.column_mapping import ColumnMap, columns_kind
from stepsight.storage.importers.rows.tables import csv_rows
from tests.cases import each
from tests.fuzz.attack import COUNT
from tests.seeds import chance

ERRORS = (
    "#REF!", "#VALUE!", "#DIV/0!", "#NAME?", "#NUM!", "#NULL!", "#N/A", "#SPILL!", "#CALC!", "#ERROR!", "#WERT!",
    "#BEZUG!", "#NV", "#VALEUR!", "#NOM?", "#¡REF!", "#¿NOMBRE?", "#RIF!", "#Н/Д", "#ИМЯ?", "#N/D", "#DEĞER!",
    "Err:502", "Err:522", "#######", "#GETTING_DATA",
)  # fmt: skip
# Line breaks as a cell may have them, and one without an escape.
BREAKS = ("_x000D_\n", "_x000d_\r\n", "_x000D__x000A_", "\r\n", "\n")
STEPS = ("2 + 3 = 5.", "So x_1 = 5; 6.", "It's “5”, or #5.", "_x_ stays.", "A, b.", "#### 5", "é 😀")
SIGNS = "=+-@＝＋－＠﹦﹢﹣﹫⁼⁺"
UNSEEN = "\u200b\ufeff\u2060\u00ad\u200e\u3164\ufe0f\u3000\xa0\0\x07\x85\u2028 '\""


def lines(text):
    return list(io.BytesIO(text.encode()))


def table(rows, separator, end, rng):
    """Rows as text, in which a cell that needs no quotes may have them."""

    def cell(text: str) -> str:
        needs = text != text.strip() or any(sign in text for sign in '"\r\n,;\t|')
        return f'"{text.replace(chr(34), chr(34) * 2)}"' if needs or rng.random() < 0.3 else text

    return "".join(separator.join(map(cell, row)) + end for row in rows)


def test_what_spreadsheets_leave_in_cells_is_no_text():
    for number in range(COUNT):
        rng = chance(f"cells:{number}")
        steps = [rng.choice(STEPS) for _ in range(rng.randint(2, 5))]
        solution = "".join(step + rng.choice(BREAKS) for step in steps)
        cut, wrong = "a" * rng.choice((32_767, 65_535)), rng.choice(ERRORS)
        bad = rng.choice((None, None, cut, wrong, f" {wrong} "))
        cells = {"q": "2 + 3?", "s": solution}
        cells |= {rng.choice("qs"): bad} if bad else {}
        text = table([["q", "s", "note"], [*cells.values(), wrong]], rng.choice(",;\t"), "\r\n", rng)
        read = partial(parsed, text)
        if bad is None:
            assert read() == steps, (number, solution)
            continue
        with pytest.raises(UserError, match=r"an error value|as a cell|a missing value|expected a list") as error:
            read()
        assert (bad.strip() == "#N/A") == ("#N/A" in error.value.message), (number, bad)


def parsed(text):
    kind = columns_kind(ColumnMap("q", "s"), csv_rows)
    (trace,) = (trace for _, trace in read_traces(kind, lines(text), "f"))
    return [step.text for step in trace.steps]


def test_headers():
    for number in range(COUNT):
        rng = chance(f"header:{number}")
        separator, end = rng.choice(",;\t|"), rng.choice(("\n", "\r\n", "\r"))
        words = ["question", "the solution", 'a "name"', "x, y", "p; q", "50 %", "straße", "level", "gold"]
        names = [
            rng.choice(("{}", "{}\n(b)", "{}_x000D_\n(b)", "{}\r\n(b)", " {} ")).format(word)
            for word in rng.sample(words, 4)
        ]
        rows = [
            [rng.choice(STEPS) + rng.choice(("", "\n", "\r", "\r\n")) + "x" for _ in names]
            for _ in range(rng.randint(1, 4))
        ]
        start = rng.choice(("", "\ufeff", f"sep={separator}{end}", end))
        content = lines(start + table([names, *rows], separator, end, rng))
        read = [row for _, row in csv_rows(content, "t")]
        shown = [name.replace("_x000D_\n", " ").replace("\r\n", " ").replace("\n", " ").strip() for name in names]
        assert [list(row) for row in read] == [shown] * len(rows), (number, content)
        assert [list(row.values()) for row in read] == rows, (number, content)


@each("separator", ",;\t")
def test_no_cell_that_is_written_begins_a_formula(separator):
    for number in range(COUNT):
        rng = chance(f"inert:{number}")
        texts = ["".join(rng.choices(SIGNS + UNSEEN + ";\t\r\n,1x", k=rng.randint(1, 9))) for _ in range(3)]
        written = csv_text([("a", "b", "c"), texts])
        assert written.startswith('\ufeff"a"')
        for row in csv.reader(io.StringIO(written[1:], newline=""), delimiter=separator):
            for cell in row:
                seen = cell.lstrip("".join(UNSEEN.replace("'", "")))
                kept = unicodedata.normalize("NFKC", seen)[:1]
                assert kept not in tuple("=+-@"), (number, cell)
        if "\0" not in "".join(texts):
            assert [list(row.values()) for _, row in csv_rows(lines(written), "t")] == [texts], number
        (again,) = list(csv.reader(io.StringIO(csv_text([texts], begins=False), newline="")))
        assert list(map(plain, again)) == texts, number
