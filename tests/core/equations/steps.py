"""Short ways to check a text."""

from stepsight.core.equations import check_steps


def checks(*texts, problem="A problem."):
    """The checks of the last of some sub-steps."""
    return check_steps(problem, texts)[-1]


def failing(*texts, problem="A problem."):
    """For each failing check of the last sub-step: the equation, the side at fault, and the right value."""
    return [
        (texts[-1][check.start : check.end], texts[-1][check.fault_start : check.fault_end], check.expected)
        for check in checks(*texts, problem=problem)
        if not check.holds
    ]
