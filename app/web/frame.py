"""What every page has around its content, as HTML: what its head loads, and the line at the top."""

# What pages share first, which the sheet of a page may refine; each names its own elements and no other's.
_SHEETS = (
    "katex/katex.min", "findings", "style", "login",
    "score", "jobs", "api", "results", "evidence", "browse", "relabel", "agreement",
    "adjudicate", "disputes",
)  # fmt: skip
_LINKS = "\n".join(f'<link rel="stylesheet" href="/stepsight/{name}.css">' for name in _SHEETS)

HEAD = f"""<link rel="icon" type="image/svg+xml" href="/stepsight/icon.svg">
{_LINKS}
<script defer src="/stepsight/katex/katex.min.js"></script>
<script type="module" src="/stepsight/js/main.js"></script>"""

PAGES = (
    ("Score", "/"),
    ("Evidence", "/evidence"),
    ("Browse", "/browse"),
    ("Results", "/results"),
    ("Relabel", "/relabel"),
    ("Jobs", "/jobs"),
)
_TOOLS = """<button type="button" class="maths-switch" aria-pressed="false"
title="Show every formula as its source">TeX source</button>
<button type="button" class="keys-button" aria-haspopup="dialog"
title="List the keys of this page (?)">Keys</button>"""


def navigation(here: str) -> str:
    """The line at the top, with the skip link's target at its end; `here` names the page."""
    links = "".join(
        f'<a href="{path}"{" aria-current=page" if name == here else ""}>{name}</a>' for name, path in PAGES
    )
    return f"""<a class="skip" href="#content">Skip to the content</a>
<nav class="top" aria-label="Pages"><a class="brand" href="/">StepSight</a><span class="places">{links}</span>
<span class="tools">{_TOOLS}</span></nav><div id="content" tabindex="-1"></div>"""


def plain_page(title: str, body: str, here: str = "") -> str:
    """A whole page in our frame that needs no Gradio; `here` names it where it is one of `PAGES`. `body` is HTML;
    every text in it is escaped already."""
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title} · StepSight</title>
<meta name="viewport" content="width=device-width, initial-scale=1">{HEAD}</head>
<body><div class="gradio-container plain">{navigation(here)}
<main><div class="page">{body}</div></main></div></body></html>"""
