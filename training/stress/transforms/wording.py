"""Transforms that change words or the order of steps but not the mathematics."""

import random
import re
from collections.abc import Sequence

from stepsight.core.text.signs import plain
from stepsight.core.trace import Trace
from stepsight.training.stress.proof import is_unharmed
from stepsight.training.stress.variant import (
    Demand,
    Transform,
    Variant,
    edited,
    numbering,
    quoted,
    with_steps,
)

_CONFIDENT = (
    "Clearly, ",
    "It is obvious that ",
    "Without any doubt, ",
    "As everyone knows, ",
    "We can be certain that ",
)
# Words that lose their capital within a sentence.
_OPENING = re.compile(
    r"(?:The|Then|Therefore|Thus|This|That|These|There|They|So|Since|We|With|When|Which|It|In|If|Is|Hence|He|She|His"
    r"|Her|Now|Next|For|From|By|Because|But|Both|And|As|At|After|All|Also|Another|Any|Each|Every|Our|On|One|Or|To"
    r"|Two|Using|Add|Subtract|Multiply|Divide|Solve|Simplify|Adding|Subtracting|Multiplying|Dividing|Solving|Let"
    r"|First|Second|Finally|Together|Twice|Half|A|An)\b"
)
_FILLERS = (
    "This brings us closer to the answer.",
    "Let us keep this in mind.",
    "This will be useful in what follows.",
    "We go on carefully.",
)
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_VARIABLE = re.compile(r"(?<![A-Za-z\\'])[b-zB-HJ-Z](?![A-Za-z'])")
# A word that points at what stands before.
_POINTS_BACK = re.compile(
    r"\b(?:so|thus|hence|therefore|then|this|that|these|those|it|now|next|finally|also|again|since|similarly|likewise"
    r"|substitut\w*|plug\w*|result\w*|above|previous\w*|same|other|another|both|total|answer|step|remaining|left)\b",
    re.IGNORECASE,
)


def _sound_confident(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    heads = list(map(numbering, trace.substeps))
    bodies = [text[len(head) :] for head, text in zip(heads, trace.substeps, strict=True)]
    places = [place for place, body in enumerate(bodies) if body[:1].isalpha()]
    if not places:
        return None
    place, words = rng.choice(places), rng.choice(_CONFIDENT)
    body = bodies[place]
    # A name, a variable or a formula keeps its capital.
    lowered = body[0].lower() + body[1:] if _OPENING.match(body) else body
    said = f"Step {place + 1} begins with {quoted(words.strip())}."
    return edited(trace, {place: heads[place] + words + lowered}, said, demand=Demand.STAY)


def _add_filler(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    # What stands behind the answer would be more than filler.
    places = [place for place, text in enumerate(trace.substeps[:-1]) if text.rstrip()[-1:] in ".!"]
    if not places:
        return None
    place, filler = rng.choice(places), rng.choice(_FILLERS)
    text = f"{trace.substeps[place].rstrip()} {filler}"
    return edited(trace, {place: text}, f"Step {place + 1} ends with {quoted(filler)}.", demand=Demand.STAY)


def _exchange(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    """Exchange two neighbouring steps that do not depend on each other."""
    places = [place for place in range(len(trace.substeps) - 2) if _are_independent(trace, place)]
    if not places:
        return None
    place = rng.choice(places)
    first, second = trace.substeps[place], trace.substeps[place + 1]
    after = with_steps(trace, {place: second, place + 1: first})
    if not is_unharmed(trace, after):
        return None
    origins = list(range(len(trace.substeps)))
    origins[place], origins[place + 1] = place + 1, place
    return Variant(after, tuple(origins), (), f"Steps {place + 1} and {place + 2} have changed places.")


def _are_independent(trace: Trace, place: int) -> bool:
    """True if the step at `place` and the next one can be exchanged: neither is numbered, both contain numbers, the
    second does not refer back, and it uses no number or variable that the first one introduces."""
    first, second = map(plain, trace.substeps[place : place + 2])
    known = plain(" ".join([trace.problem, *trace.substeps[:place]]))
    if numbering(first) or numbering(second) or _POINTS_BACK.search(second) or _POINTS_BACK.search(first):
        return False
    if not _NUMBER.search(first) or not _NUMBER.search(second) or first == second:
        return False
    return not any(
        (set(pattern.findall(first)) - set(pattern.findall(known))) & set(pattern.findall(second))
        for pattern in (_NUMBER, _VARIABLE)
    )


TRANSFORMS = [
    Transform("confident-words", Demand.STAY, "A step begins with confident words: Clearly, …", _sound_confident),
    Transform("filler", Demand.STAY, "A step ends with a sentence that says nothing.", _add_filler),
    Transform(
        "steps-exchanged",
        Demand.STAY,
        "Two neighbouring steps of which neither needs the other are exchanged.",
        _exchange,
    ),
]
