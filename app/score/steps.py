"""The steps of a solution as the Score page lists them, to be corrected."""

import json

from markupsafe import Markup

from stepsight.app.score.form import Steps, as_steps
from stepsight.app.web.html import render
from stepsight.app.web.judged import notice_html
from stepsight.app.web.text import text_key
from stepsight.core.errors import UserError
from stepsight.core.split import split_steps

_LONGEST = 100_000
EMPTY = Markup('<p class="hint">Steps appear here as you type: numbered, headed, by paragraph or by line.</p>')


def split_html(solution: str | None) -> Markup:
    """How the solution is split into steps, or a notice where it cannot be."""
    solution = solution or ""
    try:
        steps = as_steps(split_steps(solution[:_LONGEST]))
    except UserError as error:
        return notice_html(str(error))
    return steps_html(steps, solution)


def steps_html(steps: Steps, solution: str) -> Markup:
    """Steps that are the split of what the text box holds."""
    return _list_html(steps, text_key(solution), "text") if steps else EMPTY


def corrected_html(steps: Steps, key: str) -> Markup:
    """Steps as a person corrected them, of the text with the key `key`."""
    return _list_html(steps, key, "person") if steps else EMPTY


def _list_html(steps: Steps, key: str, origin: str) -> Markup:
    """Steps as a list that the page's script lets a person correct; `data-state` tells it whether they are others
    than before."""
    data = json.dumps(steps, ensure_ascii=False)
    state = text_key(key + origin + data)
    return render("score/steps.html", steps=steps, key=key, origin=origin, data=data, state=state)
