"""The wording of checks: their first words, and those that say whether a check holds or fails.

In a pair the first is of a check that passes, the second of one that fails.
"""

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
    ("and we had {c}", "but we had {c}"),
    ("so {c} was correct", "so {c} was a mistake"),
    ("just as we wrote", "and we wrote {c}"),
    ("which confirms {c}", "which contradicts {c}"),
    ("in line with {c}", "instead of {c}"),
    ("the value we used", "while we used {c}"),
    ("good", "so there is an error: we wrote {c}"),
    ("equal to {c}", "different from {c}"),
)
_RETURNS = (
    ("as it should be", "not {c}"),
    ("which gives back {c}", "which does not give back {c}"),
    ("as needed", "but {c} is needed"),
    ("so it holds", "not {c}, so it is wrong"),
    ("where we need {c}", "where we need {c}"),
    ("the {c} we started from", "not the {c} we started from"),
    ("and it should be {c}", "and it should be {c}"),
    ("which is right", "which should have been {c}"),
    ("and that fits", "and that does not fit {c}"),
    ("equal to {c}", "different from {c}"),
    ("so we return to {c}", "so we do not return to {c}"),
)
_BACK = (
    ("the {c} we need", "but we need {c}"),
    ("as the problem says", "but the problem says {c}"),
    ("which is right", "and not {c}, a contradiction"),
    ("so the answer holds", "and not {c}, so the answer is wrong"),
    ("to be compared with {c}", "to be compared with {c}"),
    ("and the problem has {c}", "yet the problem has {c}"),
    ("which agrees with the problem", "which contradicts the given {c}"),
    ("just the {c} that was given", "although {c} was given"),
    ("so it checks out", "so it does not check out: {c} was expected"),
)
_SIDES = (
    ("so both sides agree", "so the two sides differ"),
    ("{a} on both sides", "{a} on one side and {c} on the other"),
    ("the two results agree", "but {a} is not {c}"),
    ("the same both times", "so {a} and {c} do not agree"),
    ("so both sides are {a}", "so the sides are {a} and {c}, a contradiction"),
    ("and both are equal", "and both should be equal, but are not"),
)
_BROKEN = (
    "is no whole number, a contradiction",
    "does not come out, so the answer is wrong",
    "is not whole, which cannot be",
    "leaves a remainder, so something is wrong",
    "is not an integer, though it must be",
)
_BOUNDS = (
    ("and it is", "but it is not, so there is a mistake"),
    ("as it is here", "which is not the case"),
    ("and this holds", "and this fails"),
    ("true here", "which is broken, so something is wrong"),
    ("so this is plausible", "so this is impossible"),
    ("and that is so", "and that is not so"),
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
    "Let us verify this. ",
    "As a check, ",
    "Wait, ",
    "Hmm, ",
    "To verify: ",
    "Checking the result, ",
    "Sanity check: ",
    "We can verify: ",
    "",
)


def verdict(result: object, stated: object, rng: random.Random, shown: str = "") -> str:
    """What a check with one result says of the value stated earlier; `shown`: how that one is written."""
    return rng.choice(_PAIRS)[result != stated].replace("{c}", shown or str(stated))


def returns(result: object, needed: object, rng: random.Random, shown: str = "") -> str:
    """What an inverse operation says: it gives back the number it started from, or it does not."""
    return rng.choice(_RETURNS)[result != needed].replace("{c}", shown or str(needed))


def leads_back(result: object, needed: object, rng: random.Random, shown: str = "") -> str:
    """What is said at the end of the way from the answer back to what the problem says."""
    return rng.choice(_BACK)[result != needed].replace("{c}", shown or str(needed))


def meets(result: str, needed: str, rng: random.Random) -> str:
    """What is said where two ways were calculated that must end alike, as the sides of an equation."""
    return rng.choice(_SIDES)[result != needed].replace("{a}", result).replace("{c}", needed)


def breaks(rng: random.Random) -> str:
    """What is said of a division on that way that does not come out whole."""
    return rng.choice(_BROKEN)


def bounded(holds: bool, rng: random.Random) -> str:
    """What is said of a bound that a result must keep."""
    return rng.choice(_BOUNDS)[not holds]


def opener(rng: random.Random) -> str:
    """The first words of a check, the same whether it passes or fails."""
    return rng.choice(_OPENERS)
