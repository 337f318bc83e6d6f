import pytest

from stepsight.core.errors import UserError
from stepsight.core.prompts.template import PromptTemplate, Read, Separator
from tests.cases import each


def test_values_other_than_the_default_are_written_and_read_back():
    assert PromptTemplate().to_dict() == {"prompt": PromptTemplate.prompt, "separator": "<step>", "bos": None}
    template = PromptTemplate(
        prompt="{problem} ",
        step="Step {number}: {step}",
        opening=False,
        separator_is=Separator.TEXT,
        read=Read.LAST,
    )
    values = template.to_dict()
    assert values == {
        "prompt": "{problem} ", "separator": "<step>", "bos": None, "step": "Step {number}: {step}",
        "opening": False, "separator_is": "text", "read": "last",
    }  # fmt: skip
    assert PromptTemplate.from_dict(values) == template


@each(
    "values, message",
    [
        ({"sep": "x"}, "the template: unknown key sep. Did you mean step"),
        ({"prompt": "Q"}, r"prompt must contain \{problem\} exactly once"),
        ({"step": "{step}{step}"}, r"step must contain \{step\} exactly once"),
        ({"prompt": 3}, "prompt is 3, expected text"),
        ({"opening": "yes"}, "opening is 'yes', expected true or false"),
        ({"joined": 1}, "joined is 1, expected true or false"),
        ({"read": "first"}, "read is 'first', expected one of separator, last, second-to-last"),
        ({"separator_is": None}, "separator_is is None, expected one of token, text"),
        ({"separator": ""}, "the template: steps are read at an empty separator"),
    ],
)
def test_a_template_that_makes_no_sense_is_refused(values, message):
    with pytest.raises(UserError, match=message):
        PromptTemplate.from_dict(values)


@pytest.mark.parametrize(
    ("number", "text", "expected"),
    [
        (2, "So 5.", "Step 2: So 5."),
        (2, "Step 2: So 5.", "Step 2: So 5."),
        (1, "Step 14: So 5.", "Step 14: So 5."),
        (1, " Step 1: So", " Step 1: So"),
        (1, "Step by step", "Step 1: Step by step"),
        (1, "{number} {step}", "Step 1: {number} {step}"),
    ],
)
def test_a_step_is_numbered_unless_it_is(number, text, expected):
    assert PromptTemplate(step="Step {number}: {step}").step_text(number, text) == expected


def test_a_plain_step_is_left_as_it_is():
    assert PromptTemplate().step_text(3, " x ") == " x "
