"""Short ways to check a text."""

from stepsight.core.equations import Check, check_steps


def checks(*texts: str, problem: str = "A problem.") -> tuple[Check, ...]:
    """The checks of the last of some sub-steps."""
    return check_steps(problem, texts)[-1]


def failing(*texts: str, problem: str = "A problem.") -> list[tuple[str, str, str]]:
    """For each failing check of the last sub-step: the equation, the side at fault, and the right value."""
    return [
        (texts[-1][check.start : check.end], texts[-1][check.fault_start : check.fault_end], check.right)
        for check in checks(*texts, problem=problem)
        if not check.holds
    ]
