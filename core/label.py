"""The three labels of a step, in the order that every array and table uses."""

from enum import IntEnum

from stepsight.core.errors import UserError


class Label(IntEnum):
    """The label of a step: neg is wrong, neu is valid but redundant, pos is correct and useful.

    The value of a label is its index in a probability vector. An unlabelled step has `None` instead of a label.
    """

    NEG = 0
    NEU = 1
    POS = 2

    @property
    def text(self) -> str:
        return self.name.lower()


LABEL_NAMES = tuple(label.text for label in Label)


def parse_label(value: object) -> Label | None:
    """Parse the label `"neg"`, `"neu"` or `"pos"`. Returns None for null, which means unlabelled.

    Raises `UserError` for anything else. Integers are refused because 0 is the index of neg but PRM800K's rating
    for neutral.
    """
    if value is None:
        return None
    if isinstance(value, str) and value.lower() in LABEL_NAMES:
        return Label[value.upper()]
    raise UserError(f"label {value!r} found, expected neg, neu, pos or null.", "Ratings -1/0/1 are neg/neu/pos.")
