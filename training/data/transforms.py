"""Changing training traces: cutting, selecting, continuing and labelling them, and planting errors.

- `stop_at_a_step` ends a trace at a random labelled step, whose label is the only one it keeps.
- `is_balanced` tells whether the labels of a trace are spread over the three classes.
- `continue_trace` appends the rest of a solution whose labels stop at its first error.
- `settle` labels the steps that the gold labels call valid without saying whether they are redundant.
- `corrupt` plants an error in a correct solution, which turns an unlabelled solution into a labelled trace.
"""

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from stepsight.core.errors import UserError
from stepsight.core.trace import Label, Step, Trace

CONTINUED, COMPLETE, NOT_CONTINUED = "continued", "complete", "not_continued"
_KEY = "pre_generated_steps"


def stop_at_a_step(trace: Trace, rng: random.Random) -> Trace:
    """Cut `trace` after a labelled step chosen uniformly at random, and remove the labels of all earlier steps.

    The trace must have a labelled step. The result poses exactly the online task. If labels stop at the first
    error, as in PRM800K, cutting traces at random is not enough: a step followed by labelled steps is never wrong,
    so a bidirectional evaluator would still learn from where the trace ends. Here the end of the trace reveals
    nothing.
    """
    taught = [step.label is not None or step.share is not None for step in trace.steps]
    place = rng.choice([i for i, is_taught in enumerate(taught) if is_taught])
    before = tuple(Step(step.substeps) for step in trace.steps[:place])
    return replace(trace, steps=(*before, trace.steps[place]))


def draw_kept(steps: int, seed: int, place: int) -> int:
    """Choose at random how many of a trace's `steps` steps to keep, at least one, using `seed` and the trace's
    index `place`."""
    return int(np.random.default_rng((seed, place)).integers(1, steps + 1))


def beginning(trace: Trace, seed: int, place: int) -> Trace:
    """Return the trace cut after the number of steps that `draw_kept` chooses."""
    return replace(trace, steps=trace.steps[: draw_kept(len(trace.steps), seed, place)])


def balance_ratio(trace: Trace) -> float:
    """Return the balance ratio of a trace, `rho = min n_c / max n_c` in the paper.

    `n_c` is the number of steps labelled c, and the minimum and maximum are taken over the classes that occur
    (appendix "Data and Reproducibility", filtered training pool). The ratio is 0 if fewer than two classes occur,
    and 1 if the classes are perfectly even. Unlabelled steps do not count, and a step with sub-steps counts once.
    """
    counts = _counts(trace).values()
    return min(counts) / max(counts) if len(counts) > 1 else 0.0


def is_balanced(trace: Trace, rho: float, every_label: bool) -> bool:
    """True if the balance ratio is at least `rho` and, with `every_label`, steps labelled neg, neu and pos all
    occur.

    The paper requires every label and a `rho` of 0.5 for its training pool, and only the `rho` of 0.5 for its
    evaluation set.
    """
    return balance_ratio(trace) >= rho and (not every_label or len(_counts(trace)) == len(Label))


def _counts(trace: Trace) -> Counter[Label]:
    return Counter(label for label in trace.labels if label is not None)


def continue_trace(trace: Trace) -> tuple[Trace, str]:
    """Append the unlabelled rest of a trace's generated solution. Return the trace and the outcome.

    A PRM800K record of phase 2 holds the whole generated solution, of which only the first steps were labelled:

        {"question": {"pre_generated_steps": ["I notice …", "So 60 …", "That gives me …"]},
         "label": {"steps": [… two steps …], "finish_reason": "found_error"}}

    The outcome is `continued` if steps were appended, and `complete` if the labels already reach the end of the
    solution. It is `not_continued`, and the trace is unchanged, if the rest is unknown or the trace departs from
    the generated solution. Raises `UserError` if the rest stored in the meta is not a list of texts.
    """
    generated = _read_generated(trace)
    labelled = [step.text for step in trace.steps]
    if generated is None:
        return trace, COMPLETE if trace.meta.get("finish_reason") == "solution" else NOT_CONTINUED
    if generated[: len(labelled)] != labelled:
        return trace, NOT_CONTINUED
    rest = tuple(Step((text,)) for text in generated[len(labelled) :] if text.strip())
    return (replace(trace, steps=trace.steps + rest), CONTINUED) if rest else (trace, COMPLETE)


def _read_generated(trace: Trace) -> list[str] | None:
    meta: Mapping[str, Any] = trace.meta
    rest = meta.get(_KEY)
    if rest is None:
        return None
    if not isinstance(rest, list) or not all(isinstance(text, str) for text in rest):
        raise UserError(f"trace {trace.id!r}: the field {_KEY!r} is not a list of texts.", "Check the file.")
    return rest


