import numpy as np
import pytest

from core.encoding import Encoder, PromptTemplate
from core.errors import UserError
from core.trace import Trace
from tests.checkpoints import tiny_tokenizer


@pytest.fixture(scope="module")
def encoder():
    return Encoder(tiny_tokenizer(), PromptTemplate())


def test_each_step_is_read_at_the_separator_that_closes_it(encoder):
    encoded = encoder.encode(Trace.of("What is 2 + 3?", ["2 + 3 = 5.", "So 5."]))
    decode = encoder.tokenizer.decode
    assert decode(encoded.ids.tolist(), skip_special_tokens=False) == (
        "Question:\nWhat is 2 + 3?\nAnswer:\nLet's think step by step.\n<step>2 + 3 = 5.<step>So 5.<step>"
    )
    assert encoded.ids[encoded.ends].tolist() == [encoder.separator] * 2
    assert encoded.ends[-1] == len(encoded) - 1


def test_a_prefix_of_the_trace_is_a_prefix_of_the_tokens(encoder):
    steps = ["2 + 3 = 5.", ["So", " the answer"], "5"]
    whole = encoder.encode(Trace.of("q", steps))
    part = encoder.encode(Trace.of("q", steps[:2]))
    np.testing.assert_array_equal(whole.ids[: whole.ends[2] + 1], part.ids)


def test_a_text_that_spells_the_separator_is_only_text(encoder):
    encoded = encoder.encode(Trace.of("<step> {problem}", ["a <step> b"]))
    assert (encoded.ids == encoder.separator).sum() == 2


def test_digits_are_never_merged(encoder):
    encoded = encoder.encode(Trace.of("q", ["2222"]))
    assert len(set(encoded.ids[encoded.ends[0] - 4 : encoded.ends[0]].tolist())) == 1


def test_any_unicode_text_can_be_encoded(encoder):
    text = "∑ √2 ≠ 三 🙂 \u202e"
    encoded = encoder.encode(Trace.of("q", [text]))
    body = encoded.ids[(encoded.ids == encoder.separator).argmax() + 1 : -1]
    assert encoder.tokenizer.decode(body.tolist()) == text


def test_a_tokenizer_without_the_separator_is_refused():
    with pytest.raises(UserError, match="no token '<sep>'"):
        Encoder(tiny_tokenizer(), PromptTemplate(separator="<sep>"))


def test_a_template_needs_the_problem_once():
    with pytest.raises(UserError, match="does not hold"):
        PromptTemplate.from_dict({"prompt": "Q"})
    with pytest.raises(UserError, match="unknown key 'sep'"):
        PromptTemplate.from_dict({"sep": "x"})
