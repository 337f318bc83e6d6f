"""The evidence on one trace as a single HTML page that needs neither a network nor a server."""

import base64
import hashlib
import re
from datetime import datetime

from markupsafe import Markup

from stepsight.app.evidence.evidence import Evidence
from stepsight.app.web.bundles import bundle, read_web
from stepsight.app.web.html import render
from stepsight.core.paths import asset
from stepsight.core.trace import Trace
from stepsight.storage.traces.queries import StoredTrace

# The largest size of a file in bytes; a larger one shows formulas as their source instead.
_LARGEST = 1_000_000
_STYLES = ("style.css", "evidence.css")
_SCRIPTS = ("shared/maths.js", "shared/hints.js", "steps/long_trace.js", "evidence/evidence.js")
_FACE = re.compile(r"@font-face\{[^}]*\}")
# The KaTeX fonts that most formulas need, and the commands that need others.
_COMMON = ("Main-Regular", "Math-Italic", "AMS-Regular", "Size1", "Size2", "Size3", "Size4")
_ASKED = {
    "Main-Bold": r"\\(mathbf|textbf|bf\b|bold)",
    "Math-BoldItalic": r"\\(boldsymbol|bm\b)",
    "Main-Italic": r"\\(mathit|textit|it\b|emph)",
    "Caligraphic": r"\\(mathcal|cal\b)",
    "Fraktur": r"\\(mathfrak|frak\b)",
    "SansSerif": r"\\(mathsf|textsf|sf\b)",
    "Script": r"\\mathscr",
    "Typewriter": r"\\(mathtt|texttt|tt\b|verb)",
}


def evidence_file(evidence: Evidence, body: Markup, moment: datetime) -> Markup:
    """Render the evidence as a self-contained page that gives `moment` as its date.

    `body` is the body of the Evidence page (see `app.evidence.trace.evidence_html`). The file contains its styles,
    its scripts and the fonts of its formulas, and its Content-Security-Policy forbids all other scripts and all
    requests. It stays below 1 MB up to about 120 sub-steps. Beyond about 90 sub-steps, formulas are shown as
    source.
    """
    maths = 'class="math"' in body
    page = _page(evidence, body, moment, maths)
    return _page(evidence, body, moment, False) if maths and len(page.encode()) > _LARGEST else page


def title(trace: Trace) -> str:
    """Return the dataset and id of a stored trace. For any other trace, return a text saying that it was entered by
    hand."""
    return f"{trace.dataset} · {trace.id}" if isinstance(trace, StoredTrace) else "A solution entered by hand"


def _page(evidence: Evidence, body: Markup, moment: datetime, maths: bool) -> Markup:
    katex = [read_web("katex", "katex.min.js")] if maths else []
    scripts = [*katex, bundle(*_SCRIPTS)]
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    return render(
        "evidence/file.html",
        title=title(evidence.trace),
        evidence=evidence,
        body=body,
        moment=moment,
        # Scripts and styles from `assets` are trusted, and must not be escaped.
        fonts=Markup(_katex_style("\n".join((evidence.trace.problem, *evidence.trace.substeps))) if maths else ""),
        style=Markup("".join(map(read_web, _STYLES))),
        scripts=list(map(Markup, scripts)),
        # Every copy must include the licence.
        licence=Markup(read_web("katex", "LICENSE") if maths else ""),
        policy=Markup(
            f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; font-src data:; img-src data:; "
            "base-uri 'none'; form-action 'none'"
        ),
    )


def _katex_style(text: str) -> str:
    """Return KaTeX's style sheet, in which the fonts that formulas in `text` need are embedded."""
    needed = (*_COMMON, *(font for font, asked in _ASKED.items() if re.search(asked, text)))

    def face(match: re.Match[str]) -> str:
        name = re.search(r"fonts/(KaTeX_([\w-]+)\.woff2)", match[0])
        assert name is not None
        if not name[2].startswith(needed):
            return ""
        data = base64.b64encode(asset("web", "katex", "fonts", name[1]).read_bytes()).decode()
        return re.sub(r"src:[^}]*", f'src:url(data:font/woff2;base64,{data}) format("woff2")', match[0])

    return _FACE.sub(face, read_web("katex", "katex.min.css"))


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def file_name(trace: Trace) -> str:
    """Return a name for the evidence file that is valid on every system. It contains the letters and digits of the
    trace's id."""
    id = trace.id if isinstance(trace, StoredTrace) else ""
    plain = re.sub("[^A-Za-z0-9]+", "-", id)[:60].strip("-")
    return f"stepsight-evidence-{plain}.html" if plain else "stepsight-evidence.html"
