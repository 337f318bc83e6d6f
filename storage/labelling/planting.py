"""Suggestions that are wrong on purpose, in some of the hidden gold items.

A person who is shown an evaluator's labels may confirm them without reading. On a gold item the right label is
known, so leaving a wrong suggestion unchanged reveals this (`storage.labelling.results.trust`). The step is drawn
once for everybody. Its score is mirrored wherever the person sees it before submission, since a score that
contradicts its suggestion would give it away.
"""

import random
from collections.abc import Sequence

from sqlalchemy.orm import Session

from stepsight.core.trace import Trace
from stepsight.storage.labelling.assignments import Slot
from stepsight.storage.labelling.ordering import GOLD
from stepsight.storage.labelling.qualification import is_of_qualification


def planted_step(
    session: Session, slot: Slot, trace: Trace, validity: Sequence[float | None], cut: float
) -> int | None:
    """Return the 0-based step whose suggestion is to be wrong, or None if none is planted in the slot's trace.

    `validity` holds the evaluator's validity of each step, or None, and `cut` the threshold below which a step is
    suggested as wrong. Only a step on which the evaluator is right can be planted, and only one that is labelled in
    every campaign: none after the first that is suggested as wrong. Steps that gold calls wrong are, together, as
    likely as all others. Nothing is planted in a qualification.
    """
    rng = random.Random(f"planted {slot.seed} {slot.item_id}")
    if slot.chosen != GOLD or rng.random() >= slot.planted_share:
        return None
    if is_of_qualification(session, slot):
        return None
    right: dict[bool, list[int]] = {True: [], False: []}
    for step, (gold, value) in enumerate(zip(trace.steps, validity, strict=True)):
        if value is None:
            continue
        is_valid = value >= cut
        if gold.valid == is_valid and (mirrored(value) >= cut) != is_valid:
            right[is_valid].append(step)
        if not is_valid:
            break
    kinds = [kind for kind, steps in right.items() if steps]
    return rng.choice(right[rng.choice(kinds)]) if kinds else None


def mirrored(validity: float) -> float:
    """Return the validity that a planted step is shown with."""
    return round(1 - validity, 4)
