"""Exact checking of the equations in a solution: both sides of each equation that a step states are computed and
compared.

Start with `check_steps(problem, substeps)`, which returns a tuple of `Check`s for each sub-step. The tuple is empty
if the sub-step states nothing that can be checked.
"""

from stepsight.core.equations.checker import Checker, check_steps
from stepsight.core.equations.checks import Check, Method

__all__ = ["Check", "Checker", "Method", "check_steps"]
