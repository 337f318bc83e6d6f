"""The steps of a solution as the Score page lists them, to be corrected."""

import json

from markupsafe import Markup

from stepsight.app.score.form import as_steps
from stepsight.app.web.html import render
from stepsight.app.web.judged import notice_html
from stepsight.core.errors import UserError
from stepsight.core.split import split_steps

_LONGEST = 100_000
EMPTY = Markup('<p class="hint">Steps appear here as you type: numbered, headed, by paragraph or by line.</p>')


def split_html(solution: str) -> Markup:
    """How the solution is split into steps, or a notice where it cannot be."""
    try:
        steps = as_steps(split_steps(solution[:_LONGEST]))
    except UserError as error:
        return notice_html(str(error))
    if not steps:
        return EMPTY
    return render("score/steps.html", steps=steps, data=json.dumps(steps, ensure_ascii=False))
