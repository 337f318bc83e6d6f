"""Which address the server listens on, and who gets in."""

import re
import socket
import urllib.error
import urllib.request

import pytest

from stepsight.app.access.rights import COOKIE
from stepsight.app.commands.serve import check_host, is_loopback, listen, public_names
from stepsight.storage.people.logins import FREE_BY_ADDRESS, open_login
from stepsight.storage.people.users import end_user
from tests.forked import Forked
from tests.messages import refused
from tests.storage.people.samples import user


@pytest.fixture
def db(tmp_path):
    """The path of a store that is not there."""
    return str(tmp_path / "store.db")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.0.1", "localhost", "::1"])
def test_the_loopback_is_served_without_more_ado(host, db):
    assert is_loopback(host)
    check_host(host, db, public_read_only=False)


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.1.2.3", "192.168.0.2", "stepsight.example", "", "127.0.0.1.example"]
)
def test_any_other_address_is_refused_unless_it_is_public_and_read_only(host, db):
    assert not is_loopback(host)
    with refused() as caught:
        check_host(host, db, public_read_only=False)
    assert "--public-read-only" in caught.value.hint
    check_host(host, db, public_read_only=True)


def test_a_server_behind_a_proxy_needs_users_as_well(db):
    with refused():
        check_host("127.0.0.1", db, public_read_only=False, proxied=True)
    check_host("127.0.0.1", db, public_read_only=True, proxied=True)


def test_and_where_somebody_has_to_log_in(sqlite_store):
    with refused():
        check_host("0.0.0.0", sqlite_store.name, public_read_only=False)
    user(sqlite_store)
    check_host("0.0.0.0", sqlite_store.name, public_read_only=False)
    end_user(sqlite_store, "ada")
    with refused() as caught:
        check_host("0.0.0.0", sqlite_store.name, public_read_only=False)
    assert caught.value.message.startswith("--host is '0.0.0.0'")


def test_the_allowed_names_follow_the_address():
    assert public_names("10.1.2.3", ["stepsight.example"]) == ["10.1.2.3", "stepsight.example"]
    assert public_names("fd00::7", []) == ["[fd00::7]"]
    every = public_names("0.0.0.0", ["stepsight.example"])
    assert {socket.gethostname(), "stepsight.example"} <= set(every)
    assert "*" not in every


def test_a_socket_listens_where_it_is_told():
    with listen(0) as one, listen(0, "127.0.0.2") as other:
        assert one.getsockname()[0] == "127.0.0.1"
        assert other.getsockname()[0] == "127.0.0.2"
    with refused():
        listen(0, "no such host.invalid")


@pytest.mark.slow
def test_a_public_server_lets_others_look_and_change_nothing(tmp_path):
    """The real command; 127.0.0.1 stands for a machine elsewhere, reached by a name of the server."""
    path = tmp_path / "store.db"
    command = ["app", "--db", path, "--port", "0", "--host", "0.0.0.0"]
    command += ["--public-read-only", "--name", "stepsight.example"]
    with Forked(None, command) as process:
        try:
            told = ""
            while "Ctrl-C" not in told:
                told += process.stderr.readline()
            assert "change nothing" in told
            port = re.search(r"http://0\.0\.0\.0:(\d+)", told)[1]
            address = f"http://127.0.0.1:{port}"
            for host, status in (("stepsight.example", 200), ("127.0.0.1", 200), ("elsewhere.example", 400)):
                assert asked(address + "/browse?dataset=gallery", {"Host": host}) == status
            body = b'{"dataset": "gallery", "evaluator": "mini-bidir"}'
            assert asked(f"{address}/api/v1/jobs", {"Content-Type": "application/json"}, body) == 403
            assert asked(f"{address}/api/v1/score", {"Content-Type": "application/json"},
                         b'{"problem": "What is 2 + 3?", "steps": ["5."]}') == 200  # fmt: skip
        finally:
            process.kill()
            process.communicate()


@pytest.mark.slow
def test_a_server_with_users_lets_other_machines_log_in(sqlite_store):
    """The real command; once its last user is ended, nobody from elsewhere becomes the local user."""
    login = {"Cookie": f"{COOKIE}={open_login(sqlite_store, user(sqlite_store))}", "Host": "stepsight.example"}
    command = ["app", "--db", sqlite_store.name, "--port", "0"]
    command += ["--host", "0.0.0.0", "--name", "stepsight.example"]
    with Forked(None, command) as process:
        try:
            told = ""
            while "Ctrl-C" not in told:
                told += process.stderr.readline()
            assert "Everybody has to log in." in told
            address = f"http://127.0.0.1:{re.search(r'http://0.0.0.0:([0-9]+)', told)[1]}/api/v1/datasets"
            for headers, status in (
                (login, 200),
                ({"Host": "stepsight.example"}, 401),
                (login | {"Host": "elsewhere.example"}, 400),
            ):
                assert asked(address, headers) == status
            end_user(sqlite_store, "ada")
            assert asked(address, login) == 403
        finally:
            process.kill()
            process.communicate()


def asked(url, headers, body=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.slow
@pytest.mark.parametrize("proxies", [[], ["--proxy", "127.0.0.0/8"], ["--proxy", "10.0.0.1"]])
def test_only_a_named_proxy_says_where_a_request_comes_from(sqlite_store, proxies):
    """The real command: whoever makes addresses up has them counted as one, and those of a proxy as many."""
    user(sqlite_store)
    with Forked(None, ["app", "--db", sqlite_store.name, "--port", "0", *proxies]) as process:
        try:
            told = ""
            while "Ctrl-C" not in told:
                told += process.stderr.readline()
            address = f"http://127.0.0.1:{re.search(r'http://127.0.0.1:([0-9]+)', told)[1]}/login"

            def log_in(number):
                body = f"name=nobody{number}&password=wrong".encode()
                return asked(address, {"X-Forwarded-For": f"192.0.2.{number}"}, body)

            assert {log_in(number) for number in range(FREE_BY_ADDRESS)} == {401}
            assert log_in(100) == (401 if "127.0.0.0/8" in proxies else 429)
        finally:
            process.kill()
            process.communicate()
