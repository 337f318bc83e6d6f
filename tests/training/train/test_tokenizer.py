import re

import pytest
import torch
from torch.nn.functional import cosine_similarity

from stepsight.training.synth.corpus import generate
from stepsight.training.train.init import PAD, SEPARATOR, shape_numbers, train_tokenizer


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


@pytest.fixture(scope="module")
def grouped():
    return train_tokenizer(corpus(), 1700, "groups")


def test_every_group_of_up_to_three_digits_can_be_a_token(grouped):
    assert grouped.get_vocab_size() == 1700
    for text, expected in {
        "7": ["7"], "05": ["05"], "312": ["312"], "1024": ["1", "024"], "1234567": ["1", "234", "567"],
        "3.05": ["3", ".", "05"],
    }.items():  # fmt: skip
        assert tokens(grouped, text) == expected
    # A space before a number goes with the word or sign before it, so that a sum of two takes five tokens.
    assert tokens(grouped, "12 + 345 = 357") == ["12", "Ġ+Ġ", "345", "Ġ=Ġ", "357"]
    merged = [
        token for token in grouped.get_vocab() if re.search("[0-9]", token) and not re.fullmatch("[0-9]+", token)
    ]
    assert merged == []


@pytest.mark.parametrize("text", ["2 + 3 = 5.", " 12 \n\n 1,000,000", "½ ٣ 007", "x1 y22", "1 234  5"])
def test_text_with_groups_comes_back(grouped, text):
    assert grouped.decode(grouped.encode(text).ids, skip_special_tokens=False) == text


def test_the_embeddings_of_numbers_begin_as_features_of_their_values(grouped):
    embedding = torch.randn(1700, 256, generator=torch.Generator().manual_seed(1)) * 0.02
    before = embedding.clone()
    torch.manual_seed(3)
    shape_numbers(embedding, grouped)
    changed = {grouped.id_to_token(int(row)) for row in (embedding != before).any(1).nonzero()}
    assert changed == {token for token in grouped.get_vocab() if re.fullmatch("[0-9]+", token)}
    of = {number: embedding[grouped.token_to_id(str(number))] for number in range(1000)}
    # What ends alike, or is near, is more alike than what is neither.
    for number, alike, near, other in ((312, 412, 313, 747), (45, 55, 46, 918)):
        unlike = cosine_similarity(of[number], of[other], 0)
        assert cosine_similarity(of[number], of[alike], 0) > unlike + 0.1
        assert cosine_similarity(of[number], of[near], 0) > unlike + 0.1


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
