import pytest

from stepsight.core.errors import UserError
from stepsight.core.formats.token_classification import class_rows, class_words
from tests.cases import each


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
    ("words", "message"),
    [
        (["B-PER", "I-PER"], r"not clear which class is which: 'B-PER', 'I-PER'\. Say in stepsight.json"),
        (["good", "right"], "not clear"),
        (["neu", "pos"], "not clear"),
        (["2", "1"], "not clear"),
        (["0", "2", "1", "3"], r"4 classes \('0', '2', '1', '3'\), expected one, two or three"),
        ([], r"0 classes \(\)"),
        (["0", "good"], "not clear"),
        (["-1", "-1"], "not clear"),
    ],
)
def test_words_that_are_refused(words, message):
    with pytest.raises(UserError, match=message):
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
    with pytest.raises(UserError, match=r"config\.json: id2label does not number its classes from 0"):
        class_words(config)
