"""Compressed files: what is read of them, and what is refused before it fills the memory."""

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

from stepsight.core.files.compression import split_lines, unpacked, unpacked_beginning
from stepsight.core.files.text_lines import check_beginning, stem_of, utf8_lines
from stepsight.storage.importers import KINDS
from tests.cases import each
from tests.messages import refused


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
    assert list(split_lines([b"a\nb", b"c\n", b"\nd"], "f")) == [b"a\n", b"bc\n", b"\n", b"d"]


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
    monkeypatch.setattr("stepsight.core.files.compression.LARGEST", 1_000_000)
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
    assert [stem_of(PurePath(name)) for name in ("x/a.csv", "a.csv.gz", "a.ZST", "a.gz.csv")] == [
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
