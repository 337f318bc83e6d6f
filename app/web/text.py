"""Text from people and files as HTML: the one place where it is escaped, and where maths is found."""

import hashlib
import re
from collections.abc import Iterator
from html import escape

# A block ends where another of its kind begins, or a text of unclosed ones would take quadratic time.
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
_LONGEST = 4000


def text_html(text: str) -> str:
    """Escaped HTML in which each formula stands in a `span.math`, its LaTeX source as text.

    `$…$` is maths only where the opening sign has no white space after it, the closing one none before it and no
    digit behind it, so that prices (`$1.24`, `$5 and $6`) stay prices. The page's script renders the spans; what
    cannot be rendered stays as its source. A matrix or the like may stand without signs; drawings in Asymptote are
    code, and what looks like maths in them is none.
    """
    return "".join(_pieces(text))


def _pieces(text: str) -> Iterator[str]:
    position = 0
    while found := _MATHS.search(text, position):
        if found["code"] is None and (_is_price(found) or len(found[0]) > _LONGEST):
            yield _plain(text[position : found.start() + 1])
            position = found.start() + 1
            continue
        yield _plain(text[position : found.start()])
        yield escape(found[0]) if found["code"] else _formula(found)
        position = found.end()
    yield _plain(text[position:])


def _is_price(found: re.Match[str]) -> bool:
    inner = found["dollar"]
    return inner is not None and (inner[0].isspace() or inner[-1].isspace())


def _plain(text: str) -> str:
    return escape(text).replace("\\$", "$")


def _formula(found: re.Match[str]) -> str:
    inline = found["dollar"] or found["inline"] or found["table"]
    source = inline or found["display"] or found["dollars"] or found[0]
    kind = "" if inline else ' data-display="1"'
    return f'<span class="math"{kind} data-source="{escape(found[0])}">{escape(source.strip())}</span>'


def text_key(text: str) -> str:
    """Short text that tells one text from another."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
