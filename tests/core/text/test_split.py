import pytest

from stepsight.core.text.split import split_steps
from tests.cost import is_linear
from tests.messages import refused


def test_numbered_list_loses_its_numbers_and_keeps_continuation_lines():
    assert split_steps("1. Add 2 and 3.\n2) That is 5.\n   So five.\n3. Done.") == [
        "Add 2 and 3.",
        "That is 5.\n   So five.",
        "Done.",
    ]


def test_text_before_the_first_number_is_a_step():
    assert split_steps("We count.\n1. one\n2. two") == ["We count.", "one", "two"]


def test_step_headings_in_several_spellings():
    text = "Step 1: Read.\n\nMore of it.\n**Step 2:** Solve.\n### Step 3. Check."
    assert split_steps(text) == ["Read.\n\nMore of it.", "Solve.", "Check."]


def test_numbers_begin_again_after_an_announcement_but_not_within_a_step():
    assert split_steps("1. one\n2. two\n\nThen:\n1. three") == ["one", "two", "Then:", "three"]
    assert split_steps("1. one\n2. two\n\n   Then:\n1. three") == ["one", "two\n\n   Then:\n1. three"]


def test_numbers_within_a_sentence_do_not_make_a_list():
    assert split_steps("In 2024. a year passed.\n7. is prime") == ["In 2024. a year passed.", "7. is prime"]
    assert split_steps("3.5 apples\n1.5 pears") == ["3.5 apples", "1.5 pears"]


def test_paragraphs_between_blank_lines():
    assert split_steps("a\nb\n\n \nc") == ["a\nb", "c"]


def test_one_per_line():
    assert split_steps("a\r\nb\rc\n") == ["a", "b", "c"]


@pytest.mark.parametrize(
    "block",
    [
        "\\[\nx = 1\n\n+ 2\n\\]",
        "$$\na\n\nb\n$$",
        "\\begin{align*}\nx &= 1 \\\\\n\ny &= 2\n\\end{align*}",
        "[asy]\ndraw(A);\n\n1. dot\n2. dot\n[/asy]",
    ],
)
def test_latex_blocks_are_never_cut(block):
    assert split_steps(f"We draw {block}\n\nThen we count.") == [f"We draw {block}", "Then we count."]
    assert split_steps(f"1. see {block}\n2. done") == [f"see {block}", "done"]


def test_an_unclosed_block_protects_nothing():
    assert split_steps("a \\[ b\nc") == ["a \\[ b", "c"]


def test_json_list_with_substeps():
    assert split_steps('["a", ["b", "c"]]') == ["a", ["b", "c"]]


def test_json_list_of_something_else_is_refused():
    with refused():
        split_steps('["a", 3]')


def test_a_bracket_that_is_no_json_is_text():
    assert split_steps("[asy] draw [/asy]\nfour") == ["[asy] draw [/asy]", "four"]


def test_brackets_too_deep_for_json_are_text():
    assert split_steps("[" * 5000) == ["[" * 5000]


def test_empty_text_has_no_steps():
    assert split_steps(" \n ") == []


def test_many_openers_take_linear_time():
    assert is_linear(lambda size: split_steps("\\begin{a}" * size), 20_000)


def test_many_spaces_take_linear_time():
    assert is_linear(lambda size: split_steps("a\n" + " " * size + "b"), 100_000)


def test_a_number_of_too_many_digits_is_split_like_others():
    assert len(split_steps("Step " + "1" * 5000 + ": a\nStep 2: b")) == 2


def test_a_line_break_within_latex_opens_no_block():
    assert len(split_steps("a \\\\[4pt] b\n\nNext\n\n\\[ x \\]\n\nlast")) == 4


def test_a_json_list_holds_texts_that_can_be_steps():
    with refused():
        split_steps('["\\ud800 x"]')


def test_a_list_that_begins_with_another_number_is_not_recognised():
    assert split_steps("2. two\n3. three") == ["2. two", "3. three"]
    assert split_steps("2. two\n1. one\n2. three") == ["2. two", "one", "three"]
