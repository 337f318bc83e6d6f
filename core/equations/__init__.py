"""Equations that check themselves: each equality that a step states is worked out exactly.

`check_steps(problem, substeps)` gives the `Check`s of each sub-step, none where there is nothing to check.
The rooms:

- `tokens`, `units`, `parsing`, `expressions`, `chains`: from the text of a step to chains of equations;
- `values`, `numbers`, `algebra`, `wording`: exact values, when two sides agree, and how a value is written;
- `solutions`, `systems`, `unknowns`: what equations with letters say of those after them;
- `context`: whether a text states an equation, or supposes, tests or refutes it;
- `checks`, `checker`: the check of an equation, and of a whole solution.
"""

from stepsight.core.equations.checker import Checker, check_steps
from stepsight.core.equations.checks import Check, Method

__all__ = ["Check", "Checker", "Method", "check_steps"]
