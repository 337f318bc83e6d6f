import pytest

from stepsight.training.synth.corpus import generate
from stepsight.training.train.init import PAD, SEPARATOR, train_tokenizer


def corpus():
    return [text for trace in generate(0, 60) for text in (trace.problem, *trace.substeps)]


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(corpus(), 400)


def tokens(tokenizer, text):
    return tokenizer.encode(text).tokens


def test_special_tokens_come_first_and_the_vocabulary_is_as_large_as_asked(tokenizer):
    assert [tokenizer.token_to_id(token) for token in (PAD, SEPARATOR)] == [0, 1]
    assert tokenizer.get_vocab_size() == 400


def test_every_digit_is_a_token(tokenizer):
    assert tokens(tokenizer, "1024") == ["1", "0", "2", "4"]
    # No token learnt from a corpus full of numbers holds a digit beside anything else.
    merged = [token for token in tokenizer.get_vocab() if len(token) > 1 and any(c.isdigit() for c in token)]
    assert merged == []


def test_words_are_learnt_with_their_space_and_signs_stand_apart(tokenizer):
    # Ġ stands for the space; "the" is in nearly every trace.
    assert tokens(tokenizer, " the the") == ["Ġthe", "Ġthe"]
    assert all("+" not in token or set(token) <= set("Ġ+") for token in tokens(tokenizer, "x+1 = the+y"))


@pytest.mark.parametrize(
    "text", ["2 + 3 = 5.", "", " \n\n\t ", "∑ √2 ≠ 三 🙂", "e\u0301 \u202e \ufeff", "\\frac{1}{2}", "<pad", "½ ٣"]
)
def test_any_text_comes_back(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text


def test_the_same_texts_give_the_same_tokenizer(tokenizer):
    assert train_tokenizer(corpus(), 400).to_str() == tokenizer.to_str()


def test_a_tokenizer_of_no_text_still_knows_every_byte():
    empty = train_tokenizer([], 1000)
    # 256 bytes and two special tokens; a UTF-8 byte is one token.
    assert empty.get_vocab_size() == 258
    assert len(empty.encode("a三").ids) == 1 + 3
