"""The synthetic corpus: a stream of traces, each determined by the seed and its index."""

import random
from collections.abc import Collection, Iterator

from stepsight.core.errors import UserError
from stepsight.core.trace import Trace
from stepsight.training.synth.families import FAMILIES, HELD_OUT, WEIGHTS, planner
from stepsight.training.synth.solution import assemble_trace

ERROR_RATE = 0.5
TRAINED = tuple(family for family in FAMILIES if family not in HELD_OUT)


def generate(
    seed: int,
    size: int,
    families: Collection[str] | None = None,
    larger: bool = False,
    consequences: bool = False,
) -> Iterator[Trace]:
    """Yield `size` traces. Trace k depends only on `seed`, k and the options, never on `size`.

    `families` names some of `FAMILIES`; None means all except `HELD_OUT`. With `larger`, numbers go beyond the
    usual range. With `consequences`, the steps after the first error are labelled too, and a step that only carries
    the error on counts as right. Otherwise, steps after the error are unlabelled unless they point it out.

    Each trace's meta holds:

    - `family`
    - `error`, the kind of error, and `error_step`; both are null in a correct trace
    - `focus`: the step that holds the error or, in a correct trace, could have held it
    - `evidence`: the later step that exposes or clears the focus, as `{step, kind, passes}`, or null
    - `later_check`: true if any check follows the focus
    - `redone`: true if the trace corrects itself

    The rest allows the labels to be derived independently: `givens`, the problem's quantities by key; `relations`,
    the formulas of all later values; and for each step its `roles` and its `claims`, the values that it states by
    key.

    Raises `UserError` for an unknown family.
    """
    chosen = [family for family in FAMILIES if family in (TRAINED if families is None else families)]
    unknown = set(families or ()) - set(FAMILIES)
    if unknown or not chosen:
        names = ", ".join(sorted(unknown)) or "none"
        raise UserError(f"families: {names} found, expected some of {', '.join(FAMILIES)}.")
    return _stream(seed, size, chosen, larger, consequences)


def _stream(seed: int, size: int, families: list[str], larger: bool, consequences: bool) -> Iterator[Trace]:
    weights = [WEIGHTS[family] for family in families]
    planners = {family: planner(family) for family in families}
    for number in range(size):
        rng = random.Random(f"{seed}:{number}")
        family = rng.choices(families, weights)[0]
        wrong = rng.random() < ERROR_RATE
        plan = planners[family](wrong, rng, larger)
        yield assemble_trace(plan, family, f"synth-{seed}-{number}", rng, consequences)
