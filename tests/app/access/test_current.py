"""Which requests come from this machine."""

import pytest

from stepsight.app.access.current import is_local

FORWARDED = (
    *("Forwarded", "Forwarded-For", "X-Forwarded", "X-Forwarded-For", "x-forwarded-for", "X-Forwarded-Host"),
    *("X-Forwarded-Proto", "X-Original-Forwarded-For", "Via", "CDN-Loop", "X-Real-IP", "X-Client-IP"),
    *("True-Client-IP", "CF-Connecting-IP"),
)


def local(*headers, client=("127.0.0.1", 50_000)):
    sent = [(b"host", b"localhost"), (b"accept", b"text/html"), (b"origin", b"http://localhost"), *headers]
    return is_local({"type": "http", "client": client, "headers": sent})


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.0.1", "::1"])
def test_the_loopback_is_this_machine(address):
    assert local(client=(address, 50_000))


# What a proxy whose word is taken may say among them.
@pytest.mark.parametrize(
    "address", ["10.0.0.1", "203.0.113.5", "fe80::1", "0.0.0.0", "::", "unix:", "", "127.0.0.1x"]
)
def test_no_other_address_is(address):
    assert not local(client=(address, 0))


def test_a_sender_without_an_address_is_elsewhere():
    assert not local(client=None)


@pytest.mark.parametrize("name", FORWARDED)
def test_what_was_forwarded_is_from_elsewhere_whatever_it_says(name):
    for value in (b"127.0.0.1", b"::1", b"for=127.0.0.1", b""):
        assert not local((name.encode(), value))
    assert not local((b"x-request-id", b"1"), (name.encode(), b"203.0.113.5"), (name.encode(), b"127.0.0.1"))
