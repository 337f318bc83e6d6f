import base64
import json
import random
import re
import zlib

import pytest

from app.permalink import ScoreForm
from core.errors import UserError

FORM = ScoreForm("What is $1 + 1$?", "It is a sum.\nSo 3 — “∑” 三 🙂.", "mini-bidir", 0.25, 0.75)


def token_of(text):
    """A token that holds any text."""
    return base64.urlsafe_b64encode(zlib.compress(text.encode())).decode().rstrip("=")


def opened(token):
    try:
        return ScoreForm.from_token(token)
    except UserError:
        return None


def test_a_form_comes_back_from_its_token():
    assert ScoreForm.from_token(FORM.token()) == FORM
    assert ScoreForm.from_token(ScoreForm().token()) == ScoreForm()


def test_a_token_needs_no_escaping_in_an_address():
    for length in range(20):
        token = ScoreForm("?" * length, "ÿ" * length).token()
        assert re.fullmatch(r"[A-Za-z0-9_-]+", token)


def test_text_that_repeats_takes_little_room_and_text_that_does_not_gets_no_link():
    assert len(ScoreForm("q", "The same step again. " * 1000).token()) < 1000
    draw = random.Random(0)
    noise = "".join(chr(draw.randrange(0x4E00, 0x9FFF)) for _ in range(8000))
    assert ScoreForm("q", noise).token() is None


def test_a_token_cut_or_changed_anywhere_is_refused_or_harmless():
    token = FORM.token()
    cuts = [opened(token[:length]) for length in range(len(token))]
    # The last bytes are only a check sum: what comes back without them is still whole.
    assert set(cuts[:-8]) == {None}
    assert set(cuts[-8:]) <= {None, FORM}
    draw = random.Random(0)
    for _ in range(500):
        place = draw.randrange(len(token))
        changed = token[:place] + draw.choice("abcXYZ019-_") + token[place + 1 :]
        assert opened(changed) in (None, FORM)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        '"text"',
        '["p", "s", "e", 0.5]',
        '["p", "s", "e", 0.5, 0.1, 1]',
        '["p", "s", "e", "half", 0.1]',
        '["p", "s", "e", null, 0.1]',
        '["\\ud800", "s", "e", 0.5, 0.1]',
        '["p", "s", "\\udfff", 0.5, 0.1]',
        f'["p", "s", "e", {"1" * 400}, 0.1]',
        f'["p", "s", "e", {"1" * 5000}, 0.1]',
        "[" * 5000,
    ],
    ids=lambda text: text[:30] or "empty",
)
def test_a_token_that_holds_something_else_is_refused(text):
    with pytest.raises(UserError, match="This link was cut or changed"):
        ScoreForm.from_token(token_of(text))


@pytest.mark.parametrize("token", ["", "A", "!!!", "é", "AAAA", "=" * 9, FORM.token().replace("e", "/", 1) + "\n"])
def test_what_is_no_token_is_refused(token):
    with pytest.raises(UserError, match="This link was cut or changed"):
        ScoreForm.from_token(token)


@pytest.mark.parametrize("value", [-0.01, 1.01, float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("key", ["validity", "redundancy"])
def test_a_threshold_outside_0_to_1_is_refused(key, value):
    values = {"validity": 0.5, "redundancy": 0.15} | {key: value}
    with pytest.raises(UserError, match="a threshold outside 0 to 1"):
        ScoreForm.from_token(token_of(json.dumps(["p", "s", "e", *values.values()])))


def test_a_small_token_does_not_unpack_into_a_large_text():
    bomb = token_of(json.dumps(["p", "x" * 50_000_000, "e", 0.5, 0.1]))
    assert len(bomb) < 100_000
    with pytest.raises(UserError, match="This link was cut or changed"):
        ScoreForm.from_token(bomb)
