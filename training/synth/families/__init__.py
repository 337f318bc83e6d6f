"""The problem families of the corpus, with the weight of each."""

import random
from collections.abc import Callable

from stepsight.training.synth.arithmetic import plan_story
from stepsight.training.synth.families import (
    absolute,
    ages,
    angles,
    averages,
    bases,
    circles,
    counting,
    derivatives,
    discriminants,
    divisors,
    expectation,
    expressions,
    extrema,
    functions,
    geometric,
    inequalities,
    integrals,
    linear,
    lines,
    mixtures,
    percents,
    powers,
    probability,
    rates,
    recipes,
    rectangles,
    remainders,
    sequences,
    shares,
    shopping,
    solids,
    statistics,
    systems,
    travel,
    triangles,
    units,
    work,
)
from stepsight.training.synth.families.quadratic import plan_quadratic
from stepsight.training.synth.plan import Plan
from stepsight.training.synth.story import Story

Planner = Callable[[bool, random.Random, bool], Plan]


def _of(choices: tuple[Story, ...]) -> Planner:
    return lambda wrong, rng, larger: plan_story(rng.choice(choices), wrong, rng, larger)


PLANNERS: dict[str, tuple[float, Planner]] = {
    "shopping": (1.5, _of(shopping.SHOPPING)),
    "travel": (1.5, _of(travel.TRAVEL)),
    "recipe": (1.0, _of(recipes.RECIPES)),
    "work": (1.0, _of(work.WORK)),
    "age": (1.0, _of(ages.AGES)),
    "share": (1.0, _of(shares.SHARES)),
    "sequence": (1.0, _of(sequences.SEQUENCES)),
    "rectangle": (1.0, _of(rectangles.RECTANGLES)),
    "units": (1.2, _of(units.UNITS)),
    "average": (1.2, _of(averages.AVERAGES)),
    "mixture": (1.2, _of(mixtures.MIXTURES)),
    "percent": (1.5, _of(percents.PERCENTS)),
    "rate": (1.5, _of(rates.RATES)),
    "expression": (2.0, _of(expressions.EXPRESSIONS)),
    "linear": (2.0, _of(linear.EQUATIONS)),
    "probability": (1.0, _of(probability.PROBABILITIES)),
    "counting": (1.0, _of(counting.COUNTING)),
    "expectation": (1.0, _of(expectation.EXPECTATIONS)),
    "system": (1.0, _of(systems.SYSTEMS)),
    "absolute": (1.0, _of(absolute.ABSOLUTES)),
    "inequality": (1.0, _of(inequalities.INEQUALITIES)),
    "power": (1.0, _of(powers.POWERS)),
    "function": (1.0, _of(functions.FUNCTIONS)),
    "geometric": (1.0, _of(geometric.GEOMETRIC)),
    "line": (1.0, _of(lines.LINES)),
    "divisor": (1.0, _of(divisors.DIVISORS)),
    "remainder": (1.0, _of(remainders.REMAINDERS)),
    "base": (1.0, _of(bases.BASES)),
    "discriminant": (1.0, _of(discriminants.DISCRIMINANTS)),
    "triangle": (1.0, _of(triangles.TRIANGLES)),
    "circle": (1.0, _of(circles.CIRCLES)),
    "solid": (1.0, _of(solids.SOLIDS)),
    "angle": (1.0, _of(angles.ANGLES)),
    "derivative": (1.0, _of(derivatives.DERIVATIVES)),
    "extremum": (1.0, _of(extrema.EXTREMA)),
    "integral": (1.0, _of(integrals.INTEGRALS)),
    "statistics": (1.0, _of(statistics.STATISTICS)),
    "quadratic": (3.0, plan_quadratic),
}
FAMILIES = tuple(PLANNERS)

HELD_OUT: tuple[str, ...] = ("mixture", "geometric", "remainder", "circle")
"""Families that training never sees: what an evaluator reaches on them is told apart."""