def settle(trace: Trace, valid: str | None) -> Trace:
    """Label the steps that are only known to be valid, and so may be neu or pos, with the label `valid`.

    `valid` is `pos` or `unlabelled`. Benchmarks that only mark errors have such steps: every step but the errors in
    PRMBench, and every + in Math-Shepherd. There is no default, because `unlabelled` leaves only errors to learn
    from, and `pos` claims more than the gold labels do. Raises `UserError` if `valid` is None and the trace has
    such a step.
    """
    unrated = [number for number, step in enumerate(trace.steps, start=1) if _is_unrated(step)]
    if not unrated or valid == "unlabelled":
        return trace
    if valid is None:
        raise UserError(
            f"trace {trace.id!r}: step {unrated[0]} is valid, but the gold does not say if it is redundant.",
            "Give the source valid: pos, or valid: unlabelled to learn only from its other steps.",
        )
    return replace(
        trace, steps=tuple(Step(step.substeps, Label.POS) if _is_unrated(step) else step for step in trace.steps)
    )


def _is_unrated(step: Step) -> bool:
    return step.label is None and step.valid is True


WEIGHTS = {"number": 4.0, "operation": 2.0, "remove": 1.0, "swap": 1.0, "repeat": 1.5}

_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?|(?<=[a-zA-Z(\[{^_ ])\d+(?:\.\d+)?")
# What comes before a number that counts steps, cases or equations, and after one that counts the items of a list.
_COUNTED = re.compile(r"\b(?:step|case|part|method|equation|eq\.) ?[(#]?$", re.IGNORECASE)
_ITEM = re.compile(r"[.)]\*{0,2} [A-Za-z$*\\]")
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


def _numbers(text: str) -> list[re.Match[str]]:
    """Return the numbers in a text, without those that only count: `Step 2: we add 3 and 4` has 3 and 4."""
    numbers = []
    for match in _NUMBER.finditer(text):
        line = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
        is_item = not line.strip(" *#(") and _ITEM.match(text, match.end())
        if not is_item and not _COUNTED.search(text, 0, match.start()):
            numbers.append(match)
    return numbers


def _number(steps: list[Step], rng: random.Random) -> list[Step] | None:
    def change(text: str) -> str | None:
        matches = _numbers(text)
        if not matches:
            return None
        match = rng.choice(matches)
        others = sorted({m[0] for step in steps for m in _numbers(step.text)} - {match[0]})
        other = _draw_other_number(match[0], others, rng)
        return text[: match.start()] + other + text[match.end() :]

    return _change_a_step(steps, change, rng)


def _draw_other_number(number: str, others: Sequence[str], rng: random.Random) -> str:
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
        # Words contain hyphens, and dates and units slashes, so only signs next to a number or in maths count.
        matches = [m for m in matches if _is_maths(text, m)]
        if not matches:
            return None
        match = rng.choice(matches)
        sign = rng.choice(_OTHERS[match[2]])
        return text[: match.start()] + match[1] + sign + match[3] + text[match.end() :]

    return _change_a_step(steps, change, rng)


def _is_maths(text: str, match: re.Match[str]) -> bool:
    around = text[match.start() - 1] + text[match.end()]
    return any(sign.isdigit() for sign in around) or text[: match.start()].count("$") % 2 == 1


def _change_a_step(steps: list[Step], change: Callable[[str], str | None], rng: random.Random) -> list[Step] | None:
    # Like real slips, planted ones are more frequent in steps with more numbers.
    places = [i for i, step in enumerate(steps) for _ in range(1 + len(_numbers(step.text)))]
    for place in rng.sample(places, len(places)):
        substeps = list(steps[place].substeps)
        part = rng.randrange(len(substeps))
        changed = change(substeps[part])
        if changed is not None:
            substeps[part] = changed
            return [*steps[:place], Step(tuple(substeps), Label.NEG), *steps[place + 1 :]]
    return None


def _remove(steps: list[Step], rng: random.Random) -> list[Step] | None:
    # The steps after a redundant step are right without it.
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


def _repeat_step(steps: list[Step], rng: random.Random) -> list[Step] | None:
    place = rng.randrange(len(steps))
    copy = Step(steps[place].substeps, Label.NEU)
    return [*steps[: place + 1], copy, *steps[place + 1 :]]


_CHANGES: dict[str, Change] = {
    "number": _number,
    "operation": _operation,
    "remove": _remove,
    "swap": _swap,
    "repeat": _repeat_step,
}


def valid_part(trace: Trace) -> Trace | None:
    """Return `trace` cut before its first wrong or unlabelled step, or None if fewer than two steps remain."""
    count = next((i for i, label in enumerate(trace.labels) if label in (None, Label.NEG)), len(trace.steps))
    return replace(trace, steps=trace.steps[:count]) if count > 1 else None
