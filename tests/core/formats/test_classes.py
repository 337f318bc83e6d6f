import pytest

from stepsight.core.formats.token_classification import class_rows, class_words
from tests.cases import each
from tests.messages import refused


@each(
    "words, rows",
    [
        (["LABEL_0", "LABEL_1"], (0, None, 1)),
        (["0", "1"], (0, None, 1)),
        (["1", "-1"], (1, None, 0)),
        (["wrong", "right"], (0, None, 1)),
        (["Good", " BAD "], (1, None, 0)),
        (["+", "-"], (1, None, 0)),
        (["False", "True"], (0, None, 1)),
        (["LABEL_0", "LABEL_1", "LABEL_2"], (0, 1, 2)),
        (["-1", "0", "1"], (0, 1, 2)),
        (["+1", "0", "-1"], (2, 1, 0)),
        (["pos", "neg", "neu"], (1, 2, 0)),
        (["Negative", "Neutral", "Positive"], (0, 1, 2)),
        (["redundant", "correct", "incorrect"], (2, 0, 1)),
        (["LABEL_0"], (None, None, 0)),
    ],
)
def test_words_that_are_known(words, rows):
    assert class_rows(words) == rows


@pytest.mark.parametrize(
    "words",
    [
        ["B-PER", "I-PER"],
        ["good", "right"],
        ["neu", "pos"],
        ["2", "1"],
        ["0", "2", "1", "3"],
        [],
        ["0", "good"],
        ["-1", "-1"],
    ],
)
def test_words_that_are_refused(words):
    with refused():
        class_rows(words)


def test_words_come_by_number_from_either_map():
    assert class_words({"id2label": {"1": "b", "0": "a"}, "label2id": {"x": 0}}) == ["a", "b"]
    assert class_words({"label2id": {"b": 1, "a": 0}}) == ["a", "b"]
    assert class_words({"num_labels": 3}) == ["LABEL_0", "LABEL_1", "LABEL_2"]
    assert class_words({}) == ["LABEL_0", "LABEL_1"]


@pytest.mark.parametrize(
    "config", [{"id2label": {"1": "a", "2": "b"}}, {"id2label": {"x": "a"}}, {"num_labels": "z"}]
)
def test_numbers_that_make_no_sense_are_refused(config):
    with refused():
        class_words(config)
