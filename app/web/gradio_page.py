"""Parts of a Gradio page: the line at the top, blocks of HTML, and how its events are sent."""

from typing import Any

import gradio as gr

from stepsight.app.web.html import navigation

# Answers come in the response itself. Through Gradio's queue they come by an event stream, and one that is asked
# for while the stream of the one before closes is lost (Gradio 6.31).
DIRECT: dict[str, Any] = {"queue": False, "api_visibility": "private"}
# In the browser: the query string of the address, as the first input of an event.
QUERY = "() => [window.location.search]"


def header(here: str) -> gr.HTML:
    """The line at the top of every page; `here` names the page (see `app.web.pages.PAGES`)."""
    return block(navigation(here))


def block(value: str = "", **options: Any) -> gr.HTML:
    """A piece of HTML that only our style sheet touches."""
    return gr.HTML(value, apply_default_css=False, js_on_load=None, **options)
