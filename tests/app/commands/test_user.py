"""`stepsight user`, as it is typed."""

import io
import subprocess
import sys

import pytest

from stepsight.storage.people.logins import log_in, open_login, user_of
from stepsight.storage.people.users import Role, find_user, list_users
from tests.conftest import ROOT
from tests.storage.people.samples import PASSWORD, user

# Runs a command on a terminal of its own, which gets what comes on standard input.
TERMINAL = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"


@pytest.fixture
def typed(command, sqlite_store, monkeypatch):
    """Run `stepsight user …`, with a text on standard input."""

    def typed(*argv, text=""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return command("user", *argv, "--db", sqlite_store.name)

    return typed


def test_the_first_user_is_added_and_can_log_in(typed, sqlite_store):
    code, out, err = typed("add", "ada", "--role", "admin", "--password-stdin", text=f"{PASSWORD}\nmore\n")
    assert (code, err) == (0, "")
    assert out == "ada: admin\nFrom now on everybody has to log in.\n"
    assert user_of(sqlite_store, log_in(sqlite_store, "ada", PASSWORD, "")).role is Role.ADMIN
    assert typed("add", "bob", "--role", "viewer", "--password-stdin", text=PASSWORD)[1] == "bob: viewer\n"


def test_users_are_listed(typed, sqlite_store):
    assert typed("list")[1] == "There is no user. Add one: stepsight user add NAME --role admin\n"
    user(sqlite_store, "ada", Role.ADJUDICATOR)
    user(sqlite_store, "Grace Hopper")
    typed("deactivate", "ada")
    assert typed("list")[1] == "Grace Hopper  annotator\nada           adjudicator, deactivated\n"


def test_a_key_lets_a_program_in_until_the_password_changes(typed, sqlite_store):
    user(sqlite_store)
    code, out, _ = typed("key", "ada")
    assert code == 0
    assert user_of(sqlite_store, out.strip()).name == "ada"
    typed("password", "ada", "--password-stdin", text="another password")
    assert user_of(sqlite_store, out.strip()) is None
    typed("deactivate", "ada")
    code, out, err = typed("key", "ada")
    assert (code, out) == (2, "")
    assert "ada is deactivated. Set a new password to reactivate the account." in err
    assert "nobody" in typed("key", "nobody")[2]


def test_a_role_a_password_and_a_deactivation(typed, sqlite_store):
    user(sqlite_store)
    assert typed("role", "ada", "adjudicator")[1] == "ada: adjudicator\n"
    token = open_login(sqlite_store, find_user(sqlite_store, "ada"))
    assert typed("password", "ada", "--password-stdin", text="another password")[1] == "ada: adjudicator\n"
    assert user_of(sqlite_store, token) is None
    told = typed("deactivate", "ada")[1]
    assert told == "ada: adjudicator, deactivated\nNobody can log in any more, or has to.\n"
    told = typed("password", "ada", "--password-stdin", text=PASSWORD)[1]
    assert told == "ada: adjudicator\nFrom now on everybody has to log in.\n"


@pytest.mark.parametrize(("again", "code"), [(PASSWORD, 0), ("another password", 2)])
def test_a_password_is_asked_for_twice_and_not_shown(sqlite_store, again, code):
    command = [
        sys.executable,
        "-m",
        "stepsight",
        "user",
        "add",
        "ada",
        "--role",
        "admin",
        "--db",
        sqlite_store.name,
    ]
    shell = [sys.executable, "-c", TERMINAL, *command]
    with subprocess.Popen(shell, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT) as process:
        told = b""
        # The terminal echoes what is typed before the command turns that off.
        for prompt, answer in ((b"Password of ada: ", PASSWORD), (b"Once more: ", again)):
            while not told.endswith(prompt):
                told += process.stdout.read(1)
            process.stdin.write(f"{answer}\n".encode())
            process.stdin.flush()
        told += process.stdout.read()
        assert process.wait(30) == code
    assert PASSWORD.encode() not in told
    assert [one.name for one in list_users(sqlite_store)] == (["ada"] if code == 0 else [])
    assert (b"The two passwords differ." in told) == (code == 2)
