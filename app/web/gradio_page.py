"""What the Gradio pages share: the line at the top, blocks of HTML, and pages that follow from their address."""

from collections.abc import Callable
from typing import Any

import gradio as gr
from markupsafe import Markup

from stepsight.app.web.html import navigation
from stepsight.app.web.page_address import Query, read_query

# Answers come in the response itself. Through Gradio's queue they come by an event stream, and one that is asked
# for while the stream of the one before closes is lost (Gradio 6.31).
DIRECT: dict[str, Any] = {"queue": False, "api_visibility": "private"}
# In the browser: the query string of the address, as the first input of an event.
QUERY = "() => [window.location.search]"
_LOADING = Markup('<p class="hint">Loading</p>')


def header(here: str) -> gr.HTML:
    """The line at the top of every page; `here` names the page (see `app.web.pages.PAGES`)."""
    return block(navigation(here))


def block(value: str = "", **options: Any) -> gr.HTML:
    """A piece of HTML that only our style sheet touches."""
    return gr.HTML(value, apply_default_css=False, js_on_load=None, **options)


def build_address_page(here: str, content: Callable[[Query, gr.Request], Markup]) -> None:
    """Lay out, within an open `gr.Blocks`, a page that shows the `content` of its address.

    The page's script changes the address and clicks the hidden button for it to be shown.
    """
    name = here.lower()
    header(here)
    with gr.Column(elem_classes="page"):
        shown = block(_LOADING, elem_id=name)
        go = gr.Button("Show this address", elem_id=f"{name}-go", visible="hidden")

    def show(query: str, request: gr.Request) -> str:
        return content(read_query(query), request)

    query = gr.Textbox(visible=False)
    gr.on(None, show, query, shown, js=QUERY, **DIRECT, show_progress="hidden")
    go.click(show, query, shown, js=QUERY, trigger_mode="always_last", **DIRECT, show_progress="hidden")
