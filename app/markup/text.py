"""Text as HTML with its formulas marked, the symbols for labels and verdicts, and counts and times in words."""

import re
from collections.abc import Iterator
from math import ceil

from markupsafe import Markup, escape

MARKS = {
    "neg": "✕", "neu": "○", "pos": "✓", "unsure": "?",
    "not valid": "✕", "redundant": "○", "valid": "✓",
}  # fmt: skip
"""The symbol of every label and verdict, since colour alone says nothing to people who cannot see it."""

VERDICT_WORDS = {"neg": "marked wrong", "neu": "marked redundant", "pos": "not marked"}
"""A verdict in words on a step, by the label that it stands for."""

CHECK_WORDS = {"neg": "equation fails", "pos": "equations hold"}
"""The same for an evaluator that checks equations."""

TERMS = {
    "evaluator": "A model or a program that says for each step whether it is right.",
    "valid": "The step is not wrong: its validity, p(neu) + p(pos), reaches the threshold (default: 0.5).",
    "baselines": "Guesses made without reading: by the length of a step, or by its place in the solution.",
    "neg": "The step is wrong.",
    "neu": "The step is valid but redundant: the solution does not need it.",
    "pos": "The step is correct and useful.",
    "online": "The step is scored with only the problem and the steps up to it in view.",
    "offline": "The step is scored with the whole solution in view.",
    "retroactive change": "The offline validity of a step minus the online one: how far later steps moved it.",
    "equations": (
        "Equations are checked by rule, without a model. On four benchmarks, 194 steps had one that fails: gold "
        "calls 181 of them (93 %) wrong, and a closer look showed that the others are wrong too. They are 10 % of "
        "all 1,778 wrong steps: most errors are of a different kind, so a step without a mark may still be wrong."
    ),
    "hindsight": "Each step is scored again after every later step, from its online score to its offline one.",
}
"""The hints that explain these words where a page first uses them."""

# A block ends where the next of its kind begins; otherwise a text of unclosed blocks would take quadratic time.
_MATHS = re.compile(
    r"""
    (?<!\\)\\\[ (?P<display>(?:(?!(?<!\\)\\\[).)+?) \\\]
  | \$\$ (?P<dollars>.+?) \$\$
  | (?<!\\)\\\( (?P<inline>(?:(?!(?<!\\)\\\().)+?) \\\)
  | \\begin\{(?P<name>(?:align|gather|equation|eqnarray|alignat)\*?)\}
    (?:(?!\\begin\{(?P=name)\}).)+? \\end\{(?P=name)\}
  | (?P<table>\\begin\{(?P<kind>[pbvBV]?matrix|smallmatrix|cases|array|aligned)\}
    (?:(?!\\begin\{(?P=kind)\}).)+? \\end\{(?P=kind)\})
  | (?P<code>\[asy\] (?:(?!\[asy\]).)+? \[/asy\])
  | (?<![\\$]) \$ (?P<dollar>(?:\\.|[^$\\\n])+?) \$ (?![\d$])
    """,
    re.VERBOSE | re.DOTALL,
)
# Many benchmarks give answers such as \frac43 without dollar signs: a command with no words around it.
_BARE = re.compile(
    r"(?=[^\\]*\\[a-zA-Z]{2})(?:(?>\\(?:text|mbox)\{[^{}\n]*\}|\\[a-zA-Z]+|\\[^a-zA-Z\n]"
    r"|(?<![a-zA-Z])[a-zA-Z]{1,2}(?![a-zA-Z])|[^\\$a-zA-Z\n])){2,200}"
)
_LONGEST = 4000
# For TeX, a bare % starts a comment; nobody who writes 20% in a solution means that.
_PERCENT = re.compile(r"\\.|%", re.DOTALL)


def text_html(text: str) -> Markup:
    """Return escaped HTML in which each formula is a `span.math` with its LaTeX source as text.

    `$…$` is a formula only if the opening sign is not followed by white space, and the closing sign is neither
    preceded by white space nor followed by a digit. Prices such as `$1.24` or `$5 and $6` therefore stay prices.
    The page's script renders the spans, and a span that cannot be rendered keeps its source. A LaTeX environment,
    such as a matrix, needs no dollar signs, and neither does a text that is nothing but a formula. Asymptote
    drawings are code and contain no formulas.
    """
    if _BARE.fullmatch(text):
        return _span(text, text, is_display=False)
    return Markup("").join(_pieces(text))


_SIGNS = {
    "cdot": "·", "times": "×", "div": "÷", "pm": "±", "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠",
    "neq": "≠", "approx": "≈", "pi": "π", "infty": "∞", "circ": "°", "ldots": "…", "dots": "…", "cdots": "…",
    "left": "", "right": "", "displaystyle": "", "text": "", "boxed": "", "mathrm": "",
}  # fmt: skip
_FRACTION = re.compile(r"\\[dtc]?frac\{([^{}]*)\}\{([^{}]*)\}")
_ROOT = re.compile(r"\\sqrt\{([^{}]*)\}")
_COMMAND = re.compile(r"\\([a-zA-Z]+)|\\[,;:! ]|\\(?=[^a-zA-Z])")


def plain_text(text: str) -> str:
    """Return a text whose formulas are readable without being drawn, for options, labels and announcements."""
    return _MATHS.sub(lambda match: match[0] if match["code"] or _is_price(match) else _readable(match), text)


def _readable(match: re.Match[str]) -> str:
    source = next((match[name] for name in ("dollar", "inline", "dollars", "display") if match[name]), match[0])
    source = _FRACTION.sub(lambda found: "/".join(map(_factor, found.groups())), source)
    source = _ROOT.sub(lambda found: f"√{_factor(found[1])}", source)
    source = _COMMAND.sub(lambda found: _SIGNS.get(found[1], found[1]) if found[1] else "", source)
    return source.replace("{", "").replace("}", "").strip()


def _factor(text: str) -> str:
    return text if text.isalnum() else f"({text})"


def _pieces(text: str) -> Iterator[Markup]:
    start = position = 0
    while match := _MATHS.search(text, position):
        if match["code"] is None and (_is_price(match) or len(match[0]) > _LONGEST):
            position = match.start() + 1
            continue
        yield _escape_text(text[start : match.start()])
        yield escape(match[0]) if match["code"] else _formula(match)
        start = position = match.end()
    yield _escape_text(text[start:])


def _is_price(match: re.Match[str]) -> bool:
    inner = match["dollar"]
    return inner is not None and (inner[0].isspace() or inner[-1].isspace())


def _escape_text(text: str) -> Markup:
    return escape(text).replace("\\$", "$")


def _formula(match: re.Match[str]) -> Markup:
    inline = match["dollar"] or match["inline"] or match["table"]
    source = inline or match["display"] or match["dollars"] or match[0]
    return _span(source, match[0], is_display=not inline)


def _span(source: str, written: str, *, is_display: bool) -> Markup:
    display = Markup(' data-display="1"' if is_display else "")
    drawn = _PERCENT.sub(lambda sign: r"\%" if sign[0] == "%" else sign[0], source.strip())
    return Markup('<span class="math"{} data-source="{}">{}</span>').format(display, written, drawn)


def sentence(text: str) -> str:
    """Return a message with a capital letter at its beginning, unless it begins with a name."""
    return f"T{text[1:]}" if text.startswith(("the ", "there ")) else text


def duration(seconds: float) -> str:
    """Format a number of seconds, rounded up, such as `40 s`, `4 min` or `2 h 5 min`."""
    if seconds < 60:
        return f"{ceil(seconds)} s"
    minutes = ceil(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
