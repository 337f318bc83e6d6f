"""A verdict: the words with which a check says that it holds or fails."""

import random

_PAIRS = (
    ("as stated", "not {c}"),
    ("which agrees", "which is not {c}"),
    ("so {c} is right", "so {c} is wrong"),
    ("the same as above", "but above it is {c}"),
    ("matching {c}", "which does not match {c}"),
    ("as needed", "not {c} as stated"),
    ("so it holds", "so {c} cannot be right"),
    ("against {c} above", "against {c} above"),
)
_RETURNS = (
    ("as it should be", "not {c}"),
    ("which gives back {c}", "which does not give back {c}"),
    ("as needed", "but {c} is needed"),
    ("so it holds", "not {c}, so it is wrong"),
    ("where we need {c}", "where we need {c}"),
    ("the {c} we started from", "not the {c} we started from"),
)
_OPENERS = (
    "Check: ",
    "Check: ",
    "To check, ",
    "Wait, let me check: ",
    "Looking back, ",
    "Verify: ",
    "Let me double-check: ",
    "Now test it: ",
)


def verdict(found: int, stated: int, rng: random.Random) -> str:
    """What a check that found one number says of the one stated earlier."""
    return rng.choice(_PAIRS)[found != stated].format(c=stated)


def returns(found: int, needed: int, rng: random.Random) -> str:
    """What an inverse operation says: it gives back the number it started from, or it does not."""
    return rng.choice(_RETURNS)[found != needed].format(c=needed)


def opener(rng: random.Random) -> str:
    """The first words of a check, the same whether it passes or fails."""
    return rng.choice(_OPENERS)
