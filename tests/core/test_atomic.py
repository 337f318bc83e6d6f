import os

import pytest

from stepsight.core.atomic import whole_file
from stepsight.core.errors import UserError


def test_a_file_appears_when_the_block_ends(tmp_path):
    path = tmp_path / "out.txt"
    with whole_file(path) as partial:
        partial.write_text("all of it")
        assert not path.exists()
    assert path.read_text() == "all of it"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_nothing_appears_where_the_block_fails(tmp_path):
    def write() -> None:
        with whole_file(tmp_path / "out.txt") as partial:
            partial.write_text("half")
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        write()
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_there_is_only_replaced_on_request(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(UserError, match=r"out\.txt: there already\. Name another file, or replace it with --force"):
        whole_file(path).__enter__()
    assert path.read_text() == "old"
    with whole_file(path, force=True) as partial:
        partial.write_text("new")
    assert path.read_text() == "new"


def test_nor_one_that_appears_meanwhile(tmp_path):
    path = tmp_path / "out.txt"

    def write() -> None:
        with whole_file(path) as partial:
            partial.write_text("mine")
            path.write_text("theirs")

    with pytest.raises(UserError, match="there already"):
        write()
    assert path.read_text() == "theirs"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_link_stays_one(tmp_path):
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    with whole_file(tmp_path / "link.txt", force=True) as partial:
        partial.write_text("new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_private_file_is_its_owners_alone(tmp_path):
    with whole_file(tmp_path / "secret", private=True) as partial:
        partial.write_text("x")
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_written_is_told(tmp_path):
    with pytest.raises(UserError, match=r"out\.txt: cannot be written \(No such file or directory\)"):
        whole_file(tmp_path / "none" / "out.txt").__enter__()
    with pytest.raises(UserError, match="not a file"):
        whole_file(tmp_path, force=True).__enter__()
