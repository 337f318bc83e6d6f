import os
import time
from unittest.mock import patch

import pytest

from stepsight.core.errors import UserError
from stepsight.core.files.atomic import atomic_file, write_text
from tests.messages import refused


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
