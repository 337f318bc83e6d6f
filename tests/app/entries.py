"""Solutions as people enter them on the Score page."""

from stepsight.app.score.entered import PageState


def typed(problem, solution, evaluators=(), validity=0.5, redundancy=0.15):
    """What the page's script sends of a solution that was typed."""
    state = PageState(
        problem=problem,
        solution=solution,
        evaluators=tuple(evaluators),
        validity=validity,
        redundancy=redundancy,
    )
    return state.entered(state.solution_text())
