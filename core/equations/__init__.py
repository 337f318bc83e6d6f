"""Equations that check themselves: each equality that a step states is worked out exactly.

Begin with `check_steps(problem, substeps)`, which gives the `Check`s of each sub-step, or an empty tuple if a
sub-step states nothing that can be checked.
"""

from stepsight.core.equations.checker import Checker, check_steps
from stepsight.core.equations.checks import Check, Method

__all__ = ["Check", "Checker", "Method", "check_steps"]
