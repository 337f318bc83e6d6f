import pytest

from stepsight.training.runs.row_file import RowFile
from tests.messages import refused


def test_rows_are_added_and_come_back(tmp_path):
    path = tmp_path / "rows.jsonl"
    with RowFile(path) as file:
        assert file.is_empty
        file.add([{"row": 1, "text": "é \ud800"}, {"row": 2}])
        assert list(file) == [{"row": 1, "text": "é \ud800"}, {"row": 2}]
    with RowFile(path) as file:
        file.add([{"row": 3}])
        file.keep(1)
        file.add([{"row": 4}])
        assert [row["row"] for row in file] == [1, 4]


@pytest.mark.parametrize("rest", [b'{"row": 2', b"oops\n", b"[2]\n", b"\x00" * 50, b"\xff\n", b'{"row": 2}'])
def test_rows_end_where_a_line_is_cut_short_or_damaged(tmp_path, rest):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"row": 1}\n' + rest)
    with RowFile(path) as file:
        assert list(file) == [{"row": 1}]
        file.keep(1)
        file.add([{"row": 2}])
    assert path.read_bytes() == b'{"row": 1}\n{"row": 2}\n'


def test_a_full_disk_and_a_place_that_is_none_are_told(tmp_path):
    with RowFile("/dev/full") as file, refused():
        file.add([{"row": 1}])
    with refused():
        RowFile(tmp_path / "none" / "rows.jsonl")
