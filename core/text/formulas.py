"""Finding the formulas, drawings and code in a text, which must not be split."""

import re
from collections.abc import Iterator
from itertools import pairwise

Span = tuple[int, int]

_OPENERS = re.compile(r"(?<!\\)\\\[|\$\$|(?<!\\)\\\(|\[asy\]|```|~~~|\\begin\{([A-Za-z]+\*?)\}")
_CLOSERS = {"\\[": "\\]", "$$": "$$", "\\(": "\\)", "[asy]": "[/asy]", "```": "```", "~~~": "~~~"}
# The text between two dollar signs is maths if it neither begins nor ends with white space; else they mean money.
_INLINE = re.compile(r"(?<![\\$])\$(?![\s$])(?:\\.|[^$\\\n]){0,2000}?(?<!\s)\$(?![\d$])|`[^`\n]+`")


def formula_blocks(text: str) -> list[Span]:
    r"""Return the start and end of each closed block of LaTeX, drawing or code, in order. Blocks are `\[ \]`, `$$
    $$`, `\( \)`, `\begin{…} \end{…}`, `[asy]` and code between triple backticks."""
    blocks = []
    unclosed: set[str] = set()
    position = 0
    while opener := _OPENERS.search(text, position):
        closer = f"\\end{{{opener[1]}}}" if opener[1] else _CLOSERS[opener[0]]
        stop = -1 if closer in unclosed else text.find(closer, opener.end())
        if stop < 0:
            unclosed.add(closer)
            position = opener.end()
        else:
            position = stop + len(closer)
            blocks.append((opener.start(), position))
    return blocks


def formulas(text: str) -> list[Span]:
    """Return the start and end of each block (see `formula_blocks`), each `$…$` and each piece of inline code, in
    order."""
    blocks = formula_blocks(text)
    edges = [(0, 0), *blocks, (len(text), len(text))]
    inline = [
        match.span() for (_, start), (stop, _) in pairwise(edges) for match in _INLINE.finditer(text, start, stop)
    ]
    return sorted([*blocks, *inline])


def outside(places: Iterator[re.Match[str]], spans: list[Span]) -> Iterator[re.Match[str]]:
    """Yield the matches that begin outside all of the `spans`, in order."""
    index = 0
    for match in places:
        while index < len(spans) and spans[index][1] <= match.start():
            index += 1
        if index == len(spans) or match.start() < spans[index][0]:
            yield match


def unbroken_lines(text: str) -> list[str]:
    """Return the lines of a text. Line breaks inside a block of LaTeX, drawing or code do not end a line."""
    lines, start = [], 0
    for line_break in outside(re.finditer("\n", text), formula_blocks(text)):
        lines.append(text[start : line_break.start()])
        start = line_break.end()
    return [*lines, text[start:]]
