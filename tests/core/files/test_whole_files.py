"""JSON and YAML within bounds, and files that are written atomically."""

import os
import time
from unittest.mock import patch

import pytest

from stepsight.core.errors import UserError
from stepsight.core.files.whole_files import (
    DEEPEST,
    atomic_file,
    check_depth,
    parse_json,
    read_bytes,
    read_json,
    write_json,
    write_text,
)
from stepsight.core.files.yaml_files import read_yaml
from tests.cases import each
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
    assert parse_json(rb'["\ud83d\ude00", "\\ud800"]') == ["😀", r"\ud800"]


def test_a_wide_and_flat_value_is_read():
    assert len(parse_json("[" + "[], " * 9_999 + "[]]")) == 10_000


def test_levels_are_counted():
    check_depth(parse_json(nested(DEEPEST)))
    check_depth(1)
    for levels in (DEEPEST + 1, 500, 100_000):
        with refused(ValueError):
            parse_json(nested(levels))


@each("text", [b"\xff", '"ü"'.encode("utf-16"), b'{"a": 1', b"", b"9" * 5000, rb'"\uD800"', rb'{"\udc00": 1}'])
def test_invalid_json_gives_the_reason(text):
    with refused(ValueError):
        parse_json(text)


def test_a_file_without_an_end_is_not_read_to_the_end():
    with refused(ValueError):
        read_bytes("/dev/zero", 1000)


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


def test_a_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "out.txt"
    with atomic_file(path) as partial:
        partial.write_text("all of it")
        assert not path.exists()
    assert path.read_text() == "all of it"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_no_file_appears_if_the_block_fails(tmp_path):
    def write() -> None:
        with atomic_file(tmp_path / "out.txt") as partial:
            partial.write_text("half")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        write()
    assert os.listdir(tmp_path) == []


def test_what_a_killed_process_left_of_the_file_is_gone_after_a_day(tmp_path):
    partials = [
        tmp_path / f"{name}.partial" for name in ("[a].0123456789abcdef", "[a].fedcba9876543210", "b.0", "a.b")
    ]
    for path in partials:
        path.touch()
    for path in (partials[0], *partials[2:]):
        os.utime(path, (time.time() - 25 * 3600,) * 2)
    write_text(tmp_path / "[a]", "all of it")
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "[a]", *partials[1:]])


def test_a_file_that_is_there_is_only_replaced_on_request(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    with refused():
        atomic_file(path, replace=False).__enter__()
    assert path.read_text() == "old"
    with atomic_file(path) as partial:
        partial.write_text("new")
    assert path.read_text() == "new"


def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path):
    path = tmp_path / "out.txt"

    def write() -> None:
        with atomic_file(path, replace=False) as partial:
            partial.write_text("mine")
            path.write_text("theirs")

    with refused():
        write()
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_link_stays_one(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    with atomic_file(tmp_path / "link.txt") as partial:
        partial.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_nobody_can_lay_a_link_for_what_is_written(tmp_path):
    names = set()
    for _ in range(2):
        with atomic_file(tmp_path / "out.txt") as partial:
            names.add(partial.name)
    assert len(names) == 2
    # What a guess at the name would have to win against.
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "out.txt.00.partial").symlink_to(tmp_path / "taken")
    with patch("secrets.token_hex", return_value="00"), pytest.raises(UserError):
        atomic_file(tmp_path / "out.txt").__enter__()
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_private_file_is_its_owners_alone(tmp_path):
    with atomic_file(tmp_path / "secret", private=True) as partial:
        partial.write_text("x")
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_a_file_that_cannot_be_written_is_an_error(tmp_path):
    with refused():
        atomic_file(tmp_path / "none" / "out.txt").__enter__()
    with refused():
        atomic_file(tmp_path).__enter__()


def test_a_text_is_written_with_the_folders_above_it(tmp_path):
    path = tmp_path / "runs" / "one" / "result.json"
    write_text(path, "ä\n")
    assert path.read_bytes() == "ä\n".encode()
    (tmp_path / "taken").touch()
    with refused():
        write_text(tmp_path / "taken" / "x", "")


# Nine items, each of nine of the one before: read in a moment, and gone through by nobody.
BOMB = "a0: &a0 [1]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))


def write(folder, **texts):
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")


def test_a_file_is_laid_over_the_one_that_it_extends(tmp_path):
    write(
        tmp_path,
        first="a: 1\nb: {c: 2, d: {e: 3, f: [4, 5]}}\ng: [6]\n",
        second="extends: first.yaml\nb: {d: {f: [7]}}\ng: {h: 8}\n",
        third="extends: second.yaml\na: null\nb: {c: 9}\n",
    )
    assert read_yaml(tmp_path / "second.yaml") == {"a": 1, "b": {"c": 2, "d": {"e": 3, "f": [7]}}, "g": {"h": 8}}
    assert read_yaml(tmp_path / "third.yaml") == {"a": None, "b": {"c": 9, "d": {"e": 3, "f": [7]}}, "g": {"h": 8}}
    assert read_yaml(tmp_path / "first.yaml")["g"] == [6]


@each(
    "text",
    [
        "extends: it.yaml",
        "extends: round.yaml",
        "extends: none.yaml",
        "extends: list.yaml",
        "extends: [list.yaml]",
        'extends: "a\\0b"',
        "[" * 100_000,
        "- " * 100_000,
        "a: &a [1, {b: *a}]",
        BOMB,
        "a: 1\nb: {c: 2, c: 3}",
    ],
)
def test_a_file_that_cannot_extend_another_is_refused(tmp_path, text):
    write(tmp_path, it=text, round="extends: it.yaml", list="- a")
    with refused():
        read_yaml(tmp_path / "it.yaml")


def test_the_keys_of_anchors_may_be_given_again(tmp_path):
    write(tmp_path, it="a: &a {b: 1, c: 2}\nd: {<<: *a, b: 3}\n")
    assert read_yaml(tmp_path / "it.yaml")["d"] == {"b": 3, "c": 2}
