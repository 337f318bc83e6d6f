"""How a pasted solution is split into steps, and the tools that correct it."""

import json
from html import escape

from stepsight.app.score.permalink import Steps
from stepsight.app.web.judged import notice_html
from stepsight.app.web.text import text_html, text_key
from stepsight.core.errors import UserError
from stepsight.core.split import split_steps

_LONGEST = 100_000
EMPTY = '<p class="hint">Steps appear here as you type: numbered, headed, by paragraph or by line.</p>'
TOOLS = """<p class="hint live" data-status></p><p class="tools">
<button type="button" class="button" data-history="undo" disabled>Undo</button>
<button type="button" class="button" data-history="redo" disabled>Redo</button>
<button type="button" class="button" data-steps="write" hidden>Write into the text box</button>
<button type="button" class="button" data-steps="again" hidden>Split the text again</button>
<button type="button" class="button" data-steps="score" hidden>Score again</button></p>"""
"""What the page's script fills and shows: a state, undo, redo, what brings text box and steps together, and
scoring anew."""


def split_html(solution: str | None) -> str:
    """How the solution is split into steps, or a notice where it cannot be."""
    solution = solution or ""
    try:
        steps = split_steps(solution[:_LONGEST])
    except UserError as error:
        return notice_html(str(error))
    return steps_html(steps, text_key(solution), "text") if steps else EMPTY


def steps_html(steps: Steps, key: str, origin: str) -> str:
    """Steps as a list that the page's script lets a person correct.

    `key` tells for which text of the box they stand (`text_key`), `origin` whether they are its split (`text`) or
    a person's (`person`); `data-state` tells the script whether they are others than before.
    """
    listed = [[step] if isinstance(step, str) else list(step) for step in steps]
    items = "".join(
        f'<li><button type="button" class="pick" aria-expanded="false" aria-label="Correct step {number}"></button>'
        f'<div class="t">{"<br>".join(map(text_html, parts))}</div></li>'
        for number, parts in enumerate(listed, start=1)
    )
    data = json.dumps(listed, ensure_ascii=False)
    count = "1 step" if len(listed) == 1 else f"{len(listed)} steps"
    return f"""<p class="hint">{count}</p><ol class="preview" data-key="{escape(key)}"
 data-origin="{escape(origin)}" data-steps="{escape(data)}"
 data-state="{text_key(key + origin + data)}">{items}</ol>"""
