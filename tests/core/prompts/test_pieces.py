"""Pieces against the same text in one."""

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from stepsight.core.prompts.encoding import Pieces
from stepsight.core.prompts.vocabulary import Vocabulary
from tests.vocabularies import byte_level, sentencepiece

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
