"""The failures of an evaluator in a stress test: its worst variants, the step that shows each failure, and a
sentence on it."""

from collections.abc import Sequence
from itertools import chain, zip_longest

from stepsight.core.stress.measure import StressedTrace, wrong_steps

# What counts for a step that has no verdict but must be called wrong.
_LEAST = 1e-3


def worst_variants(stressed: Sequence[StressedTrace], threshold: float, transform: str = "") -> list[StressedTrace]:
    """Return the variants that did not move as they must, the worst first.

    These are the ones whose changed step keeps the most validity, or in which a verdict moved the furthest. Without
    a `transform`, the variants of all transforms alternate.
    """
    of: dict[str, list[tuple[float, StressedTrace]]] = {}
    for one in stressed:
        if transform in ("", one.transform.name) and (badness := _badness(one, threshold)) > 0:
            of.setdefault(one.transform.name, []).append((badness, one))
    ordered = [[one for _, one in sorted(found, key=lambda pair: -pair[0])] for found in of.values()]
    return [one for one in chain.from_iterable(zip_longest(*ordered)) if one is not None]


def telling_step(one: StressedTrace, threshold: float) -> int:
    """Return the place of the step that best shows an evaluator's reaction to a variant: the changed step if it
    must be called wrong, else the step whose verdict moved the furthest, else the first step."""
    moved = sorted(one.moved(threshold), key=lambda place: -abs(step_change(one, place)))
    return (*one.variant.targets, *moved, 0)[0]


def step_change(one: StressedTrace, place: int) -> float:
    """Return the change in validity of the step at a place in the variant, or 0 for an inserted step."""
    origin = one.variant.origins[place]
    return 0.0 if origin is None else float(one.after.validity[place]) - float(one.before.validity[origin])


def is_as_demanded(one: StressedTrace, threshold: float) -> bool | None:
    """True if the verdicts on a variant moved as they must. None if the steps that were made wrong were called
    wrong before."""
    if not one.variant.targets:
        return not one.moved(threshold)
    turned = one.turned(threshold)
    return all(hit for _, hit in turned) if turned else None


def outcome_sentence(one: StressedTrace, threshold: float) -> str:
    """Describe an evaluator's reaction to a variant in a sentence."""
    moved = [str(place + 1) for place in one.moved(threshold)]
    if not one.variant.targets:
        return (
            f"No verdict may move. That on {_steps(moved)} did." if moved else "No verdict may move, and none did."
        )
    elsewhere = f" The verdict on {_steps(moved)} moved too." if moved else ""
    changed = _steps([str(place + 1) for place in one.variant.targets]).capitalize()
    if not one.turned(threshold):
        return f"{changed} was called wrong before the change already.{elsewhere}"
    wrong = wrong_steps(one.after, threshold)
    is_called = all(wrong[place] for place in one.variant.targets)
    return f"{changed} must be called wrong, and is{'' if is_called else ' not'}.{elsewhere}"


def _badness(one: StressedTrace, threshold: float) -> float:
    """Return how badly an evaluator fails a variant, from 0 to 1."""
    if one.variant.targets:
        missed = [place for place, hit in one.turned(threshold) if not hit]
        return max((max(float(one.after.validity[place]), _LEAST) for place in missed), default=0.0)
    return max((abs(step_change(one, place)) for place in one.moved(threshold)), default=0.0)


def _steps(names: Sequence[str]) -> str:
    return f"step {names[0]}" if len(names) == 1 else f"steps {', '.join(names)}"
