"""The way a text presents an equation: as a statement, as a consequence of another, or as supposed or refuted."""

import re

# Words that retract an equation, in its own sentence or later.
_RETRACTED = re.compile(
    r"""\b(?:false|incorrect|untrue|contradict\w*|impossible|wrong|invalid|inconsistent|absurd|mistaken?|oops|typo
      | not\s+(?:true|equal|correct|possible|valid) | should\s+(?:be|have\s+been) | actually | wait
      | hmm+ | sorry | my\s+bad | correction | a\s+lie | re-?(?:calculat|comput)\w+ | sic
      | erroneous\w* | off\s+by | (?:no|nein|non|nie|sai|нет)(?=[^\S\n]*(?:[.,;!)\n]|$))
      | fehler | unsinn | erreur | absurd[eo] | assurdo | değil | yanlış | salah | błędn\w+ | fout
      | falsch\w* | stimmt\s+nicht | unmöglich | widerspr\w+ | nicht\s+(?:richtig|möglich|wahr)
      | faux | fausse | fals[oa] | errad[oa] | incorrect[oa] | imposs[ií]vel | imposible | impossibile
      | contradi[cç]\w+ | неверно | неправильно | невозможно | ошибк\w* | противореч\w+)\b
      | 错 | 錯 | 不对 | 不對 | 不成立 | 不可能 | 矛盾 | 間違 | おかしい | ありえない
      | 틀[린렸리] | 불가능 | 모순""",
    re.VERBOSE | re.IGNORECASE,
)
# Words that deny an equation in its own sentence or the next one; further on they refer to something else.
_DENIED = re.compile(
    r"""\b(?:not\s+(?:satisf\w+|work|hold|what|enough|the\s+same|an?\s+(?:integer|solution))
      | (?:does|do|is|are|did|was|were|would|should|could)(?:\s+not|n't)\b | can(?:not|'t)
      | no\s+(?:solutions?|such) | too\s+(?:big|small|large|high|low|much|many|few|long|short)
      | fails?\b | xor | bitwise | left\s+to\s+right | instead\b | never | niet
      | n'est\s+pas | no\s+es | não\s+é | non\s+è | нельзя)\b
      | 不是 | ではない | 아니다""",
    re.VERBOSE | re.IGNORECASE,
)
# The number of characters after an equation that are searched for a retraction.
_FURTHER = 300
_SUPPOSED = re.compile(
    r"""\b(?:if|whenever|suppos\w+|assum\w+|imagine|whether|unless|try|trying|tried|guess\w*|hypothe\w+|pretend|test\w*
      | such\s+that|so\s+that|check\w*|verif\w+|either|say|false|wrong|incorrect\w*|mistake\w*|instead|claim\w*
      | plug\w* | when(?=[\s$(\\\[]*$)
      | wenn | falls | angenommen | nicht | si | supposons | supongamos | suponha\w* | supponiamo
      | no\s+es | supongo | als | jeśli | jeżeli | eğer | nếu | jika
      | se(?=[\s$(\\\[]*$) | если | пусть | допустим | предположим)\b
      | 如果 | 假 | 若 | 要是 | 误 | 誤 | もし | 만약 | إذا | اذا | यदि | अगर""",
    re.VERBOSE | re.IGNORECASE,
)
# Words before an equation that is a goal or is to be solved, rather than one that has been worked out.
_WISHED = re.compile(
    r"""\b(?:suppos\w+|assum\w+|equating|want|wants|wanted|wish|looking\s+for|would|could|might|maybe|perhaps|can't|cannot|not|does|do|must|should
      | need|needs|satisf\w+|equation|becomes?|reduces?\s+to|simplif\w+\s+to|condition|set|setting|plug\w*
      |substitut\w+)\b|n't\b""",
    re.VERBOSE | re.IGNORECASE,
)
_CLAUSE = re.compile(
    r",(?!\s*(?:что|dass|daß|że|hogy)\b)|;|:|\bthen\b|\bso\b|\bget(?:s|ting)?\b|\bhave\b|\bbecause\b|\bsince\b|\bwhich\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$|[\"'”’)\]$])|\n")
