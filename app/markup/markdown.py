"""Rendering the Markdown of steps, guidelines and disputes: bold, italics, code, headings, bullets, tables, and
links as plain text.

Formulas are found first, so that none of their characters count as Markdown. A star or underscore counts as
emphasis only if it has white space or punctuation on its outer side, so `2*3*4`, `2 * 3 * 4` and `a_1 * b_2` remain
products. CommonMark would treat `2*3*4` as emphasis, which is why no CommonMark library is used.

A line of a solution may also continue with an expression, as `- y^2` and `# of ways` do. A sign too many still
reads well, and one too few makes another number. So a sign becomes a bullet only before prose that follows a
complete line, and a single `#` is that of a heading only before a title.
"""

import re
from functools import partial

from markupsafe import Markup, escape

from stepsight.app.markup.text import text_html

_SIGNS = re.compile(r"[*_`]|^[ \t]*(?:#{1,6}[ \t]|[-+•][ \t])|\]\(|-:?[ \t]*\||\|[ \t]*:?-", re.MULTILINE)
_FORMULA = re.compile(r'<span class="math"[^>]*>[^<]*</span>')
_CODE = re.compile(
    r"^[ \t]*```[^\n`]*\n(?P<block>(?:(?!```).)*+)```[ \t]*$|(?<!`)`(?P<inline>[^`\n]+)`(?!`)",
    re.MULTILINE | re.DOTALL,
)
_BEFORE = r"(?:(?<=[\s(\[{>\"'“‘—–:])|^)"
_AFTER = r"(?=[\s)\]}<.,;:!?\"'”’—–]|$)"
_BOLD = re.compile(
    _BEFORE + r"(?P<sign>\*\*|__)(?=[^\s*_])(?P<text>[^\n*]{1,500}?)(?<=[^\s*_])(?P=sign)" + _AFTER, re.MULTILINE
)
_ITALIC = re.compile(
    _BEFORE + r"(?P<sign>[*_])(?=[^\s*_])(?P<text>[^\n*_]{1,500}?)(?<=[^\s*_])(?P=sign)" + _AFTER, re.MULTILINE
)
# Pictures are not fetched, so they stay as Markdown source.
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\[\]\n]{1,200})\]\((?:https?://|mailto:|/|#)[^\s()<>]{0,500}\)")
_HEADING = re.compile(r"^[ \t]*(?P<signs>#{1,6})[ \t]+(?P<text>(?![-\d.,/$%]+$)\S[^\n]*)$", re.MULTILINE)
# "# of ways" is a number, and so is "# Ways = 6".
_TITLE = re.compile(r"[*_]*(?![a-z])(?:[^\W\d_]|\d+[.)])(?![^\n:]*(?:=|&[lg]t;|[≤≥≈]))")
_ITEM = r"[ \t]*[-*+][ \t]+(?=\S)"
_LIST = re.compile(
    rf"^(?P<before>(?!{_ITEM})[^\n]*\n)?(?P<items>(?:{_ITEM}[^\n]*(?:\n|\Z))+)(?=(?P<after>[^\n]{{0,20}}))",
    re.MULTILINE,
)
_COMPLETE = re.compile(r"(?:^|\*\*|__|[.:;,?>”：。？\ue001])[ \t]*\n?\Z")
_GOES_ON = re.compile(r"[ \t]*(?:[=≈≠≤≥<>×÷·/^]|&[lg]t;)")
# An item begins with a word that is not a function, a product of letters such as `ab` or `ABC`, or an operand.
_FUNCTION = r"(?:sin|cos|tan|cot|sec|csc|log|exp|sqrt|lim|max|min|gcd|lcm|det|mod|arc\w+)"
_BULLET = re.compile(
    rf"""
    ^ (?P<indent>[ \t]*) [-*+] [ \t]+ (?=
      ["'“‘(\[*_]*
      (?: [\u3040-\ud7a3]
        | (?! (?:{_FUNCTION}|[A-Z]{{2,}}) \b ) (?: [^\W\d_]{{3,}}+ | [A-Z][a-z]\b )
          (?! [+/^×÷·(] | \*\w | [ \t]+(?:[-+*/^×÷·=≈≠≤≥]|&[lg]t;) )
      )
    )
    """,
    re.MULTILINE | re.VERBOSE,
)
_WORD = re.compile(rf"(?<![^\W\d_])(?!(?:{_FUNCTION}|[A-Z]+)\b)[^\W\d_]{{3,}}")
_AFTER_OPERAND = re.compile(r"(?:[\d)\]}|!%]|\ue001|(?<![^\W\d_])(?:[^\W\d_]{1,2}|[A-Z]+))\s*\Z")
_BEFORE_OPERAND = re.compile(rf"\s*(?:[\d(\[{{|√]|\ue000|(?:{_FUNCTION}|[A-Z]+|[^\W\d_]{{1,2}})(?![^\W\d_]))")
_BEFORE_NUMBER = re.compile(r"\s*[\d(]")
# A line of cells, the line of dashes below it, and all following lines with a bar, with blank lines around them.
_TABLE = re.compile(
    r"(?:^[ \t]*\n)?^(?P<head>(?=[^\n]*\|)[^\n]++)\n"
    r"(?P<rule>(?=[^\n]*\|)(?=[^\n]*-)[ \t|:-]+)(?P<rows>(?:\n[^\n]*\|[^\n]*)*)(?:\n|\Z)(?:[ \t]*\n)?",
    re.MULTILINE,
)
_BAR = re.compile(r"(?<!\\)\|")
# Private-use characters serve as placeholders for formulas and code.
_OPEN, _CLOSE = "\ue000", "\ue001"
_PLACE = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")


def markdown_html(text: str) -> Markup:
    """Like `text_html`, but render Markdown as `strong`, `i`, `code`, `pre` and `table` elements."""
    if not _SIGNS.search(text) or _OPEN in text or _CLOSE in text:
        return text_html(text)
    kept: list[str] = []

    def keep(html: str) -> str:
        kept.append(html)
        return f"{_OPEN}{len(kept) - 1}{_CLOSE}"

    coded = _CODE.sub(lambda match: keep(_code(match)), text)
    html = _FORMULA.sub(lambda match: keep(match[0]), str(text_html(coded)))
    html = _TABLE.sub(_table, html)
    html = _LINK.sub(lambda match: match["text"], html)
    html = _HEADING.sub(_heading, html)
    html = _LIST.sub(_list, html)
    html = _BOLD.sub(partial(_emphasis, "strong"), html)
    html = _ITALIC.sub(partial(_emphasis, "i"), html)
    # A formula may contain a placeholder for code, never the other way round.
    for _ in range(2):
        html = _PLACE.sub(lambda match: kept[int(match[1])], html)
    return Markup(html)


def _heading(match: re.Match[str]) -> str:
    if match["signs"] == "#" and not _TITLE.match(match["text"]):
        return match[0]
    title = _BOLD.sub(r"\g<text>", match["text"])
    return f"<strong>{title}</strong>"


def _list(match: re.Match[str]) -> str:
    before, items = match["before"] or "", match["items"]
    # A single word may be an operand.
    if not _COMPLETE.search(before) or _GOES_ON.match(match["after"]) or re.fullmatch(rf"{_ITEM}[a-z]+\s*", items):
        return match[0]
    bulleted, bullets = _BULLET.subn(r"\g<indent>• ", items)
    signs = [line.lstrip()[0] for line in items.splitlines()]
    # Lines with several signs, of which only some can be bullets, are an expression.
    return before + bulleted if bullets == len(signs) or len(set(signs)) == 1 else match[0]


def _emphasis(tag: str, match: re.Match[str]) -> str:
    """Return emphasised text as HTML, or as it is if its signs multiply it with what is on either side."""
    sign, text = match["sign"], match["text"]
    start, end = match.span()
    before, after = match.string[max(0, start - 12) : start], match.string[end : end + 12]
    # A word before a bracket may be an operand.
    is_factor = (_AFTER_OPERAND.search(before) or text[0] in "([") and _BEFORE_OPERAND.match(after)
    if sign == "*" and not text.strip("0123456789."):
        is_factor = is_factor or _BEFORE_NUMBER.match(after)
    if sign[0] == "*" and is_factor and not _WORD.search(text):
        return match[0]
    return f"<{tag}>{match['text']}</{tag}>"


def _table(match: re.Match[str]) -> str:
    """Return a table as HTML. Text that only resembles a table is left unchanged: its line of dashes does not match
    its head."""
    head, rule = _cells(match["head"]), _cells(match["rule"])
    if len(head) != len(rule) or not all(set(cell) <= {"-", ":"} and "-" in cell for cell in rule):
        return match[0]
    body = [_cells(line) for line in match["rows"].split("\n")[1:]]
    rows = [(cells + [""] * len(head))[: len(head)] for cells in body]
    lines = "".join(_row("td", row) for row in rows)
    return f'<table class="written"><thead>{_row("th", head)}</thead><tbody>{lines}</tbody></table>'


def _cells(line: str) -> list[str]:
    bare = line.strip().removeprefix("|")
    parts = [part.strip().replace("\\|", "|") for part in _BAR.split(bare)]
    return parts[:-1] if len(parts) > 1 and not parts[-1] else parts


def _row(tag: str, cells: list[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"


def _code(match: re.Match[str]) -> str:
    if match["block"] is None:
        return f"<code>{escape(match['inline'])}</code>"
    block = match["block"].rstrip(" \t").removesuffix("\n")
    return f"<pre>{escape(block)}</pre>"
