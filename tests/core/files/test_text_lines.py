"""Text files in other containers and compressed, their lines, and the traces in them."""

import gzip
import io
import json
import random
import sys
import tarfile
from collections.abc import Iterator
from itertools import islice
from pathlib import PurePath

import pyarrow
import pyarrow.parquet
import pytest

from stepsight.core.files import text_lines
from stepsight.core.files.jsonl import format_trace, parse_trace, read_file, read_rows
from stepsight.core.files.text_lines import check_beginning, unpacked, unpacked_beginning, utf8_lines
from stepsight.core.trace import Label, Step, Trace
from stepsight.storage.importers import KINDS
from tests.cases import each
from tests.messages import refused

TEXT = '{"a": "é \u0a0a\u010a"}\n\n{"b": "😀"}'


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", ""])
def test_lines_are_utf8_whatever_the_file_is(encoding, end):
    start = "\ufeff" if encoding == "utf-16-be" else ""
    content = f"{start}{TEXT}{end}".encode(encoding)
    lines = content.splitlines(keepends=True) if "16" not in encoding else content.split(b"\n")
    if "16" in encoding:
        lines = [line + b"\n" for line in lines[:-1]] + lines[-1:]
    assert b"".join(utf8_lines(lines, "f")).decode("utf-8-sig") == TEXT + end
    assert [row for _, row in read_rows(lines, "f")] == [{"a": "é \u0a0a\u010a"}, {"b": "😀"}]
    assert text_lines.first_sign(content[:6]) == "{"


@pytest.mark.parametrize(
    "content",
    [
        b"BZh9",
        b"version https://git-lfs.github.com/spec/v1\n",
        b"<!DOCTYPE html>\n",
        b"\xff\xff\xff\xff\x10",
        b"PK\x03\x04",
        b"PAR1",
        b"\xff\xfea",
        b"\xfe\xff\xd8\x00{\x00",
    ],
)
def test_another_file_is_refused_by_name(content):
    with refused():
        list(read_rows([content], "f"))


def test_carriage_returns_end_lines_where_there_are_no_line_feeds():
    assert list(utf8_lines([b'{"a": 1}\r\r{"a": 2}'], "f")) == [b'{"a": 1}\r', b"\r", b'{"a": 2}']
    assert list(utf8_lines([b"a\rb\n", b"c\rd"], "f")) == [b"a\rb\n", b"c\rd"]
    assert list(utf8_lines(["a\rb".encode("utf-16")], "f")) == [b"a\r", b"b"]


def test_marks_of_byte_order_within_a_file_are_passed_over():
    assert [row for _, row in read_rows(['{"a": 1}\n'.encode("utf-8-sig")] * 2, "f")] == [{"a": 1}] * 2


def test_the_beginning_of_a_file_that_is_no_text():
    check_beginning("a".encode("utf-16"), "f")
    with refused():
        check_beginning(b"a\0b", "f")


def test_a_file_of_blank_lines_ends_its_reader_and_blank_lines_between_rows_do_not():
    rows = [b"{}\n", *[b"\n"] * text_lines.MOST_BLANK, b"{}\n"]
    assert sum(1 for line in utf8_lines(rows, "f") if line.strip()) == 2
    with refused():
        for _ in utf8_lines([*rows[:-1], b"\n"], "f"):
            pass


def zstd(content):
    packed: bytes = pyarrow.compress(content, codec="zstd", asbytes=True)
    return packed


PACK = {"gzip": gzip.compress, "zstd": zstd}
LINES = [f'{{"a": {n}}}\n'.encode() for n in range(50_000)] + [b"the end"]
KIND = "pack", list(PACK.values())


def pieces(content, size=1000):
    return (content[at : at + size] for at in range(0, len(content), size))


@each(*KIND)
def test_lines_of_a_compressed_file_are_those_of_its_content(pack):
    assert list(unpacked(pieces(pack(b"".join(LINES))), "f")) == LINES
    # As `cat` and logs of several runs leave them: one compressed file behind the other.
    assert list(unpacked(pieces(pack(b"a\n") + pack(b"b")), "f")) == [b"a\n", b"b"]
    assert list(unpacked([pack(b"")], "f")) == []


def test_other_chunks_are_passed_on():
    assert list(unpacked([b"a\nb", b"\n"], "f")) == [b"a\nb", b"\n"]
    assert list(unpacked([], "f")) == []
    assert list(text_lines.split_lines([b"a\nb", b"c\n", b"\nd"], "f")) == [b"a\n", b"bc\n", b"\n", b"d"]


@each(*KIND)
def test_text_in_utf16_is_read_when_it_is_compressed_too(pack):
    assert list(utf8_lines([pack("é\nb".encode("utf-16"))], "f")) == ["é\n".encode(), b"b"]


