import os
from pathlib import Path

import pytest

from stepsight.storage.database.location import describe, locate
from tests.messages import refused


@pytest.fixture(autouse=True)
def no_settings(monkeypatch, tmp_path):
    monkeypatch.delenv("STEPSIGHT_DB", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_default_is_a_file_in_the_data_folder_which_is_made(monkeypatch, tmp_path):
    assert locate().database == str(tmp_path / ".local/share/stepsight/stepsight.db")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    assert locate().database == str(tmp_path / "data/stepsight/stepsight.db")
    assert (tmp_path / "data/stepsight").is_dir()
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert locate().database == str(tmp_path / ".local/share/stepsight/stepsight.db")


@pytest.mark.usefixtures("no_umask")
def test_the_default_folder_is_its_owners_alone():
    assert Path(locate().database or "").parent.stat().st_mode & 0o777 == 0o700


def test_default_folder_that_cannot_be_made(monkeypatch, tmp_path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    with refused():
        locate()


def test_a_user_id_without_an_entry_and_without_home_is_told_to_name_the_store(monkeypatch, tmp_path):
    monkeypatch.delenv("HOME")
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 7)
    with refused():
        locate()
    assert locate(str(tmp_path / "s.db")).database == str(tmp_path / "s.db")


def test_the_variable_comes_before_the_default_and_the_argument_before_both(monkeypatch, tmp_path):
    monkeypatch.setenv("STEPSIGHT_DB", str(tmp_path / "variable.db"))
    assert locate().database == str(tmp_path / "variable.db")
    assert locate(str(tmp_path / "argument.db")).database == str(tmp_path / "argument.db")
    monkeypatch.setenv("STEPSIGHT_DB", "")
    assert locate().database == str(tmp_path / ".local/share/stepsight/stepsight.db")


def test_a_file_by_path_or_by_address(tmp_path):
    odd = tmp_path / "a b%20?x=1#y.db"
    assert locate(str(odd)).database == str(odd)
    assert locate(f"sqlite:///{tmp_path}/s.db").database == f"{tmp_path}/s.db"
    assert locate("~/s.db").database == str(tmp_path / "s.db")
    assert describe(locate(str(odd))) == str(odd)


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
def test_postgresql_uses_its_driver_and_hides_the_password(scheme):
    url = locate(f"{scheme}://me:secret@host/db")
    assert url.drivername == "postgresql+psycopg"
    assert url.password == "secret"
    assert describe(url) == "postgresql://me:***@host/db"
    also = "host=h&password=secret&sslkey=/folder/key&passfile=/folder/.pgpass&options=secret"
    assert "secret" not in (shown := describe(locate(f"{scheme}://me@/db?{also}")))
    assert "/folder" not in shown
    assert "host=h" in shown


@pytest.mark.parametrize(
    "address",
    [
        "",
        "  ",
        "s\x00.db",
        "mysql://host/db",
        "postgresql+asyncpg://host/db",
        "postgresql://host:port/db",
        ":memory:",
        "sqlite://",
        "sqlite:///:memory:",
        "~nobody-of-this-name/s.db",
        "/no/such/folder/s.db",
        "/proc",
    ],
)
def test_an_address_of_no_store_is_refused(address):
    with refused():
        locate(address)


def test_an_empty_file_may_become_a_store(tmp_path):
    (tmp_path / "s.db").touch()
    assert locate(str(tmp_path / "s.db")).database == str(tmp_path / "s.db")


def test_a_place_that_cannot_be_written(monkeypatch, tmp_path):
    monkeypatch.setattr("os.access", lambda path, mode: False)
    with refused():
        locate(str(tmp_path / "s.db"))