_MODULUS = re.compile(r"\\[pb]?mod\b|\bmod(?:ulo)?\b", re.IGNORECASE)
_MODULAR = re.compile(rf"{_MODULUS.pattern}|≡|\\equiv|\bcongruen", re.IGNORECASE)
CLOCK_TIME = re.compile(r"o'clock|\bclock\b|\d\s*[ap]\.?m\b|\bmidnight\b|\bnoon\b", re.IGNORECASE)
"""Times of day, whose arithmetic is modulo twelve."""


def sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the start and end of the sentence or line that contains `text[start:end]`."""
    first = 0
    for match in _SENTENCE_END.finditer(text, 0, start):
        first = match.end()
    following = _SENTENCE_END.search(text, end)
    return first, following.end() if following else len(text)


# What the whole sentence before an equation says about it.
_ASSUMED = re.compile(
    r"""\b(?:suppos|assum(?!ption))\w*\b[^.]{0,200}\b(?:answer|correct|true|mean\w*|impl\w+)\b
      | \bcontradict\w* | \bmistak\w+ | \berrors?\b | \berroneous | \b(?:wrong|incorrect|false)\b | \baccording\s+to
      | \bnot\s+(?:the\s+case|true)\b | \b(?:nobody|no\s+one)\b
      | \b(?:might|would|could|may)\s+(?:think|expect|say|believe|guess|assume|need|imply|mean)\b
      | \b(?:student|he|she|they)\s+(?:wrote|thought|says?|said|told|claim\w*)\b
      | \b(?:first|earlier|previously|originally)\b[^.]{0,200}\b(?:wrote|said)\b | fälschlich | \berreur | ошибочн
      | widerspr | contradic | противореч | 矛盾 | 有人 | 学生(?:写|说|認|认) | 以为""",
    re.VERBOSE | re.IGNORECASE,
)

_STRUCK_OUT = re.compile(r"<(s|del|strike)>[^<]*</\1>", re.IGNORECASE)


def is_stated(text: str, start: int, end: int, works_out: bool) -> bool:
    """True if the text states the equation `text[start:end]`, rather than supposing, wishing for or refuting it.
    `works_out` is True if the right side is the computed value of the left side, as in 3 + 4 = 7."""
    first, last = sentence_around(text, start, end)
    _, after_next = sentence_around(text, last, last)
    before = text[first:start]
    is_doubted = (
        text[first:last].rstrip().endswith("?")
        or _RETRACTED.search(text, end, end + _FURTHER)
        or _DENIED.search(text, end, min(after_next, end + _FURTHER))
        or any(match.start() <= start < match.end() for match in _STRUCK_OUT.finditer(text))
        or _SUPPOSED.search(_clause(before))
        or _ASSUMED.search(before)
    )
    return not is_doubted and (works_out or _WISHED.search(before) is None)


_POSITED = re.compile(
    r"""\b(?:if|when|whenever|let|let's|suppose|assume|assuming|for|at|where|case|try|trying|test\w*|check\w*|plug\w*
      |substitut\w+|set|setting|say|unless|either|not|guess\w*|choose|choosing|consider|take|taking|pick|with|example
      |minimum|maximum|vertex|line|axis|asymptote\w*|want|could|might|would|say|suggest\w*)\b|n't\b""",
    re.VERBOSE | re.IGNORECASE,
)
_ALTERNATIVE = re.compile(
    r"\s*+(?:[$.,\]\\)]+\s*+)?(?:\\q?quad\s*+|\\text\{\s*+)*+or\b|\s*+,\s*+\$?[-\d]", re.IGNORECASE
)


def is_assertion(text: str, start: int, end: int) -> bool:
    """True if the text asserts the equation with unknowns at `text[start:end]`. False if it is a question, or if
    the text merely introduces the equation, for example after "let"."""
    first, last = sentence_around(text, start, end)
    return not text[first:last].rstrip().endswith("?") and _POSITED.search(_clause(text[first:start])) is None


_BEHIND_ANOTHER = re.compile(r"\bor\b[\s$(\\\[{}]*(?:\\q?quad\s*)?$", re.IGNORECASE)


def is_one_of_several(text: str, start: int, end: int) -> bool:
    """True if the equation `text[start:end]` is one of several alternatives, as in x = 2 or x = 3."""
    return bool(_ALTERNATIVE.match(text, end) or _BEHIND_ANOTHER.search(text, max(0, start - 30), start))