@each(*KIND)
def test_the_beginning_of_a_file_is_that_of_its_content(pack):
    whole = pack(b"".join(LINES))
    assert unpacked_beginning(whole[: len(whole) // 2])[:100] == b"".join(LINES)[:100]
    assert unpacked_beginning(whole[:5]) == b""
    assert unpacked_beginning(b"plain") == b"plain"


@each(*KIND)
def test_a_damaged_file_is_refused(pack):
    whole = pack(b"".join(LINES))
    changed = whole[:-8] + b"????" + whole[-4:] if pack is gzip.compress else whole[:20] + b"?" * 40 + whole[60:]
    for content in (whole[: len(whole) // 2], changed, whole + b"more"):
        with refused():
            list(unpacked([content], "f"))


@each(*KIND)
def test_a_file_that_unpacks_to_a_huge_one_is_refused(pack):
    packed = pack((b" " * 999 + b"\n") * 50_000)
    with refused():
        list(unpacked([packed], "f"))
    with refused():
        list(unpacked([packed], "f", 10_000_000, "Import it by the command."))


def test_a_large_file_of_honest_size_is_read():
    line = random.Random(1).randbytes(9_000_000).hex().encode()
    assert list(unpacked(pieces(gzip.compress(line, 1), 1 << 16), "f")) == [line]


@each(*KIND)
def test_no_more_of_a_huge_line_is_held_than_a_bound(pack, monkeypatch):
    monkeypatch.setattr("stepsight.core.files.text_lines.LARGEST", 1_000_000)
    with refused():
        list(unpacked([pack(b" " * 5_000_000)], "f"))


@each(*KIND)
def test_what_is_compressed_twice_or_no_text_is_named(pack):
    table, archive = io.BytesIO(), io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"a": [1]}), table)
    with tarfile.open(fileobj=archive, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("a.jsonl"))
    for content in (gzip.compress(b"a"), zstd(b"a"), table.getvalue(), archive.getvalue(), b"PK\x03\x04"):
        with refused():
            check_beginning(pack(content), "f")
        with refused():
            list(utf8_lines([pack(content)], "f"))


def test_an_error_of_the_source_is_not_taken_for_damage():
    class StopError(Exception):
        pass

    def stopped(content: bytes) -> Iterator[bytes]:
        yield from islice(pieces(content), 3)
        raise StopError

    for pack in PACK.values():
        with pytest.raises(StopError):
            list(unpacked(stopped(pack(b"".join(LINES))), "f"))


def test_zstd_without_pyarrow_names_the_extra(monkeypatch):
    content = zstd(b"a")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with refused():
        list(unpacked([content], "f"))


def test_names_without_what_packing_adds():
    assert [text_lines.stem_of(PurePath(name)) for name in ("x/a.csv", "a.csv.gz", "a.ZST", "a.gz.csv")] == [
        "a", "a", "a", "a.gz",
    ]  # fmt: skip


@each(*KIND)
def test_every_kind_of_file_is_read_compressed(pack):
    # Rows of no kind: the error is about the row, as with the plain file.
    content = json.dumps({"x": 1}).encode() + b"\n"
    for kind in KINDS.values():
        assert list(kind.rows([pack(content)], "f")) == list(kind.rows([content], "f")) == [("f line 1", {"x": 1})]
    pool = b'{\n "x": 1\n}\n'
    rows = KINDS["strict-prmbench"].rows
    assert list(rows([pack(pool)], "f")) == list(rows(pool.splitlines(keepends=True), "f"))


ROW = {"id": "a", "problem": "q", "steps": ["x", ["y", "z"]], "labels": ["pos", None], "topic": "sums"}


def test_validity_without_a_label_is_kept_and_a_label_says_it_by_itself():
    steps = (Step(("a",), valid=True), Step(("b", "c"), Label.NEG), Step(("d",)))
    trace = Trace("first", "What?", steps, {"by": "hand"})
    row = format_trace(trace)
    assert (row["labels"], row["valid"]) == ([None, "neg", None], [True, False, None])
    assert parse_trace(row, "here") == trace
    assert parse_trace(row | {"labels": ["neu", "neg", None]}, "here").labels == (Label.NEU, Label.NEG, None)


@pytest.mark.parametrize("valid", [[True], [True, "no"]])
def test_validity_that_fits_no_steps_is_refused(valid):
    with refused():
        parse_trace({"id": 1, "problem": "q", "steps": ["x", "y"], "valid": valid}, "here")


def test_a_field_called_valid_that_is_no_list_is_the_sources_own():
    assert parse_trace({"id": 1, "problem": "q", "steps": ["x"], "valid": True}, "here").meta == {"valid": True}


def test_a_row_survives_the_round_trip():
    assert format_trace(parse_trace(ROW, "here")) == ROW


def test_whole_number_ids_become_text():
    assert parse_trace({"id": 7, "problem": "q", "steps": ["x"]}, "here").id == "7"


@pytest.mark.parametrize(
    "change",
    [
        {"problem": None},
        {"steps": "x"},
        {"steps": ["x", 3]},
        {"labels": ["pos"]},
        {"labels": ["good", None]},
        {"id": 1.5},
        {"id": " "},
        {"id": "a\ud800"},
    ],
)
def test_a_bad_row_names_the_place_and_the_fault(change):
    with refused():
        parse_trace(ROW | change, "f line 3")


@pytest.mark.parametrize("key", ["id", "problem", "steps"])
def test_a_missing_field_is_named(key):
    with refused():
        parse_trace({k: v for k, v in ROW.items() if k != key}, "here")


def test_rows_count_lines_and_pass_over_blank_ones():
    assert list(read_rows([b'\xef\xbb\xbf{"a": 1}\n', b"\n", b'{"a": 2}'], "f")) == [(1, {"a": 1}), (3, {"a": 2})]


@pytest.mark.parametrize("line", [b'{"a": ', b"[1]", b'{"a": "\xff"}', b'{"b": [{"a": 1, "a": 2}]}'])
def test_a_line_that_cannot_be_read_is_named(line):
    with refused():
        list(read_rows([b"{}", line], "f"))


def test_a_line_without_an_end_is_not_read_to_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr("stepsight.core.files.text_lines.LARGEST", 1000)
    path = tmp_path / "f.jsonl"
    path.write_bytes(b'{"a": 1}\n' + b"x" * (1 << 19) + b"\n")
    with refused():
        list(read_file(path))
    path.write_bytes(b'{"a": 1}\n' * 3)
    assert len(list(read_file(path))) == 3
