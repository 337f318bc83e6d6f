"""The evidence on one trace as HTML: the hindsight matrix, the reveal, the curve, and explanatory sentences.

The same is offered as a file: a single HTML page that needs neither a network nor a server.
"""

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from math import ceil

from markupsafe import Markup

from stepsight.app.browse.trace_view import first_below, outcome_words
from stepsight.app.evidence.evidence import MOST_CELLS, Evidence, EvidenceAddress
from stepsight.app.evidence.sentences import rest_sentence, unused_sentence
from stepsight.app.web.html import bundle, read_web, render
from stepsight.app.web.step_bars import (
    ONLY_VALIDITY,
    change_html,
    conclusion_html,
    judged_steps,
    note_html,
)
from stepsight.core.errors import UserError
from stepsight.core.evidence import Dependence, LeaveOneOut
from stepsight.core.judgment_record import triangle_cells
from stepsight.core.paths import asset
from stepsight.core.scores import StepScores
from stepsight.core.trace import Trace
from stepsight.storage.traces.queries import StoredTrace

# The largest number of names that fit beside the matrix without touching.
_MOST_NAMES = 20
# What replaces a step that is left out, as the page offers it. Then, the number of sub-steps above which the page
# asks before it leaves out each of them.
_MANY = 60
# The largest matrices, in sub-steps, whose numbers fit on any screen, on a tablet, and on a wide screen.
_ROOM = ((6, "small"), (12, "medium"), (20, "large"))


def evidence_html(
    evidence: Evidence,
    address: EvidenceAddress,
    ask: str = "",
    left_out: LeaveOneOut | None = None,
    *,
    in_file: bool = False,
) -> Markup:
    """Render all evidence on one trace, with the selection that the address makes.

    Leave-one-out scores are included if `left_out` is given. Otherwise, the page's script requests them from the
    URL `ask` unless it is "". With `in_file`, the whole record of the judgment is included, however long it is.
    """
    problem, step, after = _selection(evidence, address)
    n, trace, outcome = len(evidence), evidence.trace, ""
    if trace.has_gold:
        wrong = first_below(evidence.hindsight.offline, evidence.thresholds.validity, trace)
        outcome = outcome_words(wrong, trace)
    data = evidence.judgment_data(is_whole=in_file) | {
        "marked": json.dumps([(row, column, words) for (row, column), words in evidence.marked_cells.items()]),
        "step": str(step),
        "after": str(after),
    }
    if address.present and not in_file:
        data["present"] = address.present
    if left_out is not None:
        data["left-out"] = json.dumps(left_out_record(evidence, left_out))
    elif ask:
        data["ask"] = ask
    return render(
        "evidence/trace.html",
        evidence=evidence,
        problem=problem.strip(),
        note=note_html(evidence.trace.meta.get("note")),
        conclusion=conclusion_html(evidence.trace, [replace(evidence.judgments, name=evidence.evaluator)]),
        failing=bool(evidence.failing),
        outcome=outcome,
        only_validity=ONLY_VALIDITY,
        constant=evidence.constant_sentence,
        offer=_offer(evidence) if ask else "",
        is_stored=evidence.has_left_out,
        data=data,
        every=ceil(n / _MOST_NAMES),
        size=next((name for most, name in _ROOM if n <= most), "many"),
        # Larger matrices are drawn by the page's script.
        rows=[StepScores(row).validity.tolist() for row in evidence.hindsight.rows] if n <= MOST_CELLS else [],
        steps=judged_steps(evidence.trace),
        changed=lambda i: change_html(float(evidence.hindsight.retroactive[i])),
        ends=evidence.trace.step_ends.tolist(),
    )


def left_out_record(evidence: Evidence, left_out: LeaveOneOut) -> dict[str, object]:
    """Return the leave-one-out scores as JSON for the page's script.

    Row `i` holds the scores without sub-step `i`. Each sub-step has two sentences: one that names the later
    sub-steps on which its verdict rests, and one that names the sub-steps that rest on it.
    """
    dependence = Dependence(left_out, evidence.thresholds.validity)
    steps = range(len(evidence))
    return {
        # Three digits are more than are shown, and a long trace has many numbers.
        "rows": triangle_cells(tuple(left_out.probs.round(3)), evidence.about.outputs),
        "says": [evidence.left_out_sentence(left_out, step) for step in steps],
        "rests": [rest_sentence(evidence.names, dependence, step) for step in steps],
        "unused": unused_sentence(evidence.names, dependence),
    }


def _offer(evidence: Evidence) -> str:
    """Return the label of the button that leaves out each step, or "" if this is so cheap that the page does it
    without a button."""
    if not evidence.calls and len(evidence) < _MANY:
        return ""
    what = f"about {evidence.calls} calls to a server" if evidence.calls else f"{len(evidence)} passes of the model"
    return f"Leave out each step: {what}"


def waiting_html(trace: Trace, title: str, message: UserError, problems: Sequence[str]) -> Markup:
    """Render a trace that is still being judged: its problem, its steps, and the reason for the wait."""
    values = {"trace": trace, "title": title, "message": message, "problems": problems}
    return render("evidence/waiting.html", steps=judged_steps(trace), **values)


def _selection(evidence: Evidence, address: EvidenceAddress) -> tuple[str, int, int]:
    """Return an error in the address (or ""), the index of the selected sub-step, and the index of the last
    sub-step revealed."""
    last = len(evidence) - 1
    try:
        return "", evidence.place(address.step, evidence.focus), evidence.place(address.after, last)
    except UserError as error:
        return str(error.without_options()), evidence.focus, last


# The largest size of a file in bytes. In a larger one, formulas are shown as source.
_LARGEST = 1_000_000
_STYLES = ("style.css", "evidence.css")
_SCRIPTS = ("shared/maths.js", "shared/hints.js", "steps/long_trace.js", "evidence/evidence.js")
_FACE = re.compile(r"@font-face\{[^{}]*\}")
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
    digests = (hashlib.sha256(script.encode()).digest() for script in scripts)
    hashes = " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)
    return render(
        "evidence/file.html",
        title=title(evidence.trace),
        evidence=evidence,
        body=body,
        moment=moment,
        # Scripts and styles from `assets` are trusted and must not be escaped.
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
    needed = (*_COMMON, *(font for font, pattern in _ASKED.items() if re.search(pattern, text)))

    def face(match: re.Match[str]) -> str:
        name = re.search(r"fonts/(KaTeX_([\w-]+)\.woff2)", match[0])
        assert name is not None
        if not name[2].startswith(needed):
            return ""
        data = base64.b64encode(asset("web", "katex", "fonts", name[1]).read_bytes()).decode()
        return re.sub(r"src:[^}]*", f'src:url(data:font/woff2;base64,{data}) format("woff2")', match[0])

    return _FACE.sub(face, read_web("katex", "katex.min.css"))


def file_name(trace: Trace) -> str:
    """Return a name for the evidence file that is valid on every system. It contains the letters and digits of the
    trace's id."""
    id = trace.id if isinstance(trace, StoredTrace) else ""
    plain = re.sub("[^A-Za-z0-9]+", "-", id)[:60].strip("-")
    return f"stepsight-evidence-{plain}.html" if plain else "stepsight-evidence.html"
