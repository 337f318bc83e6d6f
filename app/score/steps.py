"""The steps of a solution as the Score page lists them, to be corrected."""

import json

from markupsafe import Markup

from stepsight.app.score.form import as_steps
from stepsight.app.web.html import render
from stepsight.app.web.judged import notice_html
from stepsight.core.errors import UserError
from stepsight.core.text.split import split_solution

_LONGEST = 100_000
# What is longer is shown once it is opened.
_BRIEF = 120
EMPTY = Markup('<p class="hint">Steps appear here as you type: numbered, headed, by paragraph or by line.</p>')


def split_html(solution: str) -> Markup:
    """How the solution is split into steps and what is set aside, or a notice where it cannot be."""
    try:
        split = split_solution(solution[:_LONGEST])
    except UserError as error:
        return notice_html(str(error))
    steps = as_steps(split.steps)
    if not steps:
        return EMPTY
    return render(
        "score/steps.html",
        steps=steps,
        set_aside=split.set_aside,
        brief=_BRIEF,
        data=json.dumps(steps, ensure_ascii=False),
    )
