"""Rows of CSV and Parquet."""

import io
import json
from datetime import date

import pytest

from stepsight.core.escaping import csv_text
from stepsight.storage.importers.rows.tables import csv_rows, parquet_rows
from tests.cases import each
from tests.messages import refused

TABLE = '\ufeffquestion,steps\r\n"What, is ""it""?","Step 1: a\nStep 2: b"\r\n=1+1,@x\r\n'


def lines(text):
    return list(io.BytesIO(text.encode()))


def test_csv_is_read_with_its_quotes_line_breaks_and_formulas():
    assert list(csv_rows(lines(TABLE), "t.csv")) == [
        ("t.csv row 1", {"question": 'What, is "it"?', "steps": "Step 1: a\nStep 2: b"}),
        ("t.csv row 2", {"question": "=1+1", "steps": "@x"}),
    ]


def test_what_was_exported_is_read_back_and_apostrophes_of_others_stay():
    texts = ["=1;-2\n- x\r\ny\t+z", "'=1"]
    exported = csv_text([("problem", "steps"), texts])
    assert [list(row.values()) for _, row in csv_rows(lines(exported), "t.csv")] == [texts]
    ((_, row),) = csv_rows(lines("problem,steps\n'=' is,\"'-1'\"\n"), "t.csv")
    assert list(row.values()) == ["'=' is", "'-1'"]


@pytest.mark.parametrize("text", ["only\nx\n", "a,a\n1,2\n", "a,b\n1,2,3\n", 'a,b\n1,"2\n', ""])
def test_a_file_that_is_not_a_table_is_refused(text):
    with refused():
        list(csv_rows(lines(text), "t"))


@each(
    "text, rows",
    [
        # Blank rows, as spreadsheets leave them, and a header again, as two files in one have it.
        ("\n \na,b\n1,2\n,\n\n  ,\na,b\n3,4\n\n", [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]),
        # The numbers of rows, and a column in which there is nothing.
        (" a ,, b\n1,,2\n3,x,4\n", [{"a": "1", "b": "2"}, {"a": "3", "column 2": "x", "b": "4"}]),
        (",a,\n0,1,\n", [{"column 1": "0", "a": "1"}]),
        # Names with line breaks, and rows that carriage returns end around line breaks in cells.
        ('"a\n(x)";"b_x000D_\r\n,c"\r\n1,5;2\r\n', [{"a (x)": "1,5", "b ,c": "2"}]),
        ('a,"b\n"\r"1\n2","3\r4"\r5,6\r', [{"a": "1\n2", "b": "3\r4"}, {"a": "5", "b": "6"}]),
        # Separators are named, or counted outside of quotes; a tab is one however many commas there are.
        *((f"a{sign}b\n1,5{sign}2\n", [{"a": "1,5", "b": "2"}]) for sign in "|;\t"),
        ("a\tb, as, they, say\n1,5\t2\n", [{"a": "1,5", "b, as, they, say": "2"}]),
        *(
            (f'{start}"a, as, they, say";b\n1,5;2\n', [{"a, as, they, say": "1,5", "b": "2"}])
            for start in ("sep=;\r\n", '"sep=;"\n', "\ufeffsep=;\n", "")
        ),
        ("a,b\r1,2\r3,4\r", [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]),
        # A blank line within a cell is its own.
        ('a,b\n"1\n\n,\n2",3\n', [{"a": "1\n\n,\n2", "b": "3"}]),
    ],
)
def test_what_programs_leave_in_a_table_is_no_row(text, rows):
    # Split as files are.
    content = [line + b"\n" for line in text.encode().split(b"\n")]
    assert [row for _, row in csv_rows([*content[:-1], content[-1][:-1]], "t")] == rows


def test_a_row_of_another_length_can_be_left_out():
    bad: list[str] = []
    rows = csv_rows(lines("a,b\n1\n2,3\n"), "t", lambda where, error, content: bad.append(where))
    assert [row for _, row in rows] == [{"a": "2", "b": "3"}]
    assert bad == ["t row 1"]
    with refused():
        list(csv_rows([b"a,b\n", b"\xff,1\n"], "t"))


def test_parquet_is_read_in_the_values_of_json():
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    sink = io.BytesIO()
    rows = [{"q": b"What?", "steps": ["a", "b"], "on": date(2024, 1, 2)}]
    parquet.write_table(arrow.Table.from_pylist(rows), sink)
    content = sink.getvalue()
    parts = [content[:40], content[40:]]
    assert list(parquet_rows(parts, "t")) == [("t row 1", {"q": "What?", "steps": ["a", "b"], "on": "2024-01-02"})]
    # In the second one, the statistics do not fit the column, where pyarrow alone would end the process.
    for damaged in (content[:-20], content.replace(b"%\x02\x18\x01q", b"%\x00\x18\x01q")):
        with refused():
            list(parquet_rows([damaged], "t"))


def written(rows, features=None):
    """A Parquet file, with what `datasets` writes about its columns."""
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    sink = io.BytesIO()
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    parquet.write_table(arrow.Table.from_pylist(rows).replace_schema_metadata(metadata), sink)
    return [sink.getvalue()]


def test_binary_columns_are_left_out_and_named():
    row = {
        "q": b"What?",
        "picture": b"\xff\xfe",
        "image": {"bytes": b"\x89PNG", "path": "a.png"},
        "l": [b"a", b"\xff"],
    }
    binary: set[str] = set()
    assert list(parquet_rows(written([row]), "t", None, binary)) == [
        ("t row 1", {"q": "What?", "image": {"path": "a.png"}, "l": ["a", None]})
    ]
    assert binary == {"picture", "image.bytes", "l"}


CLASSES = {"names": ["correct", "incorrect"], "_type": "ClassLabel"}


@pytest.mark.parametrize(
    ("feature", "value", "named"),
    [
        (CLASSES, 1, "incorrect"),
        ({"feature": CLASSES, "_type": "Sequence"}, [0, 1, -1], ["correct", "incorrect", None]),
        ([CLASSES], [1, 0], ["incorrect", "correct"]),
        ({"x": CLASSES, "y": {"dtype": "int64", "_type": "Value"}}, {"x": 0, "y": 1}, {"x": "correct", "y": 1}),
        ([{"x": CLASSES}], [{"x": 1}], [{"x": "incorrect"}]),
        ({"feature": {"x": CLASSES}, "_type": "List"}, [{"x": 0}], [{"x": "correct"}]),
        ({"feature": {"x": CLASSES}, "_type": "Sequence"}, {"x": [0, 1]}, {"x": ["correct", "incorrect"]}),
        (CLASSES, 7, 7),
        ({"names": None, "_type": "ClassLabel"}, 1, 1),
    ],
)
def test_the_names_of_classes_stand_for_their_numbers(feature, value, named):
    rows = [{"q": "?", "l": value, "n": 1}]
    assert list(parquet_rows(written(rows, {"l": feature}), "t")) == [("t row 1", {"q": "?", "l": named, "n": 1})]
