"""Solutions as people enter them on the Score page."""

from collections.abc import Sequence

from stepsight.app.score.entered import Entered, PageState


def typed(
    problem: str, solution: str, evaluators: Sequence[str] = (), validity: float = 0.5, redundancy: float = 0.15
) -> Entered:
    """What the page's script sends of a solution that was typed."""
    state = PageState(
        problem=problem,
        solution=solution,
        evaluators=tuple(evaluators),
        validity=validity,
        redundancy=redundancy,
    )
    return state.entered(state.solution_text())
