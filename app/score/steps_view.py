"""How a pasted solution is split into steps, and the tools that correct it."""

import json

from markupsafe import Markup

from stepsight.app.score.permalink import Steps
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
        steps = split_steps(solution[:_LONGEST])
    except UserError as error:
        return notice_html(str(error))
    return steps_html(steps, text_key(solution), "text") if steps else EMPTY


def steps_html(steps: Steps, key: str, origin: str) -> Markup:
    """Steps as a list that the page's script lets a person correct.

    `key` tells for which text of the box they stand (`text_key`), `origin` whether they are its split (`text`) or
    a person's (`person`); `data-state` tells the script whether they are others than before.
    """
    listed = [[step] if isinstance(step, str) else list(step) for step in steps]
    data = json.dumps(listed, ensure_ascii=False)
    state = text_key(key + origin + data)
    return render("score/steps.html", steps=listed, key=key, origin=origin, data=data, state=state)
