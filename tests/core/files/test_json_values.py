import pytest

from stepsight.core.files.json_values import (
    DEEPEST,
    check_depth,
    check_unicode,
    parse_json,
    read_bytes,
    read_json,
    write_json,
)
from tests.messages import refused


def nested(levels):
    """Lists and objects in turn, one per level."""
    return (
        "".join('{"a":' if level % 2 else "[" for level in range(levels))
        + "1"
        + "".join("}" if level % 2 else "]" for level in reversed(range(levels)))
    )


def test_a_value_is_read_from_text_and_from_bytes():
    assert parse_json('{"a": [1, "é"]}') == parse_json('{"a": [1, "é"]}'.encode()) == {"a": [1, "é"]}


def test_a_wide_and_flat_value_is_read():
    assert len(parse_json("[" + "[], " * 9_999 + "[]]")) == 10_000


def test_levels_are_counted():
    parse_json(nested(DEEPEST))
    check_depth(1)
    for levels in (DEEPEST + 1, 500, 100_000):
        with refused(ValueError):
            parse_json(nested(levels))


@pytest.mark.parametrize("text", [b"\xff", '"ü"'.encode("utf-16"), b'{"a": 1', b"", b"9" * 5000])
def test_invalid_json_gives_the_reason(text):
    with refused(ValueError):
        parse_json(text)


def test_a_file_without_an_end_is_not_read_to_the_end():
    with refused(ValueError):
        read_bytes("/dev/zero", 1000)


def test_half_of_a_surrogate_pair_is_found():
    for text in (rb'{"a": ["\ud83d\ude00", "\\ud800"]}', b"[]"):
        check_unicode(parse_json(text), text)
    for text in (rb'"\uD800"', rb'{"\udc00": 1}'):
        with refused(ValueError):
            check_unicode(parse_json(text), text)


def test_an_object_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "runs" / "run.json"
    write_json(path, {"ä": [1, None]})
    assert read_json(path) == {"ä": [1, None]}


@pytest.mark.parametrize("content", ["{", "[1]", None])
def test_a_file_without_an_object_is_refused(tmp_path, content):
    if content is not None:
        (tmp_path / "x.json").write_text(content)
    with refused():
        read_json(tmp_path / "x.json")
