import gzip
import sys

import pytest

from stepsight.training.experiments.filtering.pool import read_rows
from tests.messages import refused

LINES = b'{"a": 1}\n\n{"a": \xff}\nnot json\n{"a": 2}\n'


def told(found):
    return [(where, row if isinstance(row, dict) else str(row)) for where, row in found]


def test_lines_that_cannot_be_read_stand_between_those_that_can(tmp_path):
    path = tmp_path / "pool.jsonl"
    path.write_bytes(LINES)
    found = told(read_rows(path, "pool.jsonl"))
    # The blank second line is no row.
    assert [where for where, _ in found] == [f"pool.jsonl line {number}" for number in (1, 3, 4, 5)]
    assert (found[0][1], found[3][1]) == ({"a": 1}, {"a": 2})
    assert found[1][1] == "pool.jsonl line 3: byte 7 is not UTF-8. Save the file as UTF-8."
    assert found[2][1].startswith("pool.jsonl line 4: not JSON")


def test_gzip_is_told_by_its_first_bytes(tmp_path):
    path = tmp_path / "pool.jsonl"
    path.write_bytes(gzip.compress(LINES))
    assert len(told(read_rows(path, "pool"))) == 4


def test_a_json_array_has_rows(tmp_path):
    path = tmp_path / "pool.json"
    path.write_text('[{"a": 1},\n 7, {"a": 2}]')
    found = told(read_rows(path, "pool.json"))
    assert [where for where, _ in found] == ["pool.json row 1", "pool.json row 2", "pool.json row 3"]
    assert found[1][1] == "pool.json row 2: int found, expected an object. Write objects."


def test_parquet_has_rows(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "pool"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{"a": i, "b": None} for i in range(600)]), path)
    found = list(read_rows(path, "pool"))
    assert (found[0], found[-1]) == (("pool row 1", {"a": 0, "b": None}), ("pool row 600", {"a": 599, "b": None}))


@pytest.mark.parametrize(
    "content",
    [
        gzip.compress(LINES, mtime=0)[:30],
        b"\x1f\x8bnothing",
        b"PAR1 and nothing more",
        b'[{"a": 1},',
    ],
    ids=["cut", "no gzip", "no Parquet", "no end"],
)
def test_a_damaged_file_is_refused(tmp_path, content):
    path = tmp_path / "pool"
    path.write_bytes(content)
    with refused():
        list(read_rows(path, "pool"))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with refused():
        list(read_rows(tmp_path / "none", "none"))


def test_without_pyarrow_its_extra_is_named(tmp_path, monkeypatch):
    path = tmp_path / "pool"
    path.write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused():
        list(read_rows(path, "pool"))


def test_a_file_of_another_kind_is_not_read_to_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr("stepsight.training.experiments.filtering.pool._MOST_BAD", 10)
    path = tmp_path / "pool.csv"
    path.write_text("a,b\n" * 11 + '{"a": 1}\n')
    with refused():
        list(read_rows(path, "pool.csv"))
    path.write_text("a,b\n" * 10 + '{"a": 1}\n' + "a,b\n" * 10)
    assert len(list(read_rows(path, "pool.csv"))) == 21
