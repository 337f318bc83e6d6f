"""The evidence of one trace as one HTML file that needs no network and no server, to send to someone."""

import base64
import hashlib
import re
from datetime import datetime
from html import escape

from stepsight.app.evidence.evidence import Evidence
from stepsight.app.evidence.evidence_address import EvidenceAddress
from stepsight.app.evidence.evidence_view import evidence_html
from stepsight.core.evidence import LeaveOneOut
from stepsight.core.files import asset
from stepsight.storage.traces.queries import StoredTrace

# What a file may weigh; one that would weigh more shows formulas as their source.
_LARGEST = 1_000_000
_STYLES = ("style.css", "evidence.css")
_SCRIPTS = ("maths.js", "evidence.js")
_IMPORT = re.compile(r'^import (?:\{([^}]*)\} from )?"\./([\w-]+\.js)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export const (\w+) =", re.MULTILINE)
_FACE = re.compile(r"@font-face\{[^}]*\}")
# The fonts of KaTeX that most formulas need, and the commands that need another.
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


def evidence_file(
    evidence: Evidence, address: EvidenceAddress, left_out: LeaveOneOut | None, made: datetime
) -> str:
    """The page that the address opens, as it stands there.

    Style, scripts, and the fonts of its formulas are in it; its policy lets no other script run and asks nobody for
    anything. Below 1 MB up to about 170 sub-steps; the formulas of more than about 110 are shown as their source.
    """
    body = _body(evidence, address, left_out, made)
    maths = 'class="math"' in body
    page = _page(evidence, body, maths)
    return _page(evidence, body, False) if maths and len(page.encode()) > _LARGEST else page


def title(evidence: Evidence) -> str:
    """The trace by its dataset and id, or that a person entered it."""
    trace = evidence.trace
    return f"{trace.dataset} · {trace.id}" if isinstance(trace, StoredTrace) else "A solution entered by hand"


def bundle(names: tuple[str, ...]) -> str:
    """Modules of `assets/web/js`, and those that they import, as one script."""
    return '"use strict";\nconst modules = {};\n' + "".join(_in_order(names, set()))


def _in_order(names: tuple[str, ...], met: set[str]) -> list[str]:
    parts = []
    for name in names:
        if name in met:
            continue
        met.add(name)
        text = asset("web", "js", name).read_text(encoding="utf-8")
        parts += _in_order(tuple(found[2] for found in _IMPORT.finditer(text)), met)
        text = _IMPORT.sub(lambda found: f'const {{{found[1]}}} = modules["{found[2]}"];' if found[1] else "", text)
        text = _EXPORT.sub(rf'const \1 = modules["{name}"].\1 =', text)
        parts.append(f'modules["{name}"] = {{}};\n{{\n{text}}}\n')
    return parts


def _page(evidence: Evidence, body: str, maths: bool) -> str:
    katex = [asset("web", "katex", "katex.min.js").read_text(encoding="utf-8")] if maths else []
    scripts = [*katex, bundle(_SCRIPTS)]
    fonts = _katex_style("\n".join((evidence.trace.problem, *evidence.trace.substeps))) if maths else ""
    style = "".join(asset("web", name).read_text(encoding="utf-8") for name in _STYLES)
    # It goes with every copy.
    licence = asset("web", "katex", "LICENSE").read_text(encoding="utf-8") if maths else ""
    hashes = " ".join(f"'sha256-{_hash(script)}'" for script in scripts)
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; font-src data:; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<title>Evidence: {escape(title(evidence))} · StepSight</title>
<!-- {licence} -->
<style>{fonts}</style>
<style>{style}</style>
</head>
<body>
<div class="gradio-container plain"><main class="page">
{body}
</main></div>
{"".join(f"<script>{script}</script>" for script in scripts)}
</body>
</html>
"""


def _body(evidence: Evidence, address: EvidenceAddress, left_out: LeaveOneOut | None, made: datetime) -> str:
    return f"""<p class="file-head"><b>StepSight</b>
<button type="button" class="button maths-switch" aria-pressed="false">TeX source</button>
<button type="button" class="button keys-button" aria-haspopup="dialog">Keys</button></p>
<h1>{escape(title(evidence))}</h1>
{evidence_html(evidence, address, left_out=left_out)}
<p class="meta"><span>evaluator <strong>{escape(evidence.evaluator)}</strong></span>
<span>fingerprint <strong>{escape(evidence.fingerprint)}</strong></span>
<span>valid from <strong>{evidence.thresholds.validity:.2f}</strong></span>
<span>made on <strong>{made:%Y-%m-%d %H:%M} UTC</strong></span></p>"""


def _katex_style(text: str) -> str:
    """KaTeX's style sheet with the fonts that the formulas of a text need, and no other, in it."""
    needed = (*_COMMON, *(font for font, asked in _ASKED.items() if re.search(asked, text)))

    def face(found: re.Match[str]) -> str:
        name = re.search(r"fonts/(KaTeX_([\w-]+)\.woff2)", found[0])
        assert name is not None
        if not name[2].startswith(needed):
            return ""
        data = base64.b64encode(asset("web", "katex", "fonts", name[1]).read_bytes()).decode()
        return re.sub(r"src:[^}]*", f'src:url(data:font/woff2;base64,{data}) format("woff2")', found[0])

    return _FACE.sub(face, asset("web", "katex", "katex.min.css").read_text(encoding="utf-8"))


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
