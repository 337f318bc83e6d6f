"""The problem families of the corpus, with their frequencies and the functions that plan their solutions."""

import random
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import TypeVar

from stepsight.core.files.yaml_files import validate_yaml
from stepsight.training.synth.planner import plan_story
from stepsight.training.synth.quadratic import QuadraticWording, plan_quadratic
from stepsight.training.synth.solution import SolutionPlan
from stepsight.training.synth.story import Story

T = TypeVar("T")

Planner = Callable[[bool, random.Random, bool], SolutionPlan]

STORIES = Path(__file__).parent / "stories"
QUADRATIC = "quadratic"
WEIGHTS = {
    "shopping": 1.5,
    "travel": 1.5,
    "recipe": 1.0,
    "work": 1.0,
    "age": 1.0,
    "share": 1.0,
    "sequence": 1.0,
    "rectangle": 1.0,
    "units": 1.2,
    "average": 1.2,
    "mixture": 1.2,
    "percent": 1.5,
    "rate": 1.5,
    "expression": 2.0,
    "linear": 2.0,
    "probability": 1.0,
    "counting": 1.0,
    "expectation": 1.0,
    "system": 1.0,
    "absolute": 1.0,
    "inequality": 1.0,
    "power": 1.0,
    "function": 1.0,
    "geometric": 1.0,
    "line": 1.0,
    "divisor": 1.0,
    "remainder": 1.0,
    "base": 1.0,
    "discriminant": 1.0,
    "triangle": 1.0,
    "circle": 1.0,
    "solid": 1.0,
    "angle": 1.0,
    "derivative": 1.0,
    "extremum": 1.0,
    "integral": 1.0,
    "statistics": 1.0,
    QUADRATIC: 3.0,
}
"""The families, each a file of `stories/`, in the order in which they are drawn, which is part of every seed."""
FAMILIES = tuple(WEIGHTS)

COUNTERPART_RATE = 0.1
"""The rate at which a story is replaced by each of its counterparts. One step in six that computes something is
wrong and, with this rate, about one in six of those that give an error's reason."""

HELD_OUT: tuple[str, ...] = ("mixture", "geometric", "remainder", "circle")
"""Families that training never sees; evaluators' figures on them are given separately."""


def planner(family: str) -> Planner:
    """Return the function that plans the solutions of a family."""
    if family == QUADRATIC:
        return partial(plan_quadratic, read_family(family, QuadraticWording))
    return partial(_plan_any, tuple(read_family(family, dict[str, Story]).values()))


def _plan_any(stories: tuple[Story, ...], wrong: bool, rng: random.Random, larger: bool) -> SolutionPlan:
    story = rng.choice(stories)
    if rng.random() < COUNTERPART_RATE * len(story.counterparts):
        story = rng.choice(story.counterparts)
    return plan_story(story, wrong, rng, larger)


@cache
def read_family(family: str, kind: type[T]) -> T:
    """Read the YAML file of a family. The result is cached. Raises `UserError`, naming the file and the key, if the
    file does not fit the type `kind`."""
    return validate_yaml(kind, STORIES / f"{family}.yaml")
