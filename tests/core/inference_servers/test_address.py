"""Addresses of evaluators behind servers."""

import re

import pytest

from stepsight.core.errors import UserError
from stepsight.core.inference_servers.address import ServerAddress, is_address, parse_address
from tests.cases import each


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
    "text, message",
    [
        ("vllm:h:8000#m", "'h:8000' is not the address of a server: http:// or https:// was expected."),
        ("vllm:ftp://h/v1#m", "http:// or https:// was expected"),
        ("vllm:http://#m", "names no host"),
        ("vllm:http://h h/v1#m", "names no host"),
        ("vllm:http://h:99999/v1#m", "is not a URL"),
        ("vllm:http://[::1/v1#m", "is not a URL"),
        ("vllm:http://h/v1?x=1#m", "question mark"),
        ("vllm:http://h/v1", "the name of the model is missing"),
        ("vllm:http://h/v1#", "the name of the model is missing"),
        ("vllm:http://h/v1#m\nn", "control characters"),
        ("vllm:http://h/v1#m,samples=", "the option 'samples' is without a value"),
        ("vllm:http://h/v1#m,a=1,a=2", "the option 'a' is there twice"),
        ("tgi:http://h/v1#m", "names no kind of server"),
    ],
)
def test_an_invalid_address_is_refused(text, message):
    with pytest.raises(UserError, match=re.escape(message)) as caught:
        parse_address(text)
    assert caught.value.hint


@pytest.mark.parametrize("text", ["vllm:http://me:secret@h/v1#m", "critic:http://secret@h/v1#m"])
def test_a_password_is_refused_and_not_repeated(text):
    with pytest.raises(UserError, match="holds a name or a password") as caught:
        parse_address(text)
    assert "secret" not in str(caught.value)
    assert "STEPSIGHT_API_KEY" in caught.value.hint


def test_names_and_folders_are_no_addresses():
    assert not any(map(is_address, ["mini-bidir", "runs/vllm", "Qwen/Qwen2.5-Math-PRM-7B", "equations"]))


def test_the_root_of_a_server():
    assert ServerAddress("vllm", "http://h/team/v1", "m").root == "http://h/team"
    assert ServerAddress("vllm", "http://h/api", "m").root == "http://h/api"


def test_options_that_there_are():
    address = parse_address("vllm:http://h/v1#m,tokenizer=x")
    address.check_options({"tokenizer"})
    with pytest.raises(UserError, match="there is no option 'tokenizer'") as caught:
        address.check_options({"samples", "prompt"})
    assert caught.value.hint == "There are: prompt, samples."
