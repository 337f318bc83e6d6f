"""The frame of every page: what its head loads, and the line at the top."""

from markupsafe import Markup

from stepsight.app.web.html import macro, render

HEAD = macro("frame.html", "head")
SCRIPTS = macro("frame.html", "scripts")


def navigation(here: str) -> Markup:
    """The line at the top, with the skip link's target at its end; `here` names the page."""
    return macro("frame.html", "navigation", here)


def plain_page(title: str, body: str, here: str = "") -> Markup:
    """A whole page in our frame that needs no Gradio; `here` names it where it is one of `PAGES`. `body` is HTML;
    every text in it is escaped already."""
    return render("page.html", title=title, body=Markup(body), here=here)
