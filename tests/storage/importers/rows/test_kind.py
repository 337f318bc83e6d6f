import json
from collections.abc import Iterator

from stepsight.storage.importers.rows.kind import array_rows, json_lines, json_rows
from tests.cases import each
from tests.messages import refused

ROWS = [{"a": 1, "b": {"c": ["x]", "y,{"]}}, {"a": 2}, {}]


@each("indent", [None, 0, 2])
@each("start", ["", "\ufeff", "\n \n"])
def test_an_array_is_read_however_it_is_laid_out(indent, start):
    lines = (start + json.dumps(ROWS, indent=indent) + "\n\n").encode().splitlines(keepends=True)
    assert list(json_rows(lines, "f")) == [(f"f row {number}", row) for number, row in enumerate(ROWS, start=1)]


@each("indent", [0, 2, "\t"])
def test_objects_over_several_lines_are_read(indent):
    text = "\n".join(json.dumps(row, indent=indent) for row in ROWS)
    assert list(json_rows(text.encode().splitlines(keepends=True), "f")) == [
        (f"f row {number}", row) for number, row in enumerate(ROWS, start=1)
    ]


@each("text", ['{\n"a": 1', '{\n"a": 1\n}\n]', '{\n"a" 1\n}'])
def test_a_bad_object_over_several_lines_is_refused(text):
    with refused():
        list(json_rows(text.encode().splitlines(keepends=True), "f"))


def test_a_line_that_is_cut_off_is_a_bad_row_among_others():
    bad: list[str] = []
    lines = [b'{"a": "x\n', b'{"b": 2}\n']
    rows = list(json_rows(lines, "f", lambda where, error, content: bad.append(where)))
    assert (rows, bad) == ([("f line 2", {"b": 2})], ["f line 1"])


def test_rows_of_lines_come_with_their_place():
    for read in (json_lines, json_rows):
        rows = list(read([b"\n", b'{"a": 1}\n', b"\n", b'{"b": 2}'], "f"))
        assert rows == [("f line 2", {"a": 1}), ("f line 4", {"b": 2})]
    assert list(json_rows([], "f")) == []
    assert list(json_rows([b"[]"], "f")) == []


def test_an_array_is_read_row_by_row():
    def lines() -> Iterator[bytes]:
        yield b'[{"a": 1},\n'
        raise AssertionError("read too far")

    assert next(json_rows(lines(), "f")) == ("f row 1", {"a": 1})


@each(
    "text",
    [
        '[{"a": 1},\n{"a": ',
        '[{"a": 1}\n',
        '[{"a": 1},\n2]',
        '[{"a": 1},\n{"a" 2}]',
        '[{"a": 1},\n{"a": "x\n"}]',
        '[{"a": 1},\n]',
        '[{"a": 1}\n{"a": 2}]',
        '[{"a": 1}]\n[',
        "[" * 100_000,
        # A number that Python refuses to read, and what is not UTF-8.
        f'[{{"a": 1}}, {{"a": {"9" * 5000}}}]',
        '[\n"\udcff"]',
    ],
)
def test_a_bad_array(text):
    with refused():
        list(json_rows(text.encode("utf-8", "surrogateescape").splitlines(keepends=True), "f"))


def told(text):
    """The rows of a text, and what was told of its bad ones."""
    bad: list[tuple[str, str, bytes]] = []
    lines = text.encode("utf-8", "surrogateescape").splitlines(keepends=True)
    rows = json_rows(lines, "f", lambda where, error, content: bad.append((where, error.message, content)))
    return list(rows), bad


def test_bad_lines_are_told_and_passed_over():
    rows, bad = told('{"a": 1}\nnonsense\n[1]\n{"b": "\udcff"}\n\n{"a": 2}\n{"a":')
    assert rows == [("f line 1", {"a": 1}), ("f line 6", {"a": 2})]
    assert [(where, content) for where, _, content in bad] == [
        ("f line 2", b"nonsense"), ("f line 3", b"[1]"), ("f line 4", b'{"b": "\xff"}'), ("f line 7", b'{"a":'),
    ]  # fmt: skip
    assert [message.split(": ")[1][:9] for _, message, _ in bad] == [
        "not JSON ",
        "list foun",
        "byte 8 is",
        "not JSON ",
    ]


def test_elements_that_are_not_objects_are_skipped_but_syntax_errors_are_not():
    rows, bad = told('[{"a": 1}, 2,\n{"a": 3}]')
    assert rows == [("f row 1", {"a": 1}), ("f row 3", {"a": 3})]
    assert bad == [("f row 2", "f row 2: int found, expected an object.", b"2")]
    with refused():
        told('[{"a": 1}, 2,\n{"a" 3}, {"a": 4}]')
    assert told('[{"a": 1, "a": 1}]') == ([("f row 1", {"a": 1})], [])
    with refused():
        told('[{"a": 1, "a": 2}]')


def test_a_value_over_many_lines_is_not_read_again_at_each():
    """An object over 20,000 lines, which took minutes."""
    lines = [b'[{"a": [\n', *[b"1,\n"] * 20_000, b"1]},\n", b'{"a": 2}]\n']
    (_, first), (where, second) = array_rows(lines, "f")
    assert (len(first["a"]), where, second) == (20_001, "f row 2", {"a": 2})
