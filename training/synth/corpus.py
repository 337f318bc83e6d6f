"""The corpus: a stream of traces, each drawn from the seed and its own number alone."""

import random
from collections.abc import Callable, Collection, Iterator

from core.errors import UserError
from core.trace import Trace
from training.synth import linear, measures, stories
from training.synth.arithmetic import plan_story
from training.synth.plan import Plan
from training.synth.quadratic import plan_quadratic
from training.synth.story import Story
from training.synth.weave import weave

ERROR_RATE = 0.5

Planner = Callable[[bool, random.Random], Plan]


def _of(choices: tuple[Story, ...]) -> Planner:
    return lambda wrong, rng: plan_story(rng.choice(choices), wrong, rng)


_PLANNERS: dict[str, tuple[float, Planner]] = {
    "shopping": (1.5, _of(stories.SHOPPING)),
    "travel": (1.5, _of(stories.TRAVEL)),
    "recipe": (1.0, _of(stories.RECIPES)),
    "work": (1.0, _of(stories.WORK)),
    "age": (1.0, _of(stories.AGES)),
    "share": (1.0, _of(measures.SHARES)),
    "sequence": (1.0, _of(measures.SEQUENCES)),
    "rectangle": (1.0, _of(measures.RECTANGLES)),
    "linear": (2.0, _of(linear.EQUATIONS)),
    "quadratic": (3.0, plan_quadratic),
}
FAMILIES = tuple(_PLANNERS)


def generate(seed: int, size: int, families: Collection[str] | None = None) -> Iterator[Trace]:
    """Yield `size` traces. Trace k depends on `seed`, k and `families` only, never on `size`.

    `families`: some of `FAMILIES`; all where None. Each trace's meta holds `family`; `error`, its kind, and
    `error_step`, or null; `focus`, the step that holds the error or in a right trace could have held it;
    `evidence`, the later step that exposes or clears it as `{step, kind, passes}`, or null; `later_check`,
    whether any check stands after the focus; `redone`, whether the trace corrects itself.
    Raises `UserError` for an unknown family.
    """
    chosen = [family for family in FAMILIES if families is None or family in families]
    unknown = set(families or ()) - set(FAMILIES)
    if unknown or not chosen:
        found = ", ".join(sorted(unknown)) or "none"
        raise UserError(f"families: {found} found, expected some of {', '.join(FAMILIES)}.")
    return _stream(seed, size, chosen)


def _stream(seed: int, size: int, families: list[str]) -> Iterator[Trace]:
    weights = [_PLANNERS[family][0] for family in families]
    for number in range(size):
        rng = random.Random(f"{seed}:{number}")
        family = rng.choices(families, weights)[0]
        wrong = rng.random() < ERROR_RATE
        plan = _PLANNERS[family][1](wrong, rng)
        yield weave(plan, family, f"synth-{seed}-{number}", rng)
