import pytest

from stepsight.core.errors import UserError
from tests.cost import is_linear


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("the field 'id' is 5.", "the field 'id' is 5."),
        (f"a 'b' is {'c' * 120!r}.", f"a 'b' is '{'c' * 120}'."),
        (f"a 'b' is {'c' * 121!r}.", f"a 'b' is '{'c' * 60}…' (121 characters)."),
        (f"key \"{'k' * 200}\" of 'x'", f"key \"{'k' * 60}…\" (200 characters) of 'x'"),
        (f"found {{'a': '{'b' * 500}'}} here", f"found {{'a': '{'b' * 60}…' (500 characters)}} here"),
        ("w" * 500, f"{'w' * 60}… (500 characters)"),
        # A path stays, long as it may be.
        (f"/folder/{'p' * 400}: cannot be read", f"/folder/{'p' * 400}: cannot be read"),
    ],
)
def test_values_that_are_quoted_at_length_are_cut(text, cut):
    error = UserError(text, text)
    assert (error.message, error.hint, error.args) == (cut, cut, (cut,))


def test_apostrophes_are_no_quotations():
    text = (
        "It's the evaluator's own text, which isn't what the people's page would've shown, and it won't be cut: "
        * 3
    )
    assert UserError(text.strip()).message == text.strip()


def test_no_message_is_longer_than_2000_characters():
    listing = "\n".join(f"line {number}: bad" for number in range(1000))
    message = UserError(listing).message
    assert len(message) == 2000
    assert message.startswith("line 0: bad\nline 1: bad\n")
    assert message.endswith(f"… ({len(listing):,} characters)")
    assert len(UserError("x").at("y" * 600).message) < 100


@pytest.mark.parametrize("part", ["'", "'a ", "\"a' ", "a", "'a'b", " ", "\\'"])
def test_however_long_a_value_is_cutting_it_takes_linear_time(part):
    assert len(UserError(part * 100_000).message) <= 2000
    assert is_linear(lambda size: UserError(part * size), 100_000)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Name the dataset (--dataset).", "Name the dataset."),
        ("Shorten it (or use --skip-too-long).", "Shorten it."),
        ("Merge it first (stepsight evaluators merge), and give it.", "Merge it first, and give it."),
        ("found f(x) (of StepSight) and a - (b -- c)", "found f(x) (of StepSight) and a - (b -- c)"),
    ],
)
def test_pages_leave_out_commands_and_options(text, shown):
    assert str(UserError("The file is empty.", text).without_options()) == f"The file is empty. {shown}"
