import json

import pytest

from stepsight.core.formats.recognition import FORMATS, format_of, recognise
from stepsight.core.models.checkpoint import Checkpoint
from tests.checkpoints import (
    LLADA_CONFIG,
    MATH_SHEPHERD,
    QWEN_PRM,
    REASONEVAL_7B,
    REASONEVAL_34B,
    TOKEN_CLASSIFIERS,
)
from tests.messages import refused

LLAMA = {"model_type": "llama", "architectures": ["LlamaForTokenClassification"]}


def found(tmp_path, config, card=None):
    checkpoint = Checkpoint(tmp_path, config, card or {})
    return format_of(checkpoint, recognise(checkpoint))


@pytest.mark.parametrize(
    ("config", "card", "expected"),
    [
        (REASONEVAL_7B, {}, "reasoneval"),
        (REASONEVAL_34B, {"template": {"read": "last"}}, "reasoneval"),
        (QWEN_PRM, {}, "qwen-prm"),
        (TOKEN_CLASSIFIERS["bert"], {"labels": ["wrong", "right"]}, "token-classification"),
        (MATH_SHEPHERD, {"format": "math-shepherd"}, "math-shepherd"),
        (LLADA_CONFIG, {}, "llada"),
        (LLADA_CONFIG, {"format": "stepsight"}, "llada"),
        # What stepsight train writes names Transformers' class too.
        (LLAMA, {"format": "stepsight"}, "stepsight"),
        ({"model_type": "llama"}, {"template": {}}, "stepsight"),
    ],
)
def test_each_layout_is_known_by_its_config_or_its_card(tmp_path, config, card, expected):
    assert found(tmp_path, config, card) == expected


@pytest.mark.parametrize("name", ["mistral", "math-shepherd", "models--nobody--VersaPRM/snapshots/0a1b"])
def test_a_name_that_only_resembles_a_listed_one_is_not_taken_for_it(tmp_path, name):
    with refused():
        found(tmp_path / name, MATH_SHEPHERD)


def test_a_classifier_of_whole_texts_is_refused_as_such(tmp_path):
    with refused():
        found(tmp_path, {"model_type": "qwen3", "architectures": ["Qwen3ForSequenceClassification"]})


def test_a_format_of_no_name_is_refused(tmp_path):
    with refused():
        found(tmp_path, REASONEVAL_7B, {"format": "prm"})
    with refused():
        found(tmp_path, REASONEVAL_7B, {"format": ["reasoneval"]})


def test_every_layout_has_a_docstring_with_its_genuine_config_and_a_name_of_its_own():
    assert len({kind.NAME for kind in FORMATS}) == len(FORMATS)
    for kind in FORMATS:
        assert json.dumps("architectures") in kind.__doc__ or kind.NAME == "stepsight"