DIFFERENCE = re.compile(
    r"""\b(?:less|fewer|cheaper|differ\w*|loss|lost|lose|short\w*|below|behind|owes?|debt|deficit|younger|apart|change\w*
      |drop\w*|decreas\w+|lower|subtract\w*|from|between|remain\w*|down|off|under|away)\b""",
    re.VERBOSE | re.IGNORECASE,
)
"""Words of a decrease or difference, such as "less" or "drop". A difference is then often written without its
sign."""

WHOLE_NUMBER = re.compile(
    r"\b(?:remainder|left\s*over|leav\w+|floor|round\w*|whole|integer|complete\w*|full|fully|at\s+most|approximat\w*|about|nearly)\b"
    r"|\\l?floor|\\lceil|⌊|⌈",
    re.IGNORECASE,
)
"""Words by which the fractional part of a number is dropped."""


def _clause(before: str) -> str:
    """Return the last clause of the text before an equation. A single word and a comma before it, as in "Suppose, 3
    + 4 = 8", belong to it; a word and a colon, as in "Check: 3 + 4 = 8", do not."""
    ends = [0, *(match.end() for match in _CLAUSE.finditer(before))]
    if len(ends) > 1 and not before[ends[-1] :].strip() and before[ends[-1] - 1] == ",":
        head = before[ends[-2] : ends[-1]]
        return head if len(head.split()) == 1 else ""
    return before[ends[-1] :]


def is_modular(text: str, start: int, end: int) -> bool:
    """True if the sentence before the equation `text[start:end]`, or the text right after it, names a modulus."""
    first, _ = sentence_around(text, start, end)
    limit = min(len(text), end + 40)
    return _MODULUS.search(text, first, start) is not None or _MODULAR.search(text, end, limit) is not None


REMAINDER = re.compile(
    r"[\s$,.\\)]*+(?:with\s++)?(?:an?\s++)?(?:remainder|rem\.?|r)\s*+(?:of\s++|is\s++|=)?[\s$\\(]*+(\d{1,9})\b(?![.,]\d)",
    re.IGNORECASE,
)
"""The remainder that directly follows a quotient, with its digits as the group."""

OWN_ARITHMETIC = re.compile(
    r"""\bbase\s*[-$({]*\s*(?:\d|b\b|two|three|four|five|six|seven|eight|nine|twelve|sixteen)|\d_\{?\(?\d+\)?\}?
      | base-?\d | \b(?:binary|octal|hexadecimal)\b(?!\s+oper) | \boperations?\s*[$\\*@#] | \bbinary\s+operation
      | \\(?:star|oplus|otimes|odot|ast|clubsuit|spadesuit|diamond\w*|heartsuit|bigstar|dagger|circledast|nabla
      |bowtie|triangle(?:left|right)|Join)\b | [★☆♣♠♡♦◇⊕⊗] | [a-z0-9]\s*[△@#&~*]\s*[a-z0-9]\s*\$?\s*
        (?:=|is\s+defined|denote|mean)
      | \bdefined?\s+(?:as\s+)?\$[^$]{0,20}\*[^$]{0,20}(?:=|\$\s+(?:to|as|by)) | \bletters?\s+represents?
      | \bcryptarithm | different\s+digit""",
    re.VERBOSE | re.IGNORECASE,
)
"""Words in a problem that uses a base other than ten or defines its own operations."""

OTHER_ARITHMETIC = re.compile(
    r"(?:\bbase[\s-]+\$?(?:\d|two|seven|eight)|(?:\b(?:in|to)\s+|[(\[]\s*)(?:binary|octal|hexadecimal)|\bboolean)\b"
    # The integers modulo a number, and finite fields.
    r"|\b(?:in|over)\s+\$?(?-i:[ZFℤ𝔽]|GF|\\math(?:bb|bf)\{[ZF]\})(?:_\{?|\(|\s*/\s*)\d",
    re.IGNORECASE,
)
"""Words in a sub-step that writes numbers in a base other than ten, or computes in a finite ring or with truth
values."""

RETRACTION = re.compile(
    r"^\W*(?:no\b|wait|oops|actually|sorry|hmm)|\b(?:wrong|mistaken?|incorrect\w*|error|contradict\w*|not\s+true|false)\b",
    re.IGNORECASE,
)
"""Words in a sub-step that retracts an earlier statement."""

