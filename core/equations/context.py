"""Context of an equation: whether the text states it, or only supposes, tests, asks for or refutes it."""

import re

_AFTER = re.compile(
    r"""\b(?:false|incorrect|untrue|contradict\w*|impossible|wrong|invalid|inconsistent|absurd|mistaken?|oops|typo
      | not\s+(?:true|equal|correct|possible|valid|satisf\w+|work|hold|the\s+same|an?\s+(?:integer|solution)|what|enough)
      | (?:does|do|is|are|did|was|were|would|should|could)(?:\s+not|n['’]t)\b | can(?:not|['’]t)
      | no\s+(?:solutions?|such) | too\s+(?:big|small|large|high|low|much|many|few|long|short)
      | fails?\b | instead\b | should\s+(?:be|have\s+been) | actually | never | wait)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"""\b(?:if|suppos\w+|assum\w+|imagine|whether|unless|try|trying|tried|guess\w*|hypothe\w+|pretend|test\w*
      | such\s+that|so\s+that|check\w*|verif\w+|either|say|false|wrong|incorrect\w*|mistake\w*|instead|claim\w*
      | plug\w*)\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Words before an equation that is wished for, or asked for, where no value is worked out.
_WISHED = re.compile(
    r"""\b(?:suppos\w+|assum\w+|equating|want|wants|wanted|wish|looking\s+for|would|could|might|maybe|perhaps|can't|cannot|not|does|do|must|should
      | need|needs|satisf\w+|equation|becomes?|reduces?\s+to|simplif\w+\s+to|condition|set|setting|plug\w*|substitut\w+)
      \b|n['’]t\b""",
    re.VERBOSE | re.IGNORECASE,
)
_CLAUSE = re.compile(r",|;|:|\bthen\b|\bso\b|\bget(?:s|ting)?\b|\bhave\b|\bbecause\b|\bsince\b|\bwhich\b", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$|[\"'”’)\]$])|\n")
_MODULAR = re.compile(r"\\p?mod\b|\\bmod|\bmod(?:ulo)?\b|≡|\\equiv|o'clock|\b[ap]\.?m\b|\bcongruen", re.IGNORECASE)
_CHECKED = re.compile(r"\b(?:check\w*|verif\w+|test\w*|try\w*|tried|plug\w*)\b", re.IGNORECASE)


def sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    """The span of the sentence, or line, that holds `text[start:end]`."""
    first = 0
    for match in _SENTENCE_END.finditer(text, 0, start):
        first = match.end()
    following = _SENTENCE_END.search(text, end)
    return first, following.end() if following else len(text)


_ASSUMED = re.compile(r"\b(?:suppos|assum(?!ption))\w*\b[^.]*\b(?:answer|correct|true|mean\w*|impl\w+)\b", re.IGNORECASE)


def is_stated(text: str, start: int, end: int, works_out: bool) -> bool:
    """Whether a text states the equation at `[start, end)`, rather than supposing, wishing for or refuting it.

    `works_out` says that its right side is the value of its left, as in 3 + 4 = 7.
    """
    first, last = sentence_around(text, start, end)
    if text[first:last].rstrip().endswith("?"):
        return False
    if _AFTER.search(text, end, min(len(text), end + 300)):
        return False
    clause = _clause(text[first:start])
    if _SUPPOSED.search(clause):
        return False
    if _ASSUMED.search(text[first:start]):
        return False
    return works_out or _WISHED.search(text[first:start]) is None


_POSITED = re.compile(
    r"""\b(?:if|when|whenever|let|let's|suppose|assume|assuming|for|at|where|case|try|trying|test\w*|check\w*|plug\w*
      |substitut\w+|set|setting|say|unless|either|not|guess\w*|choose|choosing|consider|take|taking|pick|with|example
      |minimum|maximum|vertex|line|axis|asymptote\w*|want|could|might|would|would|say|suggest\w*)\b|n['’]t\b""",
    re.VERBOSE | re.IGNORECASE,
)
_ALTERNATIVE = re.compile(r"\s*[$.,\]\\)]*\s*(?:or|and)\b|\s*,\s*\$?[-\d]", re.IGNORECASE)


def is_assertion(text: str, start: int, end: int) -> bool:
    """Whether the equation with unknowns at `[start, end)` is asserted as such: not posited, nor one of several."""
    first, last = sentence_around(text, start, end)
    if text[first:last].rstrip().endswith("?") or _ALTERNATIVE.match(text, end):
        return False
    clause = _clause(text[first:start])
    return _POSITED.search(clause) is None


_COMPARED = re.compile(
    r"""\b(?:less|fewer|cheaper|differ\w*|loss|lost|lose|short\w*|below|behind|owes?|debt|deficit|younger|apart|change\w*
      |drop\w*|decreas\w+|lower|subtract\w*|from|between|remain\w*|down|off|under|away)\b""",
    re.VERBOSE | re.IGNORECASE,
)


_WHOLE = re.compile(
    r"\b(?:remainder|left\s*over|floor|round\w*|whole|integer|complete\w*|full|fully|at\s+most|approximat\w*|about|nearly)\b"
    r"|\\l?floor|\\lceil|⌊|⌈",
    re.IGNORECASE,
)


def speaks_of_whole_numbers(text: str) -> bool:
    """Whether a text says that it leaves out a part of a number."""
    return _WHOLE.search(text) is not None


def compares(text: str) -> bool:
    """Whether a text speaks of by how much something is less, so that the sign of a difference may be left out."""
    return _COMPARED.search(text) is not None


def _clause(before: str) -> str:
    """The last clause of the words before an equation."""
    clause = before
    for match in _CLAUSE.finditer(before):
        clause = before[match.end() :]
    return clause


def is_modular(text: str) -> bool:
    """Whether a text counts modulo something, or tells times of day."""
    return _MODULAR.search(text) is not None


_OWN_ARITHMETIC = re.compile(
    r"""\bbase\s*[-$({]*\s*(?:\d|b\b|two|three|five|six|seven|eight|nine|twelve|sixteen)|_\{?\(?\d+\)?\}?\$?\s*[+\-=]
      | base-?\d | \b(?:binary|octal|hexadecimal)\b | \boperations?\b | \\(?:star|oplus|otimes|odot|ast|clubsuit|spadesuit
      | diamond\w*|heartsuit|bigstar|dagger|circledast|nabla|bowtie|triangle(?:left|right)|S\b|Join)\b | [★☆♣♠♡♦◇⊕⊗△@#]
      | \b(?:define|defined|denote)\b[^.]{0,60}[*\\] | \bletters?\s+represents? | \bcryptarithm | different\s+digit
      | \bmagic\s+square """,
    re.VERBOSE | re.IGNORECASE,
)


def has_own_arithmetic(problem: str) -> bool:
    """Whether a problem counts in another base or defines operations of its own."""
    return _OWN_ARITHMETIC.search(problem) is not None
