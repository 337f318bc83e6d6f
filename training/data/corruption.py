"""Planting errors in correct solutions, to turn an unlabelled solution into a labelled training trace.

`WEIGHTS` gives the relative frequencies of the five kinds of error:

- `number`: a number in one step is replaced
- `operation`: an operator is replaced
- `remove`: a pos step is left out, which makes the step after the gap wrong
- `swap`: two steps with different texts are exchanged, which makes the earlier of the two places wrong
- `repeat`: a step is repeated, and the copy is labelled neu (redundant)

Every other step keeps its text and its label, including the steps after the planted error. If those lost their
labels, most labelled steps late in a trace would be planted errors, and an evaluator would learn that late steps
are wrong. Steps between two exchanged steps do lose their labels, since they may depend on the earlier step.
"""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from stepsight.core.trace import Label, Step, Trace

WEIGHTS = {"number": 4.0, "operation": 2.0, "remove": 1.0, "swap": 1.0, "repeat": 1.5}

_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?|(?<=[a-zA-Z(\[{^_ ])\d+(?:\.\d+)?")
# An operator between two operands, not a minus at the start of a term or a hyphen between words.
_OPERATOR = re.compile(r"(?<=[\w)}\]!])( ?)(\+|-|\*|/|\^|=|\\cdot|\\times|\\div|<|>)( ?)(?=[\w({\[\\$])")
_OTHERS = {
    "+": "-*/", "-": "+*/", "*": "+-/", "/": "+-*", "^": "+-*", "<": ">", ">": "<",
    "\\cdot": "+-", "\\times": "+-", "\\div": "+-",
}  # fmt: skip

Change = Callable[[list[Step], random.Random], list[Step] | None]


def corrupt(trace: Trace, rng: random.Random, weights: dict[str, float] | None = None) -> Trace | None:
    """Return a copy of `trace` with one randomly planted error, or None if the chosen kind of error does not fit
    the trace.

    Every step of `trace` must be valid. `weights` defaults to `WEIGHTS`. The kind of error is stored as
    `corruption` in the trace's meta.
    """
    weights = weights or WEIGHTS
    kind = rng.choices(list(weights), list(weights.values()))[0]
    steps = _CHANGES[kind](list(trace.steps), rng)
    if steps is None:
        return None
    return replace(trace, steps=tuple(steps), meta={**trace.meta, "corruption": kind})


def _number(steps: list[Step], rng: random.Random) -> list[Step] | None:
    def change(text: str) -> str | None:
        matches = list(_NUMBER.finditer(text))
        if not matches:
            return None
        match = rng.choice(matches)
        others = sorted({m[0] for step in steps for m in _NUMBER.finditer(step.text)} - {match[0]})
        other = _other_number(match[0], others, rng)
        return text[: match.start()] + other + text[match.end() :]

    return _in_a_step(steps, change, rng)


def _other_number(number: str, others: Sequence[str], rng: random.Random) -> str:
    """Choose a random replacement for `number`: a nearby number, one with a digit changed, or one of `others`."""
    way = rng.random()
    if way < 0.4 and others:
        return rng.choice(others)
    if way < 0.7 and "." not in number:
        near = int(number) + rng.choice([-3, -2, -1, 1, 2, 3, 10, -10])
        return str(near if near >= 0 else int(number) + 1)
    place = rng.choice([i for i, sign in enumerate(number) if sign != "."])
    digits = "123456789" if place == 0 else "0123456789"
    digit = rng.choice([d for d in digits if d != number[place]])
    return number[:place] + digit + number[place + 1 :]


def _operation(steps: list[Step], rng: random.Random) -> list[Step] | None:
    def change(text: str) -> str | None:
        matches = [match for match in _OPERATOR.finditer(text) if match[2] in _OTHERS]
        # Words have hyphens, and dates and units have slashes: only signs next to a number or in maths count.
        matches = [m for m in matches if _is_maths(text, m)]
        if not matches:
            return None
        match = rng.choice(matches)
        sign = rng.choice(_OTHERS[match[2]])
        return text[: match.start()] + match[1] + sign + match[3] + text[match.end() :]

    return _in_a_step(steps, change, rng)


def _is_maths(text: str, match: re.Match[str]) -> bool:
    around = text[match.start() - 1] + text[match.end()]
    return any(sign.isdigit() for sign in around) or text[: match.start()].count("$") % 2 == 1


def _in_a_step(steps: list[Step], change: Callable[[str], str | None], rng: random.Random) -> list[Step] | None:
    # Like real slips, planted ones are more frequent in steps with more numbers.
    places = [i for i, step in enumerate(steps) for _ in range(1 + len(_NUMBER.findall(step.text)))]
    for place in rng.sample(places, len(places)):
        substeps = list(steps[place].substeps)
        part = rng.randrange(len(substeps))
        changed = change(substeps[part])
        if changed is not None:
            substeps[part] = changed
            return [*steps[:place], Step(tuple(substeps), Label.NEG), *steps[place + 1 :]]
    return None


def _remove(steps: list[Step], rng: random.Random) -> list[Step] | None:
    # The steps after a redundant one are right without it.
    places = [i for i, step in enumerate(steps[:-1]) if step.label == Label.POS]
    if len(steps) < 3 or not places:
        return None
    place = rng.choice(places)
    wrong = Step(steps[place + 1].substeps, Label.NEG)
    return [*steps[:place], wrong, *steps[place + 2 :]]


def _swap(steps: list[Step], rng: random.Random) -> list[Step] | None:
    if len(steps) < 3:
        return None
    first, second = sorted(rng.sample(range(len(steps)), 2))
    if steps[first].text == steps[second].text:
        return None
    between = [Step(step.substeps) for step in (*steps[first + 1 : second], steps[first])]
    return [*steps[:first], Step(steps[second].substeps, Label.NEG), *between, *steps[second + 1 :]]


def _repeat(steps: list[Step], rng: random.Random) -> list[Step] | None:
    place = rng.randrange(len(steps))
    copy = Step(steps[place].substeps, Label.NEU)
    return [*steps[: place + 1], copy, *steps[place + 1 :]]


_CHANGES: dict[str, Change] = {
    "number": _number,
    "operation": _operation,
    "remove": _remove,
    "swap": _swap,
    "repeat": _repeat,
}


def valid_part(trace: Trace) -> Trace | None:
    """Return `trace` cut before its first wrong or unlabelled step, or None if fewer than two steps remain."""
    count = next((i for i, label in enumerate(trace.labels) if label in (None, Label.NEG)), len(trace.steps))
    return replace(trace, steps=trace.steps[:count]) if count > 1 else None
