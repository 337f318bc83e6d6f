"""`stepsight app`: which address the server listens on, and who gets in."""

import re
import socket
import urllib.error
import urllib.request
from contextlib import contextmanager

import pytest

from stepsight.app.commands.serve import check_host, is_loopback, listen, public_names
from stepsight.app.web.access import COOKIE
from stepsight.core.errors import UserError
from stepsight.storage.people.logins import FREE_BY_ADDRESS, open_login
from stepsight.storage.people.users import end_user
from tests.cases import each
from tests.forked import Forked
from tests.messages import refused
from tests.storage.people.samples import user


@pytest.fixture
def db(tmp_path):
    """The path of a store that is not there."""
    return str(tmp_path / "store.db")


@each("host", ["127.0.0.1", "127.8.0.1", "localhost", "::1"])
def test_the_loopback_is_served_without_more_ado(host, db):
    assert is_loopback(host)
    check_host(host, db, public_read_only=False)


@each("host", ["0.0.0.0", "::", "10.1.2.3", "192.168.0.2", "stepsight.example", "", "127.0.0.1.example"])
def test_any_other_address_is_refused_unless_it_is_public_and_read_only(host, db):
    assert not is_loopback(host)
    with pytest.raises(UserError, match="other machines could change what is stored") as caught:
        check_host(host, db, public_read_only=False)
    assert "--public-read-only" in caught.value.hint
    check_host(host, db, public_read_only=True)


def test_a_server_that_others_reach_needs_users(sqlite_store):
    def is_refused(host="0.0.0.0", **options):
        try:
            check_host(host, sqlite_store.name, public_read_only=False, **options)
        except UserError:
            return True
        return False

    assert is_refused()
    # Behind a proxy as well.
    assert is_refused("127.0.0.1", proxied=True)
    user(sqlite_store)
    assert not is_refused()
    end_user(sqlite_store, "ada")
    assert is_refused()


def test_the_allowed_names_follow_the_address():
    assert public_names("10.1.2.3", ["stepsight.example"]) == ["10.1.2.3", "stepsight.example"]
    assert public_names("fd00::7", []) == ["[fd00::7]"]
    every = public_names("0.0.0.0", ["stepsight.example"])
    assert {socket.gethostname(), "stepsight.example"} <= set(every)
    assert "*" not in every


def test_a_socket_listens_where_it_is_told_at_the_next_free_port():
    with listen(0) as first, listen(0, "127.0.0.2") as second:
        assert [listener.getsockname()[0] for listener in (first, second)] == ["127.0.0.1", "127.0.0.2"]
        port = first.getsockname()[1]
        with listen(port) as third:
            assert port < third.getsockname()[1] < port + 10
    with refused():
        listen(0, "no such host.invalid")


@contextmanager
def served(*arguments):
    """A server of the real command, with what it prints at its start and its port."""
    with Forked(None, ["app", "--port", "0", *arguments]) as process:
        try:
            printed = ""
            while "Ctrl-C" not in printed:
                printed += process.stderr.readline()
            yield printed, int(re.search(r"http://[\d.]+:(\d+)", printed)[1])
        finally:
            process.kill()
            process.communicate()


def asked(url, headers, body=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers)) as response:
            return response.status
    except urllib.error.HTTPError as error:
        return error.code


PUBLIC = ("--host", "0.0.0.0", "--name", "stepsight.example")


@pytest.mark.slow
def test_a_public_server_lets_others_look_and_change_nothing(db):
    """127.0.0.1 stands for a machine elsewhere, reached by a name of the server."""
    with served("--db", db, "--public-read-only", *PUBLIC) as (printed, port):
        assert "change nothing" in printed
        address = f"http://127.0.0.1:{port}"
        for host, status in (("stepsight.example", 200), ("127.0.0.1", 200), ("elsewhere.example", 400)):
            assert asked(address + "/browse?dataset=gallery", {"Host": host}) == status
        json_type = {"Content-Type": "application/json"}
        body = b'{"dataset": "gallery", "evaluator": "mini-bidir"}'
        assert asked(f"{address}/api/v1/jobs", json_type, body) == 403
        body = b'{"problem": "What is 2 + 3?", "steps": ["5."]}'
        assert asked(f"{address}/api/v1/score", json_type, body) == 200


@pytest.mark.slow
def test_a_server_with_users_lets_other_machines_log_in(sqlite_store):
    """Once its last user is ended, nobody from elsewhere becomes the local user."""
    login = {"Cookie": f"{COOKIE}={open_login(sqlite_store, user(sqlite_store))}", "Host": "stepsight.example"}
    with served("--db", sqlite_store.name, *PUBLIC) as (printed, port):
        assert "Everybody has to log in." in printed
        address = f"http://127.0.0.1:{port}/api/v1/datasets"
        for headers, status in (
            (login, 200),
            ({"Host": "stepsight.example"}, 401),
            (login | {"Host": "elsewhere.example"}, 400),
        ):
            assert asked(address, headers) == status
        end_user(sqlite_store, "ada")
        assert asked(address, login) == 403


@pytest.mark.slow
@pytest.mark.parametrize("proxies", [["--proxy", "127.0.0.0/8"], ["--proxy", "10.0.0.1"]])
def test_only_a_named_proxy_says_where_a_request_comes_from(sqlite_store, proxies):
    """Whoever makes addresses up has them counted as one, and those of a proxy as many."""
    user(sqlite_store)
    with served("--db", sqlite_store.name, *proxies) as (_, port):

        def log_in(number):
            body = f"name=nobody{number}&password=wrong".encode()
            headers = {"X-Forwarded-For": f"192.0.2.{number}"}
            return asked(f"http://127.0.0.1:{port}/login", headers, body)

        assert {log_in(number) for number in range(FREE_BY_ADDRESS)} == {401}
        assert log_in(100) == (401 if "127.0.0.0/8" in proxies else 429)
