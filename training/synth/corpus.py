"""The synthetic corpus: a stream of traces, each determined by the seed and its index."""

import random
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import TypeVar

from stepsight.core.errors import UserError
from stepsight.core.files.yaml_files import validate_yaml
from stepsight.core.trace import Trace
from stepsight.training.synth.chain import draw_groups, draw_problem
from stepsight.training.synth.formula import ErrorKind
from stepsight.training.synth.quadratic import QuadraticWording, plan_quadratic
from stepsight.training.synth.solution import SolutionPlan, assemble_trace
from stepsight.training.synth.steps import StorySolution, checks
from stepsight.training.synth.story import Story
from stepsight.training.synth.style import Style

T = TypeVar("T")

STORIES = Path(__file__).parent / "stories"
QUADRATIC = "quadratic"
WEIGHTS = {
    "shopping": 1.5, "travel": 1.5, "recipe": 1.0, "work": 1.0, "age": 1.0, "share": 1.0, "sequence": 1.0,
    "rectangle": 1.0, "units": 1.2, "average": 1.2, "mixture": 1.2, "percent": 1.5, "rate": 1.5, "expression": 2.0,
    "linear": 2.0, "probability": 1.0, "counting": 1.0, "expectation": 1.0, "system": 1.0, "absolute": 1.0,
    "inequality": 1.0, "power": 1.0, "function": 1.0, "geometric": 1.0, "line": 1.0, "divisor": 1.0,
    "remainder": 1.0, "base": 1.0, "discriminant": 1.0, "triangle": 1.0, "circle": 1.0, "solid": 1.0, "angle": 1.0,
    "derivative": 1.0, "extremum": 1.0, "integral": 1.0, "statistics": 1.0, QUADRATIC: 3.0,
}  # fmt: skip
"""The weight of each family, a file of `stories/`, in the order in which they are drawn: part of every seed."""
FAMILIES = tuple(WEIGHTS)
HELD_OUT: tuple[str, ...] = ("mixture", "geometric", "remainder", "circle")
"""Families that training never sees; evaluators' figures on them are given separately."""
TRAINED = tuple(family for family in FAMILIES if family not in HELD_OUT)

ERROR_RATE = 0.5
COUNTERPART_RATE = 0.1
"""The rate at which a story is replaced by each of its counterparts. One step in six that computes something is
wrong and, with this rate, about one in six of those that give an error's reason."""
OUTLINE_RATE = 0.3
JUMP_RATE = 0.35
READING_RATE = 0.45


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
    for number in range(size):
        rng = random.Random(f"{seed}:{number}")
        family = rng.choices(families, weights)[0]
        wrong = rng.random() < ERROR_RATE
        if family == QUADRATIC:
            plan = plan_quadratic(read_family(family, QuadraticWording), wrong, rng, larger)
        else:
            story = rng.choice(list(read_family(family, dict[str, Story]).values()))
            if rng.random() < COUNTERPART_RATE * len(story.counterparts):
                story = rng.choice(story.counterparts)
            plan = plan_story(story, wrong, rng, larger)
        yield assemble_trace(plan, family, f"synth-{seed}-{number}", rng, consequences)


@cache
def read_family(family: str, kind: type[T]) -> T:
    """Read the YAML file of a family. The result is cached. Raises `UserError`, naming the file and the key, if the
    file does not fit the type `kind`."""
    return validate_yaml(kind, STORIES / f"{family}.yaml")


def plan_story(story: Story, wrong: bool, rng: random.Random, larger: bool = False) -> SolutionPlan:
    """Plan a random solution of one of a story's problems. The solution contains an error if `wrong` is True. With
    `larger`, its numbers go beyond the range used in training."""
    problem = draw_problem(story, rng, larger)
    style = Style.draw(rng, story.decimals)
    groups = draw_groups(story, JUMP_RATE, rng)
    named = [key for key, quantity in story.quantities.items() if quantity.noun]
    is_read, reading = rng.random() < READING_RATE, rng.choice(named) if named else None
    if problem.error.kind == ErrorKind.MISREAD and problem.error.key in named:
        reading = problem.error.key
    outlined = rng.random() < OUTLINE_RATE and len(groups) > 1
    reading = reading if is_read and story.readings else None
    solution = StorySolution(problem, wrong, groups, style, reading, outlined, rng)
    return SolutionPlan(
        problem=story.problem(problem.quantities, problem.names, style, rng),
        steps=tuple(solution.steps()),
        focus=solution.focus,
        kind=problem.error.kind,
        wrong=wrong,
        checks=tuple(checks(solution)),
        redundant=tuple(solution.redundant()),
        redo=solution.redo,
        quantities={key: str(value) for key, value in problem.quantities.items()},
        relations={key: step.formula.text for key, step in story.steps.items()} | {"answer": list(story.steps)[-1]},
    )
