"""Text files in other containers: UTF-16 is read, and others are refused by name."""

import pytest

from stepsight.core.files.jsonl import read_rows
from stepsight.core.files.text_lines import MOST_BLANK, check_beginning, first_sign, utf8_lines
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
    assert first_sign(content[:6]) == "{"


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
    rows = [b"{}\n", *[b"\n"] * MOST_BLANK, b"{}\n"]
    assert sum(1 for line in utf8_lines(rows, "f") if line.strip()) == 2
    with refused():
        for _ in utf8_lines([*rows[:-1], b"\n"], "f"):
            pass
