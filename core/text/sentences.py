"""The formulas, drawings and code in a text, which are never cut, and the sentences of a paragraph."""

import re
from collections.abc import Iterator
from itertools import pairwise

from stepsight.core.text.signs import STOPS

Span = tuple[int, int]

_OPENERS = re.compile(r"(?<!\\)\\\[|\$\$|(?<!\\)\\\(|\[asy\]|```|~~~|\\begin\{([A-Za-z]+\*?)\}")
_CLOSERS = {"\\[": "\\]", "$$": "$$", "\\(": "\\)", "[asy]": "[/asy]", "```": "```", "~~~": "~~~"}
# Text between two dollar signs is maths if it neither begins nor ends with white space; otherwise they mean money.
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


_END = re.compile(r"[.!?؟](?:[\"'”’)\]*_]{0,4})\s+(?=\S)")
_FORMULA_END = re.compile(r"[.!?]\s*(?:\\\]|\\\)|\$\$?)\s+(?=\S)")
# These end a sentence wherever they occur; only the full-width point may be a decimal point.
_STOPS = STOPS.replace("．", "")
_STOP = re.compile(rf"(?<![{_STOPS}])(?:[{_STOPS}]++|．(?!\d))[\"'”’」』）)\]*_]{{0,4}}+\s*+(?=\S)")
# The start of a sentence: a capital, a digit, maths, an opening bracket or quote, or a variable with a relation.
_START = re.compile(r"[\"'“‘(\[*_¿¡«„]{0,4}(?:[^\W\da-z_]|\d|\$|\\[\[(]|\\begin|√|[a-z]\s*[=<>≤≥]|[a-z]\([a-z]\))")
_ABBREVIATION = re.compile(
    r"""(?:^|[\s(])(?:
        z\.\s?B | d\.\s?h | bzw | Nr | Std | Sr | Sra | Mme | т\.\s?е
      | e\.g | i\.e | etc | vs | cf | approx | ca | resp | a\.m | p\.m | w\.r\.t | w\.l\.o\.g | viz | al
      | Mr | Mrs | Ms | Dr | Prof | St | Jr | Sr | Mt | Inc | Co
      | sq | cu | ft | yd | lbs? | oz | hrs? | mins? | secs?
    )\.$""",
    re.VERBOSE,
)
# The first half of an abbreviation with two letters, before the second half: "z. B.", "d. h.", "p. ej."
_HALF = re.compile(r"(?:^|[\s(])[^\W\d_]\.$")
_OTHER_HALF = re.compile(r"[^\W\d_](?:j)?\.\s")
# Units can end sentences too ("It is 3 ft. The …"), but not before a number or a small letter.
_UNIT = re.compile(r"(?:sq|cu|ft|yd|lbs?|oz|hrs?|mins?|secs?|etc|a\.m|p\.m)\.$")
# These are abbreviations before a number: "No. 3", but "No. The sum is even."
_NUMBERED = re.compile(
    r"(?:^|[\s(])(?:figs?|eqs?|eqn|nos?|secs?|chs?|thm|def|prop|lem|cor|vol|pp?)\.$", re.IGNORECASE
)
_INITIAL = re.compile(r"(?:^|[\s(])[A-Z]\.$")
_OPENING_WORD = re.compile(
    r"(?:The|Then|Therefore|Thus|This|That|These|There|They|So|Since|Similarly|Substitut\w+|Solv\w+|Simplif\w+|We|"
    r"With|When|Which|What|Where|It|In|If|Is|Its|Hence|He|Her|His|How|Here|Let|Let's|Now|Next|Note|Notice|Finally|"
    r"First|Second|For|From|By|Because|But|Both|And|As|At|After|Adding|All|Also|Another|Any|Each|Every|Our|On|"
    r"One|Or|To|Two|Using|You|Your|Subtract\w*|Multiply\w*|Divid\w+|Step|She|Find|Consider|Recall|Given)\b"
)
_ENUMERATOR = re.compile(r"[\s*_(]*(?:\d{1,3}|[A-Za-z]|Step \d{1,3})[.)][\s*_]*$", re.IGNORECASE)
# The words of an answer at the end belong together: "Final Answer: The final answer is 4. I hope it is correct."
_FINAL = re.compile(r"[#*_\s]*final answer\b", re.IGNORECASE)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in order. Everything from `Final Answer` on is one sentence."""
    spans = formulas(text)
    parts, start, index = [], 0, 0
    is_final = _FINAL.match(text) is not None
    places = sorted(
        [match for sign in (_END, _FORMULA_END, _STOP) for match in sign.finditer(text)],
        key=lambda match: match.start(),
    )
    for match in places:
        while index < len(spans) and spans[index][1] < match.end():
            index += 1
        is_inside = index < len(spans) and spans[index][0] < match.end() <= spans[index][1]
        if is_final or match.end() <= start or is_inside:
            continue
        if match.re is _STOP or _is_end(text, start, match):
            parts.append(text[start : match.end()].strip())
            start = match.end()
            is_final = _FINAL.match(text, start) is not None
    return [part for part in (*parts, text[start:].strip()) if part]


def _is_end(text: str, start: int, match: re.Match[str]) -> bool:
    """True if the punctuation that `match` found ends the sentence that begins at `start`, and another sentence
    follows."""
    opening = _START.match(text, match.end())
    if opening is None or (opening[0][-1].islower() and not opening[0].isascii()):
        return False
    before = text[max(start, match.start() - 12) : match.start() + 1]
    if match[0][0] == "." and _ABBREVIATION.search(before):
        return bool(_UNIT.search(before) and _OPENING_WORD.match(text, match.end()))
    if match[0][0] == "." and _HALF.search(before) and _OTHER_HALF.match(text, match.end()):
        return False
    if match[0][0] == "." and _NUMBERED.search(before):
        return not text.startswith(("(", "$", *"0123456789"), match.end())
    if match[0][0] == "." and _INITIAL.search(before) and not _OPENING_WORD.match(text, match.end()):
        # An initial is part of a name, unless maths or a number follows.
        return not text[match.end()].isalpha()
    return not (match.start() - start < 12 and _ENUMERATOR.fullmatch(text[start : match.end()].strip()))
