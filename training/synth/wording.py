"""Step templates for any calculation, and the sentences of checks.

Placeholders are {eq}, the equation `formula = result`; {what} and {What}, the name of its result; {res}, the
result; {weq} and {wres}, the equation and the result preceded by "name = " in a formula; and {box}, the answer.
"""

import random
import re

SAYS = (
    "{What} is {eq}.",
    "{What}: {eq}.",
    "{eq}, so {what} is {res}.",
    "Next, {what}: {eq}.",
    "Compute {what}: {eq}.",
    "{eq} gives {what}.",
    "We get {what} from {eq}.",
    "Then {what} is {eq}.",
    "Now we find {what}: {eq}.",
    "{What} equals {eq}.",
    "We calculate {what} as {eq}.",
    "So {what} is {eq}.",
    "To find {what}, we compute {eq}.",
    "For {what} we have {eq}.",
    "This means that {what} is {eq}.",
    "Since {eq}, {what} is {res}.",
    "{What} comes out as {eq}.",
    "That makes {what} {eq}.",
)
# For a result without a calculation.
BARES = (
    "{What} is {res}.",
    "So {what} is {res}.",
    "{What}: {res}.",
    "For {what} we have {res}.",
    "This means that {what} is {res}.",
    "Then {what} is {res}.",
    "Next, {what}: {res}.",
    "As {what} we take {res}.",
)
JUMPS = (
    "{What} comes to {res}.",
    "In one go, {what} is {res}.",
    "Working it out, {what} is {res}.",
    "{What} works out as {res}.",
    "A short calculation shows that {what} is {res}.",
    "Then {what} must be {res}.",
)
READS = (
    "Read off: {v} {noun}.",
    "The problem gives {v} {noun}.",
    "Given: {v} {noun}.",
    "From the problem: {v} {noun}.",
    "We are told: {v} {noun}.",
    "We know from the text: {v} {noun}.",
    "According to the problem: {v} {noun}.",
)
ANSWERS = (
    "The answer is {box}.",
    "So the answer is {box}.",
    "Answer: {box}.",
    "Hence {what} is {box}.",
    "Therefore, {box}.",
    "The final answer is {box}.",
    "Therefore, {what} is {box}.",
    "Thus, {what} is {box}.",
    "We conclude that {what} is {box}.",
    "# Answer\n\n{box}",
)
ASKS = (
    "We are asked for {what}.",
    "The question is about {what}.",
    "We want to find {what}.",
    "Let us find {what}.",
    "Our goal is {what}.",
    "The problem asks for {what}.",
    "We need {what} in the end.",
)
RECALLS = (
    "As found, {what} is {res}.",
    "Recall that {what} is {res}.",
    "To repeat, {what} is {res}.",
    "As we have seen, {what} is {res}.",
    "So far we know that {what} is {res}.",
    "Again, {what} is {res}.",
    "We have already found that {what} is {res}.",
)
REPEATS = (
    "The problem says {v} {noun}.",
    "Note that we have {v} {noun}.",
    "As given, {v} {noun}.",
    "Remember: {v} {noun}.",
)
DETOURS = (
    "{there}, and {back} again.",
    "{there}; then {back}.",
    "Adding and taking away changes nothing: {there} and {back}.",
    "First {there}, then back: {back}.",
)
ASIDES = (
    "By the way, {eq}.",
    "As an aside, {eq}.",
    "It is also true that {eq}.",
    "Incidentally, {eq}.",
    "One may also note that {eq}.",
    "For interest only: {eq}.",
)
PARITIES = (
    "Note that {v} is {parity}.",
    "The number {v} is {parity}.",
    "By the way, {v} is {parity}.",
    "Observe that {v} is an {parity} number.",
)
OUTLINES = (
    "First we find {first}, then {what}.",
    "From {first} we shall get {what}.",
    "Start with {first}; {what} follows.",
    "We find {first} first and then {what}.",
    "To get {what}, we begin with {first}.",
    "The plan: {first}, and then {what}.",
)

# Of each pair, the first is for a check that passes, the second for one that fails.
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
# The words after which the result may stand alone.
_TERSE = re.compile(
    r"(?:\b(?:is|are|be|gives|get|has|have|equals|remain|remains|makes|leaves|takes|so|then)|[,:]) \{w?eq\}"
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


def terse(template: str) -> str:
    """Return the template with the equation replaced by its result, if the sentence allows that."""
    if "{res}" in template or "{wres}" in template or not _TERSE.search(template):
        return template
    return template.replace("eq}", "res}")


def verdict(result: object, stated: object, rng: random.Random, shown: str = "") -> str:
    """Return the part of a check that compares its own result with the value stated earlier. `shown` is the stated
    value as it is written."""
    return rng.choice(_PAIRS)[result != stated].replace("{c}", shown or str(stated))


def returns(result: object, needed: object, rng: random.Random, shown: str = "") -> str:
    """Return words that say whether an inverse operation gives back the number that it started from."""
    return rng.choice(_RETURNS)[result != needed].replace("{c}", shown or str(needed))


def leads_back(result: object, needed: object, rng: random.Random, shown: str = "") -> str:
    """Return words that say whether calculating backwards from the answer gives the number in the problem."""
    return rng.choice(_BACK)[result != needed].replace("{c}", shown or str(needed))


def meets(result: str, needed: str, rng: random.Random) -> str:
    """Return words that compare two results that must agree, such as the two sides of an equation."""
    return rng.choice(_SIDES)[result != needed].replace("{a}", result).replace("{c}", needed)


def breaks(rng: random.Random) -> str:
    """Return words that say that a division leaves a remainder when calculating backwards."""
    return rng.choice(_BROKEN)


def bounded(holds: bool, rng: random.Random) -> str:
    """Return words that say whether a result keeps within a bound."""
    return rng.choice(_BOUNDS)[not holds]


def opener(rng: random.Random) -> str:
    """Return the first words of a check. They do not depend on whether the check passes."""
    return rng.choice(_OPENERS)
