"""Exact checking of the equations in a solution: each equality that a step states is worked out.

Start with `check_steps(problem, substeps)`, which returns the `Check`s of each sub-step. If a sub-step states
nothing that can be checked, they are an empty tuple.
"""

from stepsight.core.equations.checker import Checker, check_steps
from stepsight.core.equations.checks import Check, Method

__all__ = ["Check", "Checker", "Method", "check_steps"]
