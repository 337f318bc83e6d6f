"""Transforms that break an argument. Their changes are wrong by rule, and no calculation proves it."""

import random
import re
from collections.abc import Sequence

from stepsight.core.label import Label
from stepsight.core.text.sentences import sentences
from stepsight.core.trace import Trace
from stepsight.training.stress.variant import (
    Demand,
    Transform,
    Variant,
    edited,
    inserted,
    numbering,
    quoted,
    spliced,
    with_steps,
)

_RELATION = re.compile(r"(?<=[\w)} ])(<=|>=|<|>|≤|≥|\\leq?(?![a-z])|\\geq?(?![a-z]))(?=[\w\\( -])")
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "≤": "≥", "≥": "≤"} | {
    "\\le": "\\ge", "\\ge": "\\le", "\\leq": "\\geq", "\\geq": "\\leq",
}  # fmt: skip
_ANSWER = re.compile(
    r"(\\boxed\{\s*|answer(?: is|:)\s*\$?\s*|####\s*\$?\s*)(-?\d+(?:\.\d+)?)(?![\w.,]*\d)", re.IGNORECASE
)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?!\w)")
# Digits that are in every text say nothing of where a condition is used.
_COMMON = {"0", "1", "2"}


def _right_places(trace: Trace) -> list[int]:
    """Return the places of the steps before the first one that gold calls wrong."""
    wrong = [place for place, step in enumerate(trace.steps) if step.label == Label.NEG or step.valid is False]
    return list(range(wrong[0] if wrong else len(trace.steps)))


def _turn_inequality(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    matches = [
        (place, match) for place in _right_places(trace) for match in _RELATION.finditer(trace.substeps[place])
    ]
    if not matches:
        return None
    place, match = rng.choice(matches)
    text = spliced(trace.substeps[place], *match.span(1), _TURNED[match[1]])
    said = f"Step {place + 1}: {quoted(match[1])} became {quoted(_TURNED[match[1]])}."
    return edited(trace, {place: text}, said, demand=Demand.CHANGE)


def _change_answer(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    place = len(trace.substeps) - 1
    matches = list(_ANSWER.finditer(trace.substeps[place]))
    if not matches or place not in _right_places(trace):
        return None
    match = matches[-1]
    number = int(match[2].replace(".", "").lstrip("-"))
    scaled = number + rng.choice([1, 2, 5, 10])
    places = len(match[2].partition(".")[2])
    other = f"{scaled / 10**places:.{places}f}" if places else str(scaled)
    text = spliced(trace.substeps[place], *match.span(2), other)
    said = f"The answer in step {place + 1}, {match[2]}, became {other}."
    return edited(trace, {place: text}, said, demand=Demand.CHANGE)


def _put_in_foreign(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    donors = [(other, text) for other in others for text in other.substeps[:-1] if _NUMBER.search(text)]
    places = [place for place in _right_places(trace) if place]
    if not donors or not places:
        return None
    _, text = rng.choice(donors)
    text = text[len(numbering(text)) :]
    place = rng.choice(places)
    return inserted(
        trace, place, text, f"A step of another problem was put in as step {place + 1}: {quoted(text)}."
    )


def _drop_condition(trace: Trace, rng: random.Random, others: Sequence[Trace]) -> Variant | None:
    """Drop a sentence of the problem that alone states a number, and demand that the first step that uses the
    number is no longer valid."""
    said_of = sentences(trace.problem)
    found = []
    for i, sentence in enumerate(said_of):
        if sentence.rstrip().endswith("?") or len(said_of) < 2:
            continue
        rest = " ".join(other for j, other in enumerate(said_of) if j != i)
        alone = set(_NUMBER.findall(sentence)) - set(_NUMBER.findall(rest)) - _COMMON
        used = [place for place in _right_places(trace) if alone & set(_NUMBER.findall(trace.substeps[place]))]
        if used:
            found.append((rest, sentence, used[0]))
    if not found:
        return None
    rest, sentence, place = rng.choice(found)
    changed = with_steps(trace, {}, problem=rest)
    said = f"The problem no longer says {quoted(sentence)}, which step {place + 1} uses."
    return Variant(changed, tuple(range(len(trace.substeps))), (place,), said)


TRANSFORMS = [
    Transform(
        "inequality-turned", Demand.CHANGE, "An inequality sign of a right step is turned round.", _turn_inequality
    ),
    Transform(
        "answer-changed",
        Demand.CHANGE,
        "The number that the last step gives as the answer is changed.",
        _change_answer,
    ),
    Transform("foreign-step", Demand.CHANGE, "A step of another problem is put in.", _put_in_foreign),
    Transform(
        "condition-dropped",
        Demand.CHANGE,
        "A sentence that alone states a number is dropped from the problem; the first step that uses the number is"
        " left without a reason.",
        _drop_condition,
    ),
]
