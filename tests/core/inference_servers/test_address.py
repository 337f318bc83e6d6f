"""Addresses of evaluators behind servers."""

import pytest

from stepsight.core.inference_servers.address import ServerAddress, is_address, parse_address
from tests.cases import each
from tests.messages import refused


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("vllm:http://h:8000/v1#a/b", ServerAddress("vllm", "http://h:8000/v1", "a/b")),
        ("critic:https://h/v1/#m", ServerAddress("critic", "https://h/v1", "m")),
        ("vllm:http://[::1]:8000/v1#/models/prm", ServerAddress("vllm", "http://[::1]:8000/v1", "/models/prm")),
        ("vllm:http://h#m", ServerAddress("vllm", "http://h", "m")),
        # A comma is part of a name where no option follows it.
        (
            "vllm:http://h/v1#a,b,tokenizer=/x,y,requests=8",
            ServerAddress("vllm", "http://h/v1", "a,b", {"tokenizer": "/x,y", "requests": "8"}),
        ),
    ],
)
def test_an_address(text, expected):
    assert is_address(text)
    assert parse_address(text) == expected
    assert parse_address(str(expected)) == expected


@each(
    "text",
    [
        "vllm:h:8000#m",
        "vllm:ftp://h/v1#m",
        "vllm:http://#m",
        "vllm:http://h h/v1#m",
        "vllm:http://h:99999/v1#m",
        "vllm:http://[::1/v1#m",
        "vllm:http://h/v1?x=1#m",
        "vllm:http://h/v1",
        "vllm:http://h/v1#",
        "vllm:http://h/v1#m\nn",
        "vllm:http://h/v1#m,samples=",
        "vllm:http://h/v1#m,a=1,a=2",
        "tgi:http://h/v1#m",
    ],
)
def test_an_invalid_address_is_refused(text):
    with refused():
        parse_address(text)


@pytest.mark.parametrize("text", ["vllm:http://me:secret@h/v1#m", "critic:http://secret@h/v1#m"])
def test_a_password_is_refused_and_not_repeated(text):
    with refused() as caught:
        parse_address(text)
    assert "secret" not in str(caught.value)


def test_names_and_folders_are_no_addresses():
    assert not any(map(is_address, ["mini-bidir", "runs/vllm", "Qwen/Qwen2.5-Math-PRM-7B", "equations"]))


def test_options_that_there_are():
    address = parse_address("vllm:http://h/v1#m,tokenizer=x")
    address.check_options({"tokenizer"})
    with refused():
        address.check_options({"samples", "prompt"})
