"""Lists and objects as programs print them."""

import pytest

from stepsight.core.text.printed import holds_steps, parse_printed
from tests.cases import each


@each(
    "text, value",
    [
        ('["a", 1, null]', ["a", 1, None]),
        ("['a', 1, None, True]", ["a", 1, None, True]),
        ("[1. 0. nan]", [1.0, 0.0, None]),
        ("[ 1 -1\n -1]", [1, -1, -1]),
        ("['a' 'b']", ["a", "b"]),
        ("[[1 2]\n [3 4]]", [[1, 2], [3, 4]]),
        ("(1, 2)", [1, 2]),
        ("[+, -, neg]", ["+", "-", "neg"]),
        ("array(['a', 'b'], dtype='<U1')", ["a", "b"]),
        ("tensor([1., 0.], device='cuda:0')", [1.0, 0.0]),
        ("[np.str_('a'), np.True_]", ["a", True]),
        ("{'a': [1], \"b\": {'c': None}}", {"a": [1], "b": {"c": None}}),
        (r"['\u00e9', '\ud83d\ude00', '\x41', '\frac', '\d']", ["é", "😀", "A", "\frac", r"\d"]),
        ("['1 ... 2', '…']", ["1 ... 2", "…"]),
        ("{0: 'a', 1: 'b'}", {"0": "a", "1": "b"}),
        ("[b'a', u'b',]", ["a", "b"]),
        (r'"[\"a\", \"b\"]"', ["a", "b"]),
        ("[]", []),
        ("{}", {}),
    ],
)
def test_a_printed_value_is_read(text, value):
    assert parse_printed(text) == value
    assert parse_printed(f" {text}\n") == value


@pytest.mark.parametrize(
    "text",
    [
        *("['a'", "[1 2 ... 9]", "['a'] b", "{'a'}", "[" * 200 + "]" * 200, "[)", ""),
        # Separators of other programs, and quotes within texts that are not escaped.
        *(
            "['a'; 'b']",
            "['a'，'b']",
            "[“a”, “b”]",
            '["a", "He said "no"."]',
            '["a", "b " or " c"]',
            "['She's 3.', 'So 3.']",
        ),
    ],
)
def test_another_text_has_a_reason(text):
    with pytest.raises(ValueError, match=r"\w"):
        parse_printed(text)


def test_a_list_of_steps_is_told_from_an_answer_by_its_quotes():
    lists = ["['a']", '[["a"]]', "array(['a'])", "[{'text': 1}]", "[u'a']", "[“a”]", r'"[\"a\"]"']
    assert all(map(holds_steps, lists))
    assert not any(map(holds_steps, ["[-2, 2]", "[x]", "{'a': 1}", "So ['a']", "[1, 'a']", '"a" is [1]']))
