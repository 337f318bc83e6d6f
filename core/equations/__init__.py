"""Equations that check themselves: each equality that a step states is worked out exactly.

`check_steps(problem, substeps)` gives the `Check`s of each sub-step, none where there is nothing to check.
"""

from stepsight.core.equations.checker import Checker, check_steps
from stepsight.core.equations.checks import Check, Method

__all__ = ["Check", "Checker", "Method", "check_steps"]
