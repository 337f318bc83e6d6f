"""Failing equations, and the later steps that contradict them."""

from stepsight.core.equations.contradictions import failing_equations
from stepsight.core.trace import Trace
from tests.cases import each


@each(
    "steps, expected",
    [
        # The same calculation with its right value, in whatever signs, and words about the wrong value.
        (["$7 \\cdot 17 = 129$.", "7 × 17 = 119."], [(0, (1,))]),
        (["14 * 17 = 228", "140 + 98 = 238, not 228."], [(0, (1,))]),
        (["x = 112 / 8 = 16", "8 * 16 = 128, so $16$ is wrong.", "112 / 8 = 14"], [(0, (1, 2))]),
        # Only later steps, only the value as a whole, and only where an equation holds.
        (["7 * 17 = 119.", "7 * 17 = 129."], [(1, ())]),
        (["14 * 17 = 228", "140 + 98 = 238, not 2280."], [(0, ())]),
        (["14 * 17 = 228", "That is not 228."], [(0, ())]),
        (["14 * 17 = 228", "140 + 98 = 239, not 228."], [(0, ()), (1, ())]),
        # Without a failing equation nothing is contradicted.
        (["2 + 2 = 4", "2 + 2 = 4, not 5."], []),
    ],
)
def test_later_steps_contradict_a_failing_equation(steps, expected):
    found = failing_equations(Trace.of("What is it?", steps))
    assert [(one.substep, one.contradicted) for one in found] == expected
