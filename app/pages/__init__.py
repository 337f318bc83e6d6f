"""The Gradio pages, one module each, and the frame they share."""

import gradio as gr

_PAGES = (("Score", "/"), ("Browse", "/browse"))


def header(here: str) -> gr.HTML:
    """The line at the top of every page; `here` names the page."""
    links = "".join(
        f'<a href="{path}"{" aria-current=page" if name == here else ""}>{name}</a>' for name, path in _PAGES
    )
    return gr.HTML(f'<nav class="top" aria-label="Pages"><a class="brand" href="/">StepSight</a>{links}</nav>')
