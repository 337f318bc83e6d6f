import numpy as np
import pytest

from stepsight.core.prompts.encoding import Encoder
from stepsight.core.prompts.template import PromptTemplate, Read, Separator
from stepsight.core.trace import Trace
from tests.checkpoints import tiny_tokenizer
from tests.messages import refused
from tests.vocabularies import wordpiece


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
    with refused():
        Encoder(tiny_tokenizer(), PromptTemplate(separator="<sep>"))


def read_by(**values):
    """The tokens of a trace of two steps, with those read in brackets."""
    encoder = Encoder(tiny_tokenizer(), PromptTemplate(prompt="{problem}", **values))
    encoded = encoder.encode(Trace.of("q", ["12", "3"]))
    texts = [encoder.tokenizer.decode([token], skip_special_tokens=False) for token in encoded.ids]
    return " ".join(f"[{text}]" if place in encoded.reads else text for place, text in enumerate(texts))


def test_steps_are_read_at_the_templates_positions():
    assert read_by() == "q <step> 1 2 [<step>] 3 [<step>]"
    assert read_by(opening=False) == "q 1 2 [<step>] 3 [<step>]"
    assert read_by(opening=False, between="+") == "q 1 2 [<step>] + 3 [<step>]"
    assert read_by(read=Read.LAST) == "q 1 [2] [3]"
    assert read_by(read=Read.SECOND_TO_LAST) == "q [1] [2] 3"
    assert read_by(read=Read.LAST, separator="") == "q 1 [2] [3]"
    assert read_by(opening=False, separator="9;", separator_is=Separator.TEXT) == "q 1 2 9 [;] 3 9 [;]"
    assert read_by(opening=False, separator="<step>", separator_is=Separator.TEXT) == "q 1 2 [<step>] 3 [<step>]"


def test_prefixes_end_with_their_step_wherever_it_is_read():
    for read in Read:
        encoder = Encoder(tiny_tokenizer(), PromptTemplate(prompt="{problem}", opening=False, read=read))
        whole = encoder.encode(Trace.of("q", ["12", "34", "5"]))
        part = encoder.encode(Trace.of("q", ["12", "34"]))
        np.testing.assert_array_equal(whole.ids[: whole.ends[1] + 1], part.ids)
        np.testing.assert_array_equal(whole.reads[:2], part.reads)
        assert (whole.ends - whole.reads).tolist() == [int(read == Read.SECOND_TO_LAST)] * 3


def test_a_template_s_own_text_may_spell_tokens_and_a_trace_may_not():
    encoder = Encoder(tiny_tokenizer(), PromptTemplate(prompt="a<step>{problem}", joined=True))
    encoded = encoder.encode(Trace.of("<step>", ["b"]))
    # One in the prompt, one after it, one after the step.
    assert (encoded.ids == encoder.separator).sum() == 3


def test_a_separator_that_leaves_no_token_is_refused():
    with refused():
        Encoder(wordpiece(), PromptTemplate(separator=" ", separator_is=Separator.TEXT))