RESTRICTION = re.compile(
    r"\b(?:only|smallest|largest|greatest|least|valid|option|answer|range|works?|case|either|impossible|reject\w*)\b",
    re.IGNORECASE,
)
"""Words after a solution that was selected by a condition other than the equation."""

_FOLLOWING = re.compile(
    r"""\b(?:simplif\w+|expand\w*|distribut\w+|factor\w*|combin\w+|rearrang\w+|rewrit\w+|rewrote|becomes?|which\s+is
      |subtract\w*|add|adding|divid\w+|multiply\w*|multipli\w+|solv\w+|isolat\w+|get|gives?|yields?|so|thus|therefore|hence
      |or|means|equivalent|obtain|cancel\w*|cross|mov\w+|bring\w*|leav\w+|implies)\b|\\implies|\\Rightarrow|⇒|→""",
    re.VERBOSE | re.IGNORECASE,
)
_REWRITING = re.compile(
    r"\b(?:simplif\w+|expand\w*|distribut\w+|factor\w*|rearrang\w+|rewrit\w+|rewrote|combin\w+|written|(?:both|each)\s+sides?)\b",
    re.IGNORECASE,
)
_ANOTHER = re.compile(
    r"""\b(?:another|second|third|other|also|given|similar\w*|new|case|when|if|let|suppose|assume|try|consider|
      first|derivative|differentiat\w+|minimum|maximum|vertex|both\s+equations|system|set|setting|equal\s+to|plug\w*
      |substitut\w+|instead|or\s+else|either|for|at|same|where|inequality|next|one|two|each|test|root|zero|zeros
      |eliminat\w+|know|want|need|equations|only|smallest|largest|greatest|least|valid|option|answer|range|incorrectly|this\s+time|again|closer)\b""",
    re.VERBOSE | re.IGNORECASE,
)

# Operations on an equation, in words that elsewhere refer to another equation.
_GOAL = re.compile(
    r"\b(?:to\s+)?(?:solv\w+|find)\s+(?:it\s+|this\s+|the\s+equation\s+)?for\s+(?:the\s+value\s+of\s+)?[\W]{0,3}[A-Za-z]\b"
    r"|\b(?:from|on|of|to|by)\s+(?:both|each|all)\s+sides?\b|\bthe\s+value\s+of\b|\bset\s+up\s+the\s+equation\b(?=.{40})"
    r"|(?:^|\n)[^\w\n]*step\s+\d+\b|\bnow\b|\bfirst\b(?=,)",
    re.IGNORECASE,
)


def claims_consequence(words: str) -> bool:
    """True if the words before an equation present it as a consequence of the previous equation alone."""
    words = _GOAL.sub(" ", words)
    follows_at_once = not re.search("[A-Za-z]", words)
    return (follows_at_once or _FOLLOWING.search(words) is not None) and _ANOTHER.search(words) is None


_DERIVED = re.compile(
    r"""\b(?:subtract\w*|add|adding|eliminat\w+|substitut\w+|simplif\w+|divid\w+|solv\w+|combin\w+|rearrang\w+
      |multipl\w+|expand\w*|isolat\w+|collect\w*)\b""",
    re.VERBOSE | re.IGNORECASE,
)
SIMPLIFIED = re.compile(
    r"\b(?:simplif\w+|combin\w+|expand\w*)\b[^.]{0,30}\b(?:the|this|that)\s+(?:\w+\s+)?equation\b", re.IGNORECASE
)
"""Words before an equation that is the previous equation in simplified form."""

_NOT_DERIVED = re.compile(
    r"\b(?:if|let|suppose|assume|case|when|another|given|try|similarly|likewise|setting|instead|derivative|for\s+\$?\w\s*=|would|also)\b",
    re.IGNORECASE,
)


def says_it_is_derived(words: str) -> bool:
    """True if the words before an equation say that it was derived from earlier equations."""
    return _DERIVED.search(words) is not None and _NOT_DERIVED.search(words) is None


def says_it_is_rewritten(words: str) -> bool:
    """True if the words before an equation say that it is the previous equation in another form."""
    return _REWRITING.search(words) is not None and _ANOTHER.search(_GOAL.sub(" ", words)) is None
