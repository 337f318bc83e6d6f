"""The classes of a classifier as neg, neu and pos, by the words of its config or of stepsight.json."""

from collections.abc import Mapping, Sequence
from typing import Any

from stepsight.core.errors import UserError
from stepsight.core.label import Label
from stepsight.core.models.model import Rows

_WORDS = {
    Label.NEG: ("neg", "negative", "wrong", "incorrect", "bad", "invalid", "error", "false", "no", "-"),
    Label.NEU: ("neu", "neutral", "redundant", "ok", "okay"),
    Label.POS: ("pos", "positive", "right", "correct", "good", "valid", "true", "yes", "+"),
}
_MEANING = {word: label for label, words in _WORDS.items() for word in words}
# A number means something only beside the others: 0 is wrong beside 1, and neutral between -1 and 1.
_SCALES: dict[frozenset[int], dict[int, Label]] = {
    frozenset(scale): scale
    for scale in (
        {0: Label.NEG, 1: Label.POS},
        {-1: Label.NEG, 1: Label.POS},
        {-1: Label.NEG, 0: Label.NEU, 1: Label.POS},
        {0: Label.NEG, 1: Label.NEU, 2: Label.POS},
    )
}
_HINT = 'Say in stepsight.json what each class is, in their order, such as {"labels": ["neg", "pos"]}.'


def class_words(config: Mapping[str, Any]) -> list[str]:
    """The words of a config.json for its classes, by number: `id2label`, else `label2id`, else LABEL_0, LABEL_1, …

    Raises `UserError` where they are not numbered from 0.
    """
    names, numbers = config.get("id2label"), config.get("label2id")
    try:
        if isinstance(names, dict):
            words = {int(number): str(word) for number, word in names.items()}
        elif isinstance(numbers, dict):
            words = {int(number): str(word) for word, number in numbers.items()}
        else:
            # Transformers' own default.
            words = {number: f"LABEL_{number}" for number in range(min(int(config.get("num_labels", 2)), 100))}
    except (TypeError, ValueError):
        words = {}
    if not words or sorted(words) != list(range(len(words))):
        raise UserError("config.json: id2label does not number its classes from 0.", "Copy it again.")
    return [words[number] for number in range(len(words))]


def class_rows(words: Sequence[object]) -> Rows:
    """The class of each of neg, neu and pos.

    `words` are one per class: LABEL_0, neg, wrong, 0, -, good and the like. Raises `UserError` where they leave
    open which class is which, or are not two or three.
    """
    listed = ", ".join(repr(word) for word in words)
    if len(words) not in (2, 3):
        raise UserError(f"there are {len(words)} classes ({listed:.200}), expected two or three.")
    labels = _labels([str(word).strip().casefold().removeprefix("label_") for word in words])
    expected = {Label.NEG, Label.POS} if len(words) == 2 else set(Label)
    if set(labels) != expected:
        raise UserError(f"it is not clear which class is which: {listed:.200}.", _HINT)
    rows = {label: number for number, label in enumerate(labels)}
    return rows[Label.NEG], rows.get(Label.NEU), rows[Label.POS]


def _labels(words: Sequence[str]) -> list[Label | None]:
    try:
        numbers = [int(word) for word in words]
    except ValueError:
        return [_MEANING.get(word) for word in words]
    scale = _SCALES.get(frozenset(numbers), {})
    return [scale.get(number) for number in numbers]
