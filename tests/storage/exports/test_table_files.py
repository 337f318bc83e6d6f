import csv
import io
import json
import sys
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest

from stepsight.storage.exports.table_files import MEDIA_TYPES, TABLE_FORMATS, frame_parts, table_parts
from tests.messages import refused

COLUMNS: dict[str, type] = {"id": str, "step": int, "validity": float, "rationale": str}
ROWS: list[dict[str, Any]] = [
    {"id": "a", "step": 1, "validity": 0.25, "rationale": "=1+1, “quoted”\nand more"},
    {"id": "b", "step": None, "validity": None, "rationale": None},
]


def file(format, rows):
    return b"".join(table_parts(COLUMNS, rows, format))


def test_csv_has_a_head_and_no_formulas():
    read = list(csv.reader(io.StringIO(file("csv", ROWS).decode("utf-8-sig"), newline="")))
    assert read == [list(COLUMNS), ["a", "1", "0.25", "'=1+1, “quoted”\nand more"], ["b", "", "", ""]]


def test_json_lines_and_parquet_give_the_rows_back():
    assert [json.loads(line) for line in file("jsonl", ROWS).decode().splitlines()] == ROWS
    table = pyarrow.parquet.read_table(io.BytesIO(file("parquet", ROWS)))
    assert table.to_pylist() == ROWS
    assert [str(kind) for kind in table.schema.types] == ["string", "int32", "double", "string"]


@pytest.mark.parametrize("format", TABLE_FORMATS)
def test_a_table_without_rows_is_a_file_all_the_same(format):
    content = file(format, [])
    assert format in MEDIA_TYPES
    if format == "parquet":
        assert pyarrow.parquet.read_table(io.BytesIO(content)).column_names == list(COLUMNS)
    else:
        assert content.decode() == {"csv": '\ufeff"id","step","validity","rationale"\r\n', "jsonl": ""}[format]


@pytest.mark.parametrize("format", TABLE_FORMATS)
def test_thirty_thousand_rows_are_never_in_memory_at_once(format):
    taken = 0

    def rows() -> Iterator[dict[str, Any]]:
        nonlocal taken
        for number in range(30_000):
            taken += 1
            yield {"id": f"trace {number}", "step": number, "validity": number / 7, "rationale": "why " * 25}

    parts = table_parts(COLUMNS, rows(), format)
    tracemalloc.start()
    next(parts)
    assert taken <= 5_000
    size = sum(map(len, parts))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken == 30_000
    # The numbers alone.
    assert size > 30_000 * 8
    # 5,000 rows with their cells and their text; all of them would take six times as much.
    assert peak < 8_000_000


def test_an_unwritable_table_is_refused_before_the_first_byte(monkeypatch):
    with refused():
        table_parts(COLUMNS, ROWS, "xlsx")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused():
        table_parts(COLUMNS, ROWS, "parquet")


def test_every_text_of_a_frame_is_inert_and_the_mark_stands_once():
    texts = ["=HYPERLINK(1)", None, "\u200b+1"]
    frame = pd.DataFrame({"text": texts, "kind": pd.Categorical(texts), "change": [-0.5, float("nan"), 1.0]})
    content = b"".join(frame_parts([frame, frame], "csv")).decode()
    rows = '"\'=HYPERLINK(1)","\'=HYPERLINK(1)",-0.5\r\n"","",""\r\n"\'\u200b+1","\'\u200b+1",1.0\r\n'
    assert content == '\ufeff"text","kind","change"\r\n' + 2 * rows
