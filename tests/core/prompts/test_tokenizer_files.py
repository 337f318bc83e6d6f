"""A tokenizer.model is converted here, and a tokenizer.json that contradicts it is refused."""

import json
import random
from contextlib import suppress

import numpy as np
import pytest

from stepsight.core.errors import UserError
from stepsight.core.evaluators.loading import load_evaluator
from stepsight.core.prompts.tokenizer_files import SentencePiece, TokenizerFiles
from stepsight.core.scoring.scorer import Scorer
from tests import vocabularies
from tests.checkpoints import write_math_shepherd
from tests.core.formats.by_hand import TRACES
from tests.messages import refused

TEXTS = [*vocabularies.TEXTS, "a  b", "  x", "é ки\n\n   z", "", " ", "<s>a", "Step 1: 12.5 ки"]


def ids(tokenizer, text):
    return tokenizer.encode(text).ids


@pytest.fixture
def folder(tmp_path):
    vocabularies.write_sentencepiece(tmp_path / "tokenizer.model", vocabularies.sentencepiece())
    return tmp_path


@pytest.mark.parametrize("legacy", [None, True, False])
def test_the_converted_tokenizer_gives_the_tokens_of_its_model(folder, legacy):
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": {"content": "<s>"}, "legacy": legacy}))
    expected = vocabularies.sentencepiece(metaspace=legacy is False)
    converted = TokenizerFiles(folder).load()
    assert [ids(converted, text) for text in TEXTS] == [ids(expected, text) for text in TEXTS]


def test_a_model_without_a_space_before_a_text_is_read_so(folder):
    (folder / "tokenizer_config.json").write_text(json.dumps({"add_prefix_space": False, "add_bos_token": False}))
    assert TokenizerFiles(folder).load().encode("What is").tokens[0][0] == "W"


def test_an_evaluator_with_a_tokenizer_model_alone_scores_as_with_its_tokenizer_json(tmp_path):
    folder = tmp_path / "math-shepherd-mistral-7b-prm"
    write_math_shepherd(folder)
    expected = [one.offline.probs for one in Scorer(load_evaluator(folder)).score(TRACES, "offline")]
    places = vocabularies.MISTRAL_IDS
    vocabularies.write_sentencepiece(folder / "tokenizer.model", vocabularies.sentencepiece(places=places))
    (folder / "tokenizer.json").unlink()
    found = [one.offline.probs for one in Scorer(load_evaluator(folder)).score(TRACES, "offline")]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


def _without_mark(parts):
    parts["normalizer"]["normalizers"].pop(0)


def _spaces_apart(parts):
    parts["model"]["merges"].remove(["▁", "▁"])


@pytest.mark.parametrize("damage", [_without_mark, _spaces_apart])
def test_a_tokenizer_json_that_writes_spaces_otherwise_than_its_model_is_refused(folder, damage):
    parts = json.loads(vocabularies.sentencepiece().to_str())
    (folder / "tokenizer.json").write_text(json.dumps(parts))
    TokenizerFiles(folder).load()
    damage(parts)
    (folder / "tokenizer.json").write_text(json.dumps(parts))
    with refused():
        TokenizerFiles(folder).load()


@pytest.mark.parametrize("damage", [None, _without_mark, "spaces"])
def test_the_spaces_of_llamas_vocabulary_are_known_without_its_model(tmp_path, damage):
    """Its first run of spaces has the id 259, and merges after everything else."""
    parts = json.loads(vocabularies.sentencepiece(texts=[*vocabularies.TEXTS, "a a a a"]).to_str())
    vocabulary, merges = parts["model"]["vocab"], parts["model"]["merges"]
    other = next(token for token, number in vocabulary.items() if number == 259)
    vocabulary["▁▁"], vocabulary[other] = 259, vocabulary["▁▁"]
    if damage != "spaces":
        merges.append(merges.pop(0))
        if damage:
            damage(parts)
    (tmp_path / "tokenizer.json").write_text(json.dumps(parts))
    if damage is None:
        TokenizerFiles(tmp_path).load()
        return
    with refused():
        TokenizerFiles(tmp_path).load()


def test_a_unigram_model_is_refused(folder):
    model = (folder / "tokenizer.model").read_bytes()
    # The type of the model, of its trainer: 2 is BPE, 1 Unigram.
    (folder / "tokenizer.model").write_bytes(model.replace(b"\x18\x02\x98\x02\x01", b"\x18\x01\x98\x02\x01"))
    with refused():
        TokenizerFiles(folder).load()


def test_damaged_models_are_read_or_refused(folder):
    path, draw = folder / "tokenizer.model", random.Random(0)
    whole = path.read_bytes()
    for _ in range(50):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 3)):
            place = draw.randrange(len(data))
            data[place : place + draw.randint(0, 20)] = draw.randbytes(draw.randint(0, 5))
        path.write_bytes(data)
        with suppress(UserError):
            assert SentencePiece.read(path).pieces


def test_tokens_that_only_other_files_name_are_added_under_their_ids(tmp_path):
    tokenizer = vocabularies.byte_level(added=())
    size = tokenizer.get_vocab_size()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "config.json").write_text(json.dumps({"vocab_size": size + 4}))
    (tmp_path / "added_tokens.json").write_text(json.dumps({"<extra_0>": size + 2, "<far>": size + 4}))
    settings = {"added_tokens_decoder": {str(size): {"content": "<pad>", "special": True}}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    found = TokenizerFiles(tmp_path).load()
    assert found.encode("a<extra_0><pad>", add_special_tokens=False).ids[1:] == [size + 2, size]
    # Those of tokenizer.json keep theirs, behind the vocabulary.
    assert found.encode("<|im_start|><|im_end|>", add_special_tokens=False).ids == [size - 2, size - 1]
    # The weights have no row for it.
    assert found.token_to_id("<far>") is None
