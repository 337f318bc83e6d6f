import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from stepsight.core.prompts.encoding import Encoder, Pieces
from stepsight.core.prompts.template import PromptTemplate, Read, Separator
from stepsight.core.prompts.vocabulary import Vocabulary
from stepsight.core.trace import Trace
from tests.cases import each
from tests.checkpoints import tiny_tokenizer
from tests.messages import refused
from tests.vocabularies import byte_level, sentencepiece, wordpiece


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


TEXTS = ["a b", " b c", "\nStep 2: x", "Щ é", "5"]


def spaced():
    """A byte-level tokenizer that puts a space before each text."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({character: number for number, character in enumerate(alphabet)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    return tokenizer


@pytest.mark.parametrize("make", [sentencepiece, lambda: sentencepiece(metaspace=True), spaced])
def test_a_continuing_piece_has_the_tokens_of_one_text(make):
    tokenizer = make()
    pieces = Pieces(Vocabulary(tokenizer))
    first = pieces.encode(["Q."], [False])[0]
    for text in TEXTS:
        whole = tokenizer.encode("Q." + text, add_special_tokens=False).ids
        assert first + pieces.encode([text], [True])[0] == whole


@pytest.mark.parametrize("make", [sentencepiece, lambda: sentencepiece(metaspace=True), spaced])
def test_a_beginning_piece_has_its_mark(make):
    tokenizer = make()
    begins, goes_on = Pieces(Vocabulary(tokenizer)).encode(["x", "x"], [False, True])
    assert begins == tokenizer.encode("x", add_special_tokens=False).ids
    assert len(begins) == len(goes_on) + 1


def test_one_mark_for_the_whole_is_distinguished_from_one_for_each_stretch():
    assert Vocabulary(sentencepiece(metaspace=True)).marks_once()
    assert not Vocabulary(sentencepiece()).marks_once()
    assert not Vocabulary(byte_level()).marks_once()


def test_places_are_kept():
    tokenizer = sentencepiece()
    mixed = Pieces(Vocabulary(tokenizer)).encode(["a", "b", "c"], [True, False, True])
    assert [tokenizer.decode(ids).strip() for ids in mixed] == ["a", "b", "c"]
    assert Pieces(Vocabulary(tokenizer)).encode([], []) == []


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
