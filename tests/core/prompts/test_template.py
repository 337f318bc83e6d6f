import pytest

from stepsight.core.prompts.template import PromptTemplate, Read, Separator
from tests.cases import each
from tests.messages import refused


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
    "values",
    [
        {"sep": "x"},
        {"reading": "once"},
        {"prompt": "Q"},
        {"step": "{step}{step}"},
        {"prompt": 3},
        {"opening": "yes"},
        {"joined": 1},
        {"read": "first"},
        {"separator_is": None},
        {"separator": ""},
    ],
)
def test_a_template_that_makes_no_sense_is_refused(values):
    with refused():
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
